package train

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A program's image may be any where the provider names an image of the trainer, which
// then brings the agents.
func TestImagesOfAProgram(t *testing.T) {
	program := types.ObjectValueMust(map[string]attr.Type{"code": types.StringType}, map[string]attr.Value{"code": types.StringValue("x")})
	for _, tt := range []struct{ given, trainer, image, agent string }{
		{"pytorch:2", "trainer:1", "pytorch:2", "trainer:1"},
		{"pytorch:2", "", "pytorch:2", ""},
		{"", "trainer:1", "trainer:1", ""},
	} {
		m := &experimentModel{Program: program}
		if tt.given != "" {
			m.Image = types.StringValue(tt.given)
		}
		if p, _, _ := m.placement(tt.trainer); p.Image != tt.image || p.AgentImage != tt.agent || !p.Program {
			t.Errorf("image %q of trainer_image %q: %q with %q", tt.given, tt.trainer, p.Image, p.AgentImage)
		}
		m.Program = types.ObjectNull(program.AttributeTypes(t.Context()))
		if p, _, _ := m.placement(tt.trainer); p.AgentImage != "" {
			t.Errorf("a model has the image %q for agents", p.AgentImage)
		}
	}
}

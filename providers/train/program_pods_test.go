package train

import (
	"errors"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
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

// A benchmark's pods have the image that the pods of its experiment would have from stoke-trainer.
func TestImageOfABenchmark(t *testing.T) {
	for name, tt := range map[string]struct {
		flag, own, trainer string
		program            bool
		want               string
	}{
		"flag":                          {flag: "a:1", own: "b:1", trainer: "c:1", want: "a:1"},
		"experiment":                    {own: "b:1", trainer: "c:1", want: "b:1"},
		"provider block":                {trainer: "c:1", want: "c:1"},
		"program":                       {own: "b:1", trainer: "c:1", program: true, want: "c:1"},
		"program without trainer_image": {own: "b:1", program: true, want: "b:1"},
		"none":                          {},
	} {
		t.Run(name, func(t *testing.T) {
			own, program := cty.NullVal(cty.String), cty.NullVal(cty.EmptyObject)
			if tt.own != "" {
				own = cty.StringVal(tt.own)
			}
			if tt.program {
				program = cty.EmptyObjectVal
			}
			s := &settings{image: tt.trainer}
			o := providers.RunBenchmark{Image: tt.flag, Cluster: &providers.RunObject{Value: cty.ObjectVal(map[string]cty.Value{"image": own, "program": program})}}
			got, err := s.imageFor(t.Context(), o)
			if wrong := new(providers.RunError); got != tt.want || (tt.want == "") != errors.As(err, &wrong) {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
	o := providers.RunBenchmark{Cluster: &providers.RunObject{Value: cty.ObjectVal(map[string]cty.Value{"cluster": cty.True})}}
	if _, err := new(settings).imageFor(t.Context(), o); err == nil {
		t.Error("an object that is no experiment has an image")
	}
}

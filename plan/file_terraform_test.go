package plan

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
)

// A plan that Terraform made is told from one that is broken.
func TestPlanOfTerraform(t *testing.T) {
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for _, name := range []string{"tfplan", "tfstate", "tfconfig/modules.json"} {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), nil)
	if err == nil || !strings.Contains(err.Error(), "made by Terraform") {
		t.Errorf("got %v", err)
	}
}

//go:build e2e

package main

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/view"
)

// TestFunctionsAsTerraform compares all signatures with Terraform's. The words
// of the descriptions are each one's own.
func TestFunctionsAsTerraform(t *testing.T) {
	theirs, err := exec.Command("terraform", "metadata", "functions", "-json").Output()
	if err != nil {
		t.Skip("terraform is not installed: ", err)
	}
	ours, err := view.FunctionsJSON(lang.Functions(""))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(undescribed(t, theirs), undescribed(t, ours)); d != "" {
		t.Error(d)
	}
}

func undescribed(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "description")
			for _, e := range v {
				strip(e)
			}
		case []any:
			for _, e := range v {
				strip(e)
			}
		}
	}
	strip(v)
	return v
}

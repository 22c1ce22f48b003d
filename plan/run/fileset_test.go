package run_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stokehq/stoke/plan"
)

// TestInterruptEndsFileset: walking through folders, which may take long, ends
// when a plan or validation is interrupted.
func TestInterruptEndsFileset(t *testing.T) {
	w := newWorld(t, newShelf().catalogue())
	w.must(w.config("main.tf", `output "files" { value = fileset(".", "**") }`))
	if _, diags := w.plan(plan.Normal); diags.HasErrors() {
		t.Fatal(text(diags))
	}
	stopping := make(chan struct{})
	close(stopping)
	w.shape = func(r *plan.Request) { r.Stopping = stopping }
	if _, diags := w.plan(plan.Normal); !strings.Contains(text(diags), "parameter: interrupted") {
		t.Errorf("planned: %s", text(diags))
	}
	if diags := plan.Validate(context.Background(), w.request(w.open(), plan.Normal)); !strings.Contains(text(diags), "parameter: interrupted") {
		t.Errorf("validated: %s", text(diags))
	}
}

package spec

import (
	"errors"
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// The values of gpu_health.
const (
	GPUHealthReported = "reported" // also ""
	GPUHealthRequired = "required"
)

// RequiresFitGPUs reports whether a worker may start only on GPUs that are fit.
func (s *Spec) RequiresFitGPUs() bool { return s.GPUHealth == GPUHealthRequired && s.Worker.GPUs > 0 }

func (s *Spec) validateGPUHealth(c *checks) {
	if s.GPUHealth != "" {
		c.oneOf("gpu_health", s.GPUHealth, GPUHealthReported, GPUHealthRequired)
	}
	if s.GPUHealth == GPUHealthRequired && s.Worker.GPUs == 0 {
		c.add("gpu_health", "A worker has no GPU", "Set worker.gpus, or leave gpu_health out.")
	}
}

// GPUHealth is the worst verdict about a GPU of a run.
type GPUHealth struct {
	Role string    `json:"role"`
	At   time.Time `json:"at,omitzero"`
	gpu.Finding
}

// String returns the verdict for people: "fit", or its severity with role and reason.
func (h *GPUHealth) String() string {
	if h.Severity == gpu.Fit {
		return string(gpu.Fit)
	}
	return fmt.Sprintf("%s: %s: %s", h.Severity, h.Role, h.Finding)
}

// maxFinding is how many bytes the text of a verdict may have.
const maxFinding = 200

// Validate checks a verdict that another process has sent.
func (h *GPUHealth) Validate() error {
	if !h.Severity.IsKnown() || max(len(h.Text), len(h.Role), len(h.Rule), len(h.UUID)) > maxFinding {
		return errors.New("the health of GPUs is malformed")
	}
	return nil
}

// NewGPUHealth returns a verdict whose text is not too long.
func NewGPUHealth(role string, at time.Time, f gpu.Finding) *GPUHealth {
	f.Text = first(f.Text, maxFinding)
	return &GPUHealth{Role: role, At: at, Finding: f}
}

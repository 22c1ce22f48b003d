package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Measured has the measurements of one GPU by stoke-trainer-gpu. Exactly one of three is
// given: the rates, Unable, or Failed.
type Measured struct {
	Upload   float64 `json:"upload_bytes_per_second,omitempty"`   // from pinned memory of the host
	Download float64 `json:"download_bytes_per_second,omitempty"` // to pinned memory of the host
	Product  float64 `json:"product_flops_per_second,omitempty"`  // of square matrices of bfloat16 with sums in float32
	Size     int     `json:"size,omitempty"`                      // rows of these matrices
	Unable   string  `json:"unable,omitempty"`                    // why nothing was measured: not a fault of the GPU
	Failed   string  `json:"failed,omitempty"`                    // what is wrong with the GPU
}

// Validate checks a measurement that another process has sent.
func (m *Measured) Validate() error {
	given := 0
	for _, text := range []string{m.Unable, m.Failed} {
		if len(text) > maxText {
			return errors.New("a text of a measurement is too long")
		}
		if text != "" {
			given++
		}
	}
	for _, v := range []float64{m.Upload, m.Download, m.Product} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return errors.New("a rate is out of range")
		}
	}
	if m.Upload > 0 && m.Download > 0 && m.Product > 0 {
		given++
	}
	if given != 1 {
		return errors.New("a measurement has neither all rates nor a reason")
	}
	return nil
}

// String returns the measurement for people.
func (m *Measured) String() string {
	const giga, tera = 1e9, 1e12
	switch {
	case m.Unable != "":
		return "not measured: " + m.Unable
	case m.Failed != "":
		return "failed: " + m.Failed
	}
	return fmt.Sprintf("%.3g GB/s to the GPU, %.3g GB/s from it, product of %d×%d bfloat16 %.3g TFLOP/s",
		m.Upload/giga, m.Download/giga, m.Size, m.Size, m.Product/tera)
}

// Unmeasured returns a measurement without rates; its text is cut where it is too long.
func Unmeasured(failed bool, why string) Measured {
	why = strings.ToValidUTF8(first(strings.Join(strings.Fields(why), " "), maxText), "")
	why = cmp.Or(why, "the reason is not known")
	if failed {
		return Measured{Failed: why}
	}
	return Measured{Unable: why}
}

// Speed is what NVIDIA publishes of a model: upper bounds.
type Speed struct {
	Name    string  // words in the name that NVML has
	Product float64 // FLOP/s with bfloat16, without sparsity
	Link    float64 // bytes/s of PCIe in one direction
	Source  string
}

// Speeds returns the models whose speed is published. The first model that matches a
// name counts.
func Speeds() []Speed {
	const h100 = "https://www.nvidia.com/en-us/data-center/h100/"
	const h200 = "https://www.nvidia.com/en-us/data-center/h200/"
	const tera, gen4, gen5 = 1e12, 32e9, 64e9
	return []Speed{
		{"H200 NVL", 835 * tera, gen5, h200},
		{"H200", 989 * tera, gen5, h200},
		{"H100 NVL", 835 * tera, gen5, h100},
		{"H100 PCIe", 756 * tera, gen5, h100},
		{"H100", 989 * tera, gen5, h100},
		{"A100", 312 * tera, gen4, "https://www.nvidia.com/en-us/data-center/a100/"},
		{"L40S", 362 * tera, gen4, "https://www.nvidia.com/en-us/data-center/l40s/"},
		{"L4", 121 * tera, gen4, "https://www.nvidia.com/en-us/data-center/l4/"},
		{"A10", 125 * tera, gen4, "https://www.nvidia.com/en-us/data-center/products/a10-gpu/"},
	}
}

// Parts of the published speed below which a GPU is slow. Large products reach 0.5 to 0.9
// of it, and copies from pinned memory 0.6 to 0.9; virtual machines, older slots and
// limits of power leave less of it.
const (
	leastProduct = 0.25
	leastLink    = 0.125
)

// speedOf returns the published speed of a model; false: none is known.
func speedOf(name string) (Speed, bool) {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
	for _, s := range Speeds() {
		if containsAll(words, strings.Fields(s.Name)) {
			return s, true
		}
	}
	return Speed{}, false
}

func containsAll(all, some []string) bool {
	for _, word := range some {
		found := false
		for _, w := range all {
			found = found || strings.EqualFold(w, word)
		}
		if !found {
			return false
		}
	}
	return true
}

func checkCompute(_ Expectation, r *Reading) string {
	if r.Measured == nil || r.Measured.Failed == "" {
		return ""
	}
	return "it fails the trainer's measurement: " + r.Measured.Failed
}

func checkProduct(_ Expectation, r *Reading) string {
	s, known := speedOf(r.Name)
	if !known || r.Measured == nil || r.Measured.Product == 0 || r.Measured.Product >= leastProduct*s.Product {
		return ""
	}
	return fmt.Sprintf("its products are slow: %.3g of %.3g TFLOP/s that NVIDIA publishes", r.Measured.Product/1e12, s.Product/1e12)
}

func checkLink(_ Expectation, r *Reading) string {
	s, known := speedOf(r.Name)
	if !known || r.Measured == nil || r.Measured.Product == 0 {
		return ""
	}
	slower := min(r.Measured.Upload, r.Measured.Download)
	if slower >= leastLink*s.Link {
		return ""
	}
	return fmt.Sprintf("copies between it and the host are slow: %.3g of %.3g GB/s that NVIDIA publishes", slower/1e9, s.Link/1e9)
}

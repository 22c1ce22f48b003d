package optimizer

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/runtime/model"
)

// torchNumbers is what testdata/optimizers.py prints: PyTorch's parameters and
// slots after updates whose gradient is a·w - b.
type torchNumbers struct {
	Torch string    `json:"torch"`
	W     []float32 `json:"w"`
	A     []float32 `json:"a"`
	B     []float32 `json:"b"`
	Cases []struct {
		Name    string      `json:"name"`
		Recipe  Recipe      `json:"recipe"`
		Updates int         `json:"updates"`
		Vectors [][]float64 `json:"vectors"` // parameters, then slots
	} `json:"cases"`
}

// compareWithTorch compares Update with numbers of PyTorch: one update within
// 1e-6, more within 1e-4, relative to each number.
func compareWithTorch(t *testing.T, text []byte) {
	t.Helper()
	var numbers torchNumbers
	if err := json.Unmarshal(text, &numbers); err != nil {
		t.Fatal(err)
	}
	n := len(numbers.W)
	if n != 64 || len(numbers.Cases) != 20 {
		t.Fatalf("%d parameters, %d cases", n, len(numbers.Cases))
	}
	t.Logf("PyTorch %s", numbers.Torch)
	for _, c := range numbers.Cases {
		vectors := [][]float32{append([]float32(nil), numbers.W...)}
		for range c.Recipe.Slots() {
			vectors = append(vectors, make([]float32, n))
		}
		vars, sums := []model.Var{{Name: "w", Len: n, Decay: true}}, make([]float32, n)
		for step := range c.Updates {
			const weight = 4 // a power of two: sums are exact
			for i, w := range vectors[0] {
				product := numbers.A[i] * w
				sums[i] = weight * (product - numbers.B[i])
			}
			if c.Recipe.Name == Adam || c.Recipe.Name == AdamW {
				c.Recipe.Step = int64(step + 1)
			}
			if err := c.Recipe.Validate(); err != nil {
				t.Fatal(err)
			}
			Update(vectors[0], vectors[1:], sums, weight, vars, c.Recipe)
		}
		if len(vectors) != len(c.Vectors) {
			t.Errorf("%s: %d vectors, PyTorch has %d", c.Name, len(vectors), len(c.Vectors))
			continue
		}
		most := 1e-6
		if c.Updates > 1 {
			most = 1e-4
		}
		worst := 0.0
		for k, want := range c.Vectors {
			for i, x := range want {
				worst = max(worst, math.Abs(float64(vectors[k][i])-x)/math.Abs(x))
			}
		}
		t.Logf("%s, %d updates: within %.1e", c.Name, c.Updates, worst)
		if !(worst <= most) {
			t.Errorf("%s, %d updates: relative error %g, want at most %g", c.Name, c.Updates, worst, most)
		}
	}
}

// Optimizers compute as those of PyTorch 1.13.
func TestUpdateAsTorch(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "optimizers.json"))
	if err != nil {
		t.Fatal(err)
	}
	compareWithTorch(t, text)
}

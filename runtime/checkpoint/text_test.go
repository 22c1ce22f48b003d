package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// written returns the text of a manifest's file.
func written(t *testing.T) []byte {
	t.Helper()
	m := Manifest{
		Step: 7, Term: 3, Run: "hash", Records: 10, Ledger: []spec.EpochLedger{{Ranges: [][2]int64{{0, 4}}}},
		Model: &model.Model{Name: "mlp", Layers: []model.Layer{{Name: "output", Op: model.Dense, Units: 10}}},
		Vars:  []model.Var{{Name: "output/bias", Len: 4}}, Recipe: optimizer.Recipe{LearningRate: 0.5},
		Parts: []Part{{Name: "server-0.f32", To: 4, Vectors: 1}},
	}
	text, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// changed returns a manifest's file with other text in it, as the version that
// has such text would have written it.
func changed(t *testing.T, from, to string) []byte {
	t.Helper()
	text := written(t)
	head := bytes.Replace(text[:len(text)-len(behindSum)-64], []byte(from), []byte(to), 1)
	if bytes.HasPrefix(text, head) {
		t.Fatalf("the manifest has no %s", from)
	}
	return append(head, digest(head)+behindSum...)
}

// A version that follows may write what this one does not know.
func TestManifestsOfNewerVersions(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		newer    bool
	}{
		"the same":               {`"seed": 0`, `"seed": 1`, false},
		"a field of the run":     {`"step": 7`, `"step": 7, "mood": {"of": ["the", "day"]}`, false},
		"a field of a part":      {`"vectors": 1`, `"vectors": 1, "compressed": false`, false},
		"other white space":      {`"step": 7`, `"step":   7`, false},
		"a field of the model":   {`"classes": 0`, `"classes": 0, "embedding": 3`, true},
		"a field of a layer":     {`"op": "dense"`, `"op": "dense", "sparse": true`, true},
		"a field of a variable":  {`"Kind": 0`, `"Kind": 0, "Table": 4`, true},
		"a field of the recipe":  {`"learning_rate": 0.5`, `"learning_rate": 0.5, "beta": 0.9`, true},
		"another kind of value":  {`"step": 7`, `"step": "seven"`, true},
		"a format that is to be": {`"format": 2`, `"format": 3`, true},
	} {
		m, err := parse(changed(t, tt.from, tt.to))
		if tt.newer && (!errors.Is(err, ErrNewer) || Unusable(err)) {
			t.Errorf("%s: %v", name, err)
		}
		if !tt.newer && (err != nil || m.Step != 7 || m.Model.Layers[0].Units != 10) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// Whatever bit is another one, the manifest is damaged, and nothing else.
func TestEachBitCounts(t *testing.T) {
	text := written(t)
	if _, err := parse(text); err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(text) {
		text[i/8] ^= 1 << (i % 8)
		if _, err := parse(text); !errors.Is(err, ErrDamaged) {
			t.Fatalf("with another bit %d of byte %d: %v", i%8, i/8, err)
		}
		text[i/8] ^= 1 << (i % 8)
	}
	for n := range text {
		if _, err := parse(text[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("of %d bytes, %d are there: %v", len(text), n, err)
		}
	}
}

// testdata/manifest-first.json was written by stoke-trainer at commit 2bfdd80,
// whose checksum is of the values.
func TestManifestOfTheFirstFormat(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "manifest-first.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := parse(text)
	if err != nil || m.Step != 46 || m.Term != 1 || m.Class != "amd64 v1 fma" || len(m.Model.Layers) != 9 || m.Metrics["accuracy"] != 0.7925 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, spoil := range [][2]string{{`"step": 46`, `"step": 47`}, {`"Decay": true`, `"Decay": frue`}, {`"checksum": "c2`, `"checksum": "c3`}, {`"step": 46`, `"format": 2, "step": 46`}} {
		spoilt := strings.Replace(string(text), spoil[0], spoil[1], 1)
		if _, err := parse([]byte(spoilt)); spoilt == string(text) || !errors.Is(err, ErrDamaged) {
			t.Errorf("with %s: %v", spoil[1], err)
		}
	}
	again, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if now, err := parse(again); err != nil || now.Step != m.Step || now.Format != format {
		t.Errorf("written again, it is %+v, %v", now, err)
	}
}

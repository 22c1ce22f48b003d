package nvidia

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/facts"
)

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		id, name  string
		arch      Architecture
		open, old bool // needs the open modules, too old for them
		newest    int
	}{
		{"10de:20b2", "A100 SXM4 80GB", Ampere, false, false, 0},
		{"10de:2330", "H100 SXM5 80GB", Hopper, false, false, 0},
		{"10de:1eb8", "Tesla T4", Turing, false, false, 0},
		{"10de:15f8", "Tesla P100 PCIe 16GB", Pascal, false, true, 580},
		{"10de:1db6", "Tesla V100 PCIe 32GB", Volta, false, true, 580},
		{"10de:17fd", "Tesla M40", Maxwell, false, true, 580},
		{"10de:102d", "10de:102d", Ancient, false, true, 470},
		{"10de:2901", "B200", Blackwell, true, false, 0},
		{"10de:2342", "GH200 120GB", Hopper, true, false, 0},
		{"10de:2684", "GeForce RTX 4090", Ada, false, false, 0},
		{"10de:7777", "10de:7777", Unknown, false, false, 0},
	} {
		all := devices([]facts.GPU{{ID: c.id, Name: strings.TrimPrefix(c.name, c.id)}, {ID: "1002:7550"}})
		if len(all) != 1 {
			t.Errorf("%s: %v", c.id, all)
			continue
		}
		d := all[0]
		if d.Name() != c.name || d.Architecture() != c.arch || d.needsOpen() != c.open || d.tooOldForOpen() != c.old || branches[d.Architecture()].newest != c.newest {
			t.Errorf("%s: %s, %s, needs open %v, too old %v, newest %d", c.id, d.Name(), d.Architecture(), d.needsOpen(), d.tooOldForOpen(), branches[d.Architecture()].newest)
		}
	}
}

// TestRanges keeps the table of generations in order.
func TestRanges(t *testing.T) {
	for i, r := range ranges {
		if r.from > r.to || i > 0 && r.from <= ranges[i-1].to {
			t.Errorf("range %04x-%04x is out of order", r.from, r.to)
		}
	}
}

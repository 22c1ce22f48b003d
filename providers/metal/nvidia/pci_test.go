package nvidia

import (
	"strings"
	"testing"
)

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		line      string
		name      string
		arch      Architecture
		open, old bool // needs the open modules, too old for them
		newest    int
		gpu, sw   bool
	}{
		{"0000:3b:00.0 0x10de 0x20b2 0x030200 nvidia", "A100 SXM4 80GB", Ampere, false, false, 0, true, false},
		{"0000:3b:00.0 0x10de 0x2330 0x030200 -", "H100 SXM5 80GB", Hopper, false, false, 0, true, false},
		{"0000:3b:00.0 0x10de 0x22a3 0x068000 nvidia-nvswitch", "H100 NVSwitch", Unknown, false, false, 0, false, true},
		{"0000:3b:00.0 0x10de 0x1eb8 0x030200 -", "Tesla T4", Turing, false, false, 0, true, false},
		{"0000:3b:00.0 0x10de 0x15f8 0x030200 -", "Tesla P100 PCIe 16GB", Pascal, false, true, 580, true, false},
		{"0000:3b:00.0 0x10de 0x1db6 0x030200 -", "Tesla V100 PCIe 32GB", Volta, false, true, 580, true, false},
		{"0000:3b:00.0 0x10de 0x17fd 0x030200 -", "Tesla M40", Maxwell, false, true, 580, true, false},
		{"0000:3b:00.0 0x10de 0x102d 0x030200 -", "10de:102d", Ancient, false, true, 470, true, false},
		{"0000:3b:00.0 0x10de 0x2901 0x030200 -", "B200", Blackwell, true, false, 0, true, false},
		{"0000:3b:00.0 0x10de 0x2342 0x030200 -", "GH200 120GB", Hopper, true, false, 0, true, false},
		{"0000:01:00.0 0x10de 0x2684 0x030000 nouveau", "GeForce RTX 4090", Ada, false, false, 0, true, false},
		{"0000:01:00.0 0x10de 0x7777 0x030000 -", "10de:7777", Unknown, false, false, 0, true, false},
	} {
		d, ok, err := parseDevice(c.line)
		if err != nil || !ok {
			t.Errorf("%s: %v %v", c.line, ok, err)
			continue
		}
		if d.Name() != c.name || d.Architecture() != c.arch || d.needsOpen() != c.open || d.tooOldForOpen() != c.old ||
			d.Architecture().Newest() != c.newest || d.GPU() != c.gpu || d.NVSwitch() != c.sw {
			t.Errorf("%s: %s, %s, needs open %v, too old %v, newest %d, GPU %v, NVSwitch %v",
				c.line, d.Name(), d.Architecture(), d.needsOpen(), d.tooOldForOpen(), d.Architecture().Newest(), d.GPU(), d.NVSwitch())
		}
	}
	for _, line := range []string{
		"0000:01:00.1 0x10de 0x22ba 0x040300 snd_hda_intel", // the GPU's sound
		"0000:00:00.0 0x10de 0x0a82 0x060000 -",             // an old chipset
		"0000:00:01.0 0x10de 0x00ff 0x068000 -",             // a bridge of one
		"0000:01:00.0 0x1002 0x7550 0x030000 amdgpu",
	} {
		if _, ok, err := parseDevice(line); ok || err != nil {
			t.Errorf("%s is taken for NVIDIA's: %v", line, err)
		}
	}
	for _, line := range []string{"", "a b c", "0000:01:00.0 10de 0x1 0x2 -", "0000:01:00.0 0x10de 0x123456 0x030000 -", strings.Repeat("x", 99) + " 0x10de 0x1 0x2 -"} {
		if _, _, err := parseDevice(line); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}

// TestNames keeps the table of names within the table of generations.
func TestNames(t *testing.T) {
	for id, name := range deviceNames {
		if d := (Device{ID: id, Class: class3D}); d.Architecture() == Unknown && !strings.Contains(name, "NVSwitch") {
			t.Errorf("%04x %s is of no generation", id, name)
		}
	}
	for i, r := range ranges {
		if r.from > r.to || i > 0 && r.from <= ranges[i-1].to {
			t.Errorf("range %04x-%04x is out of order", r.from, r.to)
		}
	}
}

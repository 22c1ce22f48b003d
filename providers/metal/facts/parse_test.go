package facts

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// captured are answers of machines: what the script printed there.
func captured(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) < 3 {
		t.Fatalf("only %d captured answers: %v", len(names), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".txt")] = b
	}
	return all
}

func TestParse(t *testing.T) {
	for name, out := range captured(t) {
		f, _, err := parse(out)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := json.MarshalIndent(f, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		golden := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestHostile lets every section of a true answer be rubbish, missing, twice,
// or cut off. It may be refused or be listed as unread, and must end.
func TestHostile(t *testing.T) {
	rubbish := []string{"", "\x00\xff\xfe", strings.Repeat("9", 4000), "a=b=c\tx\t\t\t\t\t\t\t\t\t", "#end", "$(reboot)\u202e`id`", "-1 -1 -1 -1", "{", "}}}}", "\xc3\x28=\x1b[2J"}
	for name, out := range captured(t) {
		for i, section := range everySection() {
			for _, r := range rubbish {
				f, _, err := parse(replaced(out, section, " "+r+"\n "+r))
				if err == nil {
					fit(t, f)
				}
			}
			if _, _, err := parse(replaced(out, section, "")); err == nil && bytes.Contains(out, []byte("#"+section+"\n")) && (section == "machine" || section == "memory") {
				t.Errorf("%s: an empty %s is taken", name, section)
			}
			at := bytes.Index(out, []byte("#"+section+"\n"))
			if _, _, err := parse(out[:at]); err == nil {
				t.Errorf("%s: an answer that ends before section %d, %s, is taken", name, i, section)
			}
			twice := append(bytes.Clone(out), []byte("#"+section+"\n x\n")...)
			if _, _, err := parse(twice); err == nil {
				t.Errorf("%s: section %s twice is taken", name, section)
			}
		}
		if f, _, err := parse(append([]byte("Welcome!\n#os\n ID=x\n"), out...)); err != nil || f.OS.ID == "x" {
			t.Errorf("%s: a login script that greets: %v, %v", name, f.OS, err)
		}
	}
	for _, out := range []string{"", "sh: not found", "#stoke-facts 2\n"} {
		if _, _, err := parse([]byte(out)); err == nil {
			t.Errorf("%q is taken", out)
		}
	}
}

// replaced has another content in a section.
func replaced(out []byte, section, content string) []byte {
	head := []byte("#" + section + "\n")
	at := bytes.Index(out, head)
	if at < 0 {
		return out
	}
	rest := out[at+len(head):]
	end := len(rest)
	if i := bytes.Index(rest, []byte("\n#")); i >= 0 {
		end = i + 1
	} else if rest[0] == '#' {
		end = 0
	}
	return append(append(append(bytes.Clone(out[:at]), head...), content+"\n"...), rest[end:]...)
}

// fit fails when facts hold anything that cannot be stored or shown.
func fit(t testing.TB, f Facts) {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	texts(v, func(s string) {
		if len(s) > longestText+40 || s != clean(s) && !strings.HasSuffix(s, "…") {
			t.Fatalf("a text that is not clean: %q", s)
		}
	})
}

func texts(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			texts(e, visit)
		}
	case map[string]any:
		for k, e := range v {
			visit(k)
			texts(e, visit)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, out := range captured(f) {
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		if facts, _, err := parse(out); err == nil {
			fit(t, facts)
			Preflight(facts, Needs{Role: ControlPlane, PodNetworks: []string{"10.244.0.0/16"}, ServiceNetwork: "10.96.0.0/12"})
			CompareHosts(map[string]Member{"a": {Facts: facts, Address: "10.0.0.1"}, "b": {Facts: facts, Address: "10.0.0.2"}})
		}
	})
}

// FuzzGrub reads menus alone: whatever one says, the kernel that boots is one
// that it names.
func FuzzGrub(f *testing.F) {
	for _, out := range captured(f) {
		a, err := split(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.Join(a.sections["grub"], "\n"), strings.Join(a.sections["grubenv"], "\n"))
	}
	f.Add("submenu a {\nmenuentry 'b>c' {\nlinux /vmlinuz-1\n}\n}\nset default=\"0>0\"", "saved_entry=0>9\nnext_entry=b>c")
	f.Fuzz(func(t *testing.T, menu, env string) {
		a := &answer{sections: map[string][]string{"grub": strings.Split(menu, "\n"), "grubenv": strings.Split(env, "\n")}}
		if v := a.grub(); v != "" && !strings.Contains(strings.NewReplacer("\\", "", "'", "", `"`, "").Replace(menu), strings.NewReplacer("\\", "", "'", "", `"`, "").Replace(v)) {
			t.Errorf("%q boots from %q", v, menu)
		}
	})
}

func TestGrub(t *testing.T) {
	menu := `set default="${next_entry}"
set default="DEFAULT"
function f {
}
menuentry 'Linux' $menuentry_id_option 'simple' {
	linux	/boot/vmlinuz-6.2 root=x
}
submenu 'Advanced' --class x $menuentry_id_option 'advanced' {
	menuentry 'Linux 6.2' $menuentry_id_option 'a-6.2' {
		linux /vmlinuz-6.2
	}
	menuentry "Linux 6.1" --id a-6.1 {
		linux16 /vmlinuz-6.1
	}
}
menuentry 'Firmware' {
}`
	for _, tt := range []struct{ set, env, want string }{
		{"0", "", "6.2"},
		{"1>1", "", "6.1"},
		{"1", "", "6.2"},
		{"advanced>a-6.1", "", "6.1"},
		{"Advanced>Linux 6.1", "", "6.1"},
		{"${saved_entry}", "saved_entry=advanced>a-6.1", "6.1"},
		{"${saved_entry}", "", "6.2"},
		{"0", "next_entry=1>1", "6.1"},
		{"gone>away", "", "6.2"},
		{"1>7", "", "6.2"},
		{"Firmware", "", ""},
	} {
		a := &answer{sections: map[string][]string{"grub": strings.Split(strings.Replace(menu, "DEFAULT", tt.set, 1), "\n"), "grubenv": strings.Split(tt.env, "\n")}}
		if got := a.grub(); got != tt.want {
			t.Errorf("default %q, %q: boots %q, want %q", tt.set, tt.env, got, tt.want)
		}
	}
}

func TestOldestFirst(t *testing.T) {
	order := []string{"5.15.0-9-generic", "5.15.0-101-generic", "6.1.0-9-amd64", "6.1.0-40-amd64", "6.8.0-rc1", "6.8.0", "6.8.0-85-generic", "6.12.1"}
	names := "vmlinuz-" + strings.Join(order, "\nvmlinuz-") + "\n"
	for range 10 {
		mixed := strings.SplitAfter(strings.TrimSuffix(names, "\n"), "\n")
		mixed[len(mixed)-1] += "\n"
		rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		sort := exec.Command("sh", "-c", oldestFirst)
		sort.Stdin = strings.NewReader(strings.Join(mixed, ""))
		got, err := sort.Output()
		if diff := cmp.Diff(names, string(got)); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
}

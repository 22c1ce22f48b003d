package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is what is wished of one object.
type file struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// model is what is wished of all objects: one is replaced by deleting first,
// two by creating first. What is abandoned is on disk, made by stoke and no
// longer in the state; what is found was made by hand.
type model struct {
	one, two  map[string]file // by for_each key
	label     string          // what resource one is called now
	from      string          // what it was called before, for a moved block
	imports   map[string]file // of two, by key: files that are there
	abandoned map[string]bool // names
	found     map[string]bool // names
	made      int             // for names
	backend   string
}

func newModel() model {
	m := model{one: map[string]file{}, two: map[string]file{}, label: "one", imports: map[string]file{}, abandoned: map[string]bool{}, found: map[string]bool{}}
	for range crashObjects / 2 {
		m.add(m.one)
		m.add(m.two)
	}
	return m
}

func (m *model) fresh() string {
	m.made++
	return fmt.Sprintf("n%05d", m.made)
}

func (m *model) add(to map[string]file) string {
	name := m.fresh()
	to["k"+name] = file{Name: name, Content: "first"}
	return "k" + name
}

const crashConfig = `
%s
variable "one" { type = map(object({ name = string, content = string })) }
variable "two" { type = map(object({ name = string, content = string })) }
resource "test_file" "%s" {
  for_each  = var.one
  directory = "${path.root}/out"
  name      = each.value.name
  content   = each.value.content
}
resource "test_file" "two" {
  for_each  = var.two
  directory = "${path.root}/out"
  name      = each.value.name
  content   = each.value.content
  lifecycle { create_before_destroy = true }
}
`

// write puts the configuration and the wishes where stoke reads them.
func (l *life) write() {
	var text strings.Builder
	fmt.Fprintf(&text, crashConfig, l.backend, l.label)
	if l.from != "" && l.from != l.label {
		fmt.Fprintf(&text, "moved {\n  from = test_file.%s\n  to = test_file.%s\n}\n", l.from, l.label)
	}
	for _, key := range slices.Sorted(maps.Keys(l.imports)) {
		fmt.Fprintf(&text, "import {\n  to = test_file.two[%q]\n  id = \"${path.root}/out/%s\"\n}\n", key, l.imports[key].Name)
	}
	wishes, err := json.Marshal(map[string]any{"one": l.one, "two": l.two})
	if err != nil {
		l.t.Fatal(err)
	}
	for name, data := range map[string][]byte{"main.tf": []byte(text.String()), "terraform.tfvars.json": wishes} {
		if err := os.WriteFile(filepath.Join(l.dir, name), data, 0o644); err != nil {
			l.t.Fatal(err)
		}
	}
}

// check compares what there is with what is wished, and with what the state
// and the provider's log say.
func (l *life) check() {
	want := map[string]string{}
	for _, all := range []map[string]file{l.one, l.two} {
		for _, f := range all {
			want[f.Name] = f.Content
		}
	}
	for name := range l.abandoned {
		want[name] = "" // whatever it was
	}
	there := l.onDisk()
	for name, content := range want {
		if got, ok := there[name]; !ok {
			l.t.Errorf("%s is not there", name)
		} else if got != content && !l.abandoned[name] {
			l.t.Errorf("%s holds %q, want %q", name, got, content)
		}
	}
	files := slices.Sorted(maps.Keys(there))
	for _, name := range files {
		if _, ok := want[name]; !ok {
			l.t.Errorf("%s is there, and nothing wants it", name)
		}
	}
	l.same("the state", without(files, l.abandoned), l.stored())
	l.same("the provider's log", without(files, l.found), without(l.logged(), l.found))
}

func without(names []string, some map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return some[name] })
}

func (l *life) same(what string, files, others []string) {
	slices.Sort(others)
	if !slices.Equal(files, others) {
		l.t.Errorf("the folder has %d files, %s has %d others or not the same:\n%v\n%v", len(files), what, len(others), files, others)
	}
}

// onDisk reads the files: name to content, without the line of the mark.
func (l *life) onDisk() map[string]string {
	there := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(l.dir, "out"))
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "creates.log" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(l.dir, "out", e.Name()))
		if err != nil {
			l.t.Fatal(err)
		}
		content := string(b)
		if mark, rest, ok := strings.Cut(content, "\n"); ok && strings.HasPrefix(mark, "stoke-mark ") {
			content = rest
		}
		there[e.Name()] = content
	}
	return there
}

// stored lists the names of the files that the state knows, deposed ones too.
func (l *life) stored() []string {
	var s struct {
		Version   int
		Resources []struct {
			Instances []struct {
				Attributes struct{ Name string }
			}
		}
	}
	if err := json.Unmarshal(l.must("state", "pull"), &s); err != nil {
		l.t.Fatal(err)
	}
	if s.Version != 4 {
		l.t.Errorf("the state has version %d, the journal was not folded", s.Version)
	}
	var names []string
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			names = append(names, i.Attributes.Name)
		}
	}
	return names
}

// logged replays the provider's log of creates and deletes.
func (l *life) logged() []string {
	b, err := os.ReadFile(filepath.Join(l.dir, "out", "creates.log"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		l.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			l.t.Errorf("the provider's log has a line %q", line)
			continue
		}
		name := filepath.Base(fields[2])
		switch fields[0] {
		case "create":
			if there[name] {
				l.t.Errorf("%s was made twice", name)
			}
			there[name] = true
		case "delete":
			delete(there, name)
		}
	}
	return slices.Collect(maps.Keys(there))
}

package main

import (
	"os"
	"path/filepath"
	"strings"
)

// some is how many objects a chapter touches.
const some = max(3, crashObjects/4)

// chapters lists what can happen. Each keeps the number of objects about
// where it is.
func (l *life) chapters() []chapter {
	apply := []string{"apply", "-auto-approve", "-input=false"}
	return []chapter{
		{name: "create", args: apply, arrange: func() {
			for range some {
				l.add(l.one)
				l.add(l.two)
			}
		}},
		{name: "update", args: apply, arrange: func() {
			for _, all := range []map[string]file{l.one, l.two} {
				for _, key := range pick(l.rng, all, some) {
					all[key] = file{Name: all[key].Name, Content: "again " + l.fresh()}
				}
			}
		}},
		{name: "replace", args: apply, arrange: func() {
			for _, all := range []map[string]file{l.one, l.two} {
				for _, key := range pick(l.rng, all, some) {
					all[key] = file{Name: l.fresh(), Content: all[key].Content}
				}
			}
		}},
		{name: "delete", args: apply, arrange: func() {
			for _, all := range []map[string]file{l.one, l.two} {
				for _, key := range pick(l.rng, all, max(1, len(all)-crashObjects/3)) {
					delete(all, key)
				}
			}
		}},
		{name: "destroy", args: []string{"destroy", "-auto-approve", "-input=false"}, settled: func() {
			if n := len(l.onDisk()) - len(l.abandoned); n != 0 {
				l.t.Errorf("%d files are left after destroy", n)
			}
		}},
		{name: "move", args: apply, arrange: func() {
			l.from, l.label = l.label, map[string]string{"one": "uno", "uno": "one"}[l.label]
		}, settled: func() { l.from = "" }},
		{name: "import", args: apply, arrange: func() {
			for range some {
				key := l.add(l.two)
				l.byHand(l.two[key])
				l.imports[key] = l.two[key]
			}
		}, settled: func() { clear(l.imports) }},
		l.importCommand(),
		l.stateMove(),
		l.stateRemove(),
	}
}

// byHand makes a file that stoke did not make.
func (l *life) byHand(f file) {
	l.found[f.Name] = true
	out := filepath.Join(l.dir, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, f.Name), []byte(f.Content), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) listed(addr string) bool {
	if len(l.must("state", "pull")) == 0 {
		return false // killed before there was a state
	}
	for line := range strings.Lines(string(l.must("state", "list"))) {
		if strings.TrimSpace(line) == addr {
			return true
		}
	}
	return false
}

func (l *life) importCommand() chapter {
	var addr string
	c := chapter{name: "import command", args: []string{"import", "-input=false", "", ""}}
	c.arrange = func() {
		key := l.add(l.two)
		l.byHand(l.two[key])
		addr = `test_file.two["` + key + `"]`
		c.args[2], c.args[3] = addr, "./out/"+l.two[key].Name
	}
	c.again = func() bool { return l.listed(addr) }
	return c
}

func (l *life) stateMove() chapter {
	var from, to string
	c := chapter{name: "state mv", args: []string{"state", "mv", "", ""}}
	c.arrange = func() {
		keys := pick(l.rng, l.one, 1)
		if len(keys) == 0 {
			keys = []string{l.add(l.one)}
			l.write()
			l.must("apply", "-auto-approve", "-input=false")
		}
		from, to = "test_file."+l.label+`["`+keys[0]+`"]`, `test_file.two["`+keys[0]+`"]`
		c.args[2], c.args[3] = from, to
		l.two[keys[0]] = l.one[keys[0]]
		delete(l.one, keys[0])
	}
	c.again = func() bool { return l.listed(to) && !l.listed(from) }
	return c
}

func (l *life) stateRemove() chapter {
	var addr string
	c := chapter{name: "state rm", args: []string{"state", "rm", ""}}
	c.arrange = func() {
		keys := pick(l.rng, l.two, 1)
		if len(keys) == 0 {
			keys = []string{l.add(l.two)}
			l.write()
			l.must("apply", "-auto-approve", "-input=false")
		}
		addr = `test_file.two["` + keys[0] + `"]`
		c.args[2] = addr
		l.abandoned[l.two[keys[0]].Name] = true
		delete(l.two, keys[0])
	}
	c.again = func() bool { return !l.listed(addr) }
	return c
}

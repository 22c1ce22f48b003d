package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// orderWorld is a random configuration of files that depend on each other, in
// versions that follow each other.
type orderWorld struct {
	rng  *rand.Rand
	size int
	old  orderVersion
	now  orderVersion
	lost map[int]bool // files that somebody else has removed since
	rm   map[int]bool // files that state rm has taken out since
}

// orderVersion is what a configuration declares, by number; what a node depends
// on has a smaller one.
type orderVersion map[int]*orderNode

type orderNode struct {
	data    bool
	reads   int // the file that a data source reads
	count   int // -1: there is no count
	deps    []int
	name    int // a new one is a new object
	text    int
	cbd     bool
	slow    bool
	fails   bool // its update does
	forgets bool // it is a removed block: the object is to stay
}

func newOrderWorld(seed uint64, size int) *orderWorld {
	w := &orderWorld{rng: rand.New(rand.NewPCG(seed, 0)), size: size, old: orderVersion{}, now: orderVersion{}, lost: map[int]bool{}, rm: map[int]bool{}}
	for i := range size {
		if !w.chance(5) {
			w.now[i] = w.node(i)
		}
	}
	return w
}

func (w *orderWorld) chance(percent int) bool { return w.rng.IntN(100) < percent }

// node makes a node that depends on some of those before it, of which it
// prefers the last ones: chains are what may break.
func (w *orderWorld) node(i int) *orderNode {
	n := &orderNode{count: -1, cbd: w.chance(10), slow: w.chance(20)}
	for range w.rng.IntN(4) {
		w.depend(n, i)
	}
	switch {
	case w.chance(20):
		if n.reads = w.readable(i); n.reads >= 0 {
			n.data, n.cbd = true, false
			if !slices.Contains(n.deps, n.reads) {
				n.deps = append(n.deps, n.reads)
			}
		}
	case w.chance(25):
		n.count = w.rng.IntN(3)
	}
	return n
}

func (w *orderWorld) depend(n *orderNode, i int) {
	if i == 0 {
		return
	}
	d := w.rng.IntN(i)
	if w.chance(70) {
		d = max(0, i-1-w.rng.IntN(6))
	}
	if t := w.now[d]; t != nil && !t.forgets && !slices.Contains(n.deps, d) {
		n.deps = append(n.deps, d)
	}
}

// readable is a file before i that a data source can read, or -1.
func (w *orderWorld) readable(i int) int {
	for range 8 {
		if i == 0 {
			break
		}
		j := w.rng.IntN(i)
		if t := w.now[j]; t != nil && !t.data && !t.forgets && t.count < 0 {
			return j
		}
	}
	return -1
}

// change makes the next version.
func (w *orderWorld) change() {
	w.old, w.now = w.now, orderVersion{}
	clear(w.lost)
	for i := range w.size {
		was := w.old[i]
		if was == nil || was.forgets {
			if was == nil && w.chance(20) {
				w.now[i] = w.node(i)
			}
			continue
		}
		if w.chance(12) {
			continue
		}
		if !was.data && was.count < 0 && w.chance(4) {
			w.now[i] = &orderNode{forgets: true}
			continue
		}
		n := *was
		n.deps = nil
		for _, d := range was.deps {
			if t := w.now[d]; t != nil && !t.forgets && (d == was.reads && was.data || !w.chance(10)) {
				n.deps = append(n.deps, d)
			}
		}
		if t := w.now[n.reads]; n.data && (t == nil || t.forgets || t.count >= 0) {
			if n.reads = w.readable(i); n.reads < 0 {
				continue
			}
			if !slices.Contains(n.deps, n.reads) {
				n.deps = append(n.deps, n.reads)
			}
		}
		if w.chance(5) {
			w.depend(&n, i)
		}
		if !n.data {
			if n.count >= 0 && w.chance(40) {
				n.count = w.rng.IntN(3)
			}
			if w.chance(15) {
				n.name++
			}
			if w.chance(15) {
				n.text++
			}
			if w.chance(5) {
				n.cbd = !n.cbd
			}
		}
		w.now[i] = &n
	}
	w.untie()
}

// untie takes back replacements that no order allows, with Terraform neither:
// an old object that has to outlive the update of its users cannot outlive what
// it was made from.
func (w *orderWorld) untie() {
	for changed := true; changed; {
		changed = false
		first := w.first()
		reach := w.old.closure(nil)
		for _, i := range w.now.nodes() {
			n, was := w.now[i], w.old[i]
			if was == nil || n.forgets || n.data || was.name == n.name || !first[i] {
				continue
			}
			for d := range reach[i] {
				if t := w.now[d]; t != nil && !t.forgets && !t.data && t.name != w.old[d].name && !first[d] {
					t.name = w.old[d].name
					changed = true
				}
			}
		}
	}
}

// first tells which nodes are made anew before the old one goes: those that ask
// for it, and what they depend on.
func (w *orderWorld) first() map[int]bool {
	first := map[int]bool{}
	reach := w.now.closure(nil)
	for i, n := range w.now {
		if n.cbd {
			first[i] = true
			for d := range reach[i] {
				first[d] = true
			}
		}
	}
	return first
}

// lose picks files for somebody else to remove, and returns their names. None
// that a data source reads.
func (w *orderWorld) lose(percent int) []string {
	read := map[int]bool{}
	for _, n := range w.now {
		if n.data {
			read[n.reads] = true
		}
	}
	for _, n := range w.old {
		if n.data {
			read[n.reads] = true
		}
	}
	var names []string
	for _, i := range w.old.nodes() {
		n := w.old[i]
		if n.data || n.forgets || n.count == 0 || read[i] || w.rm[i] || !w.chance(percent) {
			continue
		}
		w.lost[i] = true
		for k := range max(1, n.count) {
			names = append(names, n.file(i, k))
		}
	}
	return names
}

// fail picks files whose update fails, and reports whether there are any.
func (w *orderWorld) fail(percent int) bool {
	some := false
	for _, i := range w.now.nodes() {
		n, was := w.now[i], w.old[i]
		stays := was != nil && !n.data && !n.forgets && !w.lost[i] && n.count == was.count && n.count != 0 && n.name == was.name
		n.fails = stays && w.chance(percent)
		some = some || n.fails
	}
	return some
}

// nodes lists the version's nodes, each after what it depends on.
func (v orderVersion) nodes() []int { return slices.Sorted(maps.Keys(v)) }

// closure maps each node to all that it depends on, through those that pass
// says (nil: all).
func (v orderVersion) closure(pass func(int) bool) map[int]map[int]bool {
	all := map[int]map[int]bool{}
	for _, i := range v.nodes() {
		reach := map[int]bool{}
		for _, d := range v[i].deps {
			reach[d] = true
			if pass == nil || pass(d) {
				for e := range all[d] {
					reach[e] = true
				}
			}
		}
		all[i] = reach
	}
	return all
}

func (n *orderNode) file(i, k int) string { return fmt.Sprintf("o%d.%d.%d", i, n.name, k) }

// config writes the version as a configuration, with files in a folder.
func (v orderVersion) config(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  files = %q\n}\n", folder)
	b.WriteString("terraform {\n  required_providers {\n    test = {\n      source = \"stokehq/test\"\n    }\n  }\n}\n")
	for _, i := range v.nodes() {
		n := v[i]
		switch {
		case n.forgets:
			fmt.Fprintf(&b, "removed {\n  from = test_file.o%d\n  lifecycle {\n    destroy = false\n  }\n}\n", i)
		case n.data:
			fmt.Fprintf(&b, "data \"test_file\" \"o%d\" {\n  directory = local.files\n  name = test_file.o%d.name\n  depends_on = [%s]\n}\n", i, n.reads, v.names(n))
		default:
			fmt.Fprintf(&b, "resource \"test_file\" \"o%d\" {\n  directory = local.files\n", i)
			index := "0"
			if n.count >= 0 {
				fmt.Fprintf(&b, "  count = %d\n", n.count)
				index = "${count.index}"
			}
			fmt.Fprintf(&b, "  name = \"o%d.%d.%s\"\n  content = join(\" \", [\"%d\"%s])\n", i, n.name, index, n.text, v.values(i, n))
			if n.slow {
				b.WriteString("  delay = \"2ms\"\n")
			}
			if n.fails {
				b.WriteString("  fail = \"update\"\n")
			}
			if n.cbd {
				b.WriteString("  lifecycle {\n    create_before_destroy = true\n  }\n")
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}

// names lists what a node depends on, for depends_on.
func (v orderVersion) names(n *orderNode) string {
	var names []string
	for _, d := range n.deps {
		name := fmt.Sprintf("test_file.o%d", d)
		if v[d].data {
			name = "data." + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// values lists attributes of what a node depends on: some change with every
// update, others only with a new object.
func (v orderVersion) values(i int, n *orderNode) string {
	var b strings.Builder
	for _, d := range n.deps {
		attribute := "sha256"
		if (i+d)%2 == 0 {
			attribute = "path"
		}
		switch t := v[d]; {
		case t.data:
			fmt.Fprintf(&b, ", data.test_file.o%d.%s", d, attribute)
		case t.count >= 0:
			fmt.Fprintf(&b, ", join(\"\", test_file.o%d[*].%s)", d, attribute)
		default:
			fmt.Fprintf(&b, ", test_file.o%d.%s", d, attribute)
		}
	}
	return b.String()
}

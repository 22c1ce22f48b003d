//go:build e2e && linux

package lab

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Snapshot is a machine as a whole: files, packages, rules, listeners, users,
// units, sysctls. Its keys are "kind thing", such as "package nginx", "content
// /etc/fstab", "sysctl vm.swappiness", its values how that thing is.
// testdata/machines/snapshot has all kinds, and what is left out because it
// changes by itself.
type Snapshot map[string]string

// Snapshot looks at the machine, past SSH.
func (m *Machine) Snapshot() Snapshot {
	m.t.Helper()
	script, err := os.ReadFile(filepath.Join(m.lab.recipe, "snapshot"))
	if err != nil {
		m.t.Fatal(err)
	}
	s := Snapshot{}
	for line := range strings.SplitSeq(m.Script(string(script)), "\n") {
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			m.t.Fatalf("machine %s: a snapshot has the line %q", m.Name, line)
		}
		s[f[0]+" "+f[1]] = f[2]
	}
	return s
}

// Diff returns the differences between two snapshots, sorted, one per line.
// Keys that match one of the patterns are left out (path.Match; "/..." at the
// end matches everything below): they are for documented leftovers of a
// destroy.
func Diff(before, after Snapshot, except ...string) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, had := before[key]
		is, has := after[key]
		switch {
		case had && has && was == is, slices.ContainsFunc(except, func(p string) bool { return matches(p, key) }):
		case !had:
			lines = append(lines, "+ "+key+": "+is)
		case !has:
			lines = append(lines, "- "+key+": "+was)
		default:
			lines = append(lines, "~ "+key+": "+was+" → "+is)
		}
	}
	return lines
}

func matches(pattern, key string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return key == dir || strings.HasPrefix(key, dir+"/")
	}
	ok, err := path.Match(pattern, key)
	return ok && err == nil
}

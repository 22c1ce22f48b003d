//go:build e2e && linux

package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// Mirror leaves a machine's apt with some packages of Debian's mirror, which is
// nearly as quick as none: of its 60,000, apt reads the descriptions each time
// that it does anything.
func Mirror(names ...string) Option { return func(o *options) { o.mirror = names } }

// onlyOf drops all packages but some from the mirror's lists on a machine.
func (m *Machine) onlyOf(names []string) error {
	lists, err := filepath.Glob(filepath.Join(m.root(), "var/lib/apt/lists/*_Packages"))
	if err != nil {
		return err
	}
	for _, list := range lists {
		all, err := os.ReadFile(list)
		if err != nil {
			return err
		}
		var some []byte
		for _, name := range names {
			begin := []byte("Package: " + name + "\n")
			for rest := all; ; {
				i := bytes.Index(rest, begin)
				if i < 0 {
					break
				}
				first := i == 0 || rest[i-1] == '\n'
				rest = rest[i:]
				if entry, _, whole := bytes.Cut(rest, []byte("\n\n")); first && whole {
					some = append(append(some, entry...), "\n\n"...)
				}
				rest = rest[len(begin):]
			}
		}
		if err := m.write(strings.TrimPrefix(list, m.root()), string(some)); err != nil {
			return err
		}
	}
	return nil
}

package modules

import (
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/syntax"
)

// file is one parsed configuration file.
type file struct {
	name     string
	body     hcl.Body
	broken   hcl.Body // what could be understood of a file with mistakes in it, else nil
	override bool     // its blocks change those of other files
	stoke    bool     // it may have stoke {} blocks
	diags    hcl.Diagnostics
}

// configurationFiles picks the names of configuration files: those of
// overrides last, each group in lexical order.
func configurationFiles(names []string) []string {
	var base, overrides []string
	for _, name := range names {
		stem, ok := configurationStem(name)
		switch {
		case !ok || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#"):
		case stem == "override" || strings.HasSuffix(stem, "_override"):
			overrides = append(overrides, name)
		default:
			base = append(base, name)
		}
	}
	return append(base, overrides...)
}

func configurationStem(name string) (string, bool) {
	for _, suffix := range []string{".tf", ".tf.json", ".stoke.hcl"} {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem, true
		}
	}
	return "", false
}

// parse reads and parses files of a folder, several at once. The result has
// the order of the names.
func (l *loader) parse(dir string, names []string) []*file {
	files := make([]*file, len(names))
	var wg sync.WaitGroup
	todo := make(chan int)
	for range min(len(names), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range todo {
				files[i] = l.parseFile(dir, names[i])
			}
		})
	}
	for i := range names {
		todo <- i
	}
	close(todo)
	wg.Wait()
	return files
}

func (l *loader) parseFile(dir, name string) *file {
	stem, _ := configurationStem(name)
	f := &file{
		name:     filepath.Join(dir, name),
		body:     hcl.EmptyBody(),
		override: stem == "override" || strings.HasSuffix(stem, "_override"),
		stoke:    strings.HasSuffix(name, ".stoke.hcl"),
	}
	content, err := l.src.Read(f.name)
	if err != nil {
		at := hcl.Range{Filename: f.name, Start: hcl.InitialPos, End: hcl.InitialPos}
		f.diags = hcl.Diagnostics{failure(&at, "File cannot be read", "%s cannot be read: %s.", f.name, cause(err))}
		return f
	}
	l.files.addConfiguration(f.name, content)
	body, diags := syntax.Parse(f.name, content)
	f.diags = diags
	if diags.HasErrors() {
		f.broken = body // half a file would only lead to errors that are none
	} else {
		f.body = body
	}
	return f
}

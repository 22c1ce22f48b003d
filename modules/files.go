package modules

import (
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// Files is every file that was read: what diagnostics quote and a saved plan
// carries. It may be used by several goroutines.
type Files struct {
	mu      sync.Mutex
	content map[string][]byte
}

// NewFiles returns an empty set of files.
func NewFiles() *Files { return &Files{content: map[string][]byte{}} }

// Add remembers a file, or a text that has a name, such as the value of a
// -var flag.
func (f *Files) Add(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content[name] = content
}

// Content returns the files by name. The caller must not change the bytes.
func (f *Files) Content() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string][]byte, len(f.content))
	for name, b := range f.content {
		all[name] = b
	}
	return all
}

// ForDiagnostics returns the files as hcl's diagnostic writer wants them.
func (f *Files) ForDiagnostics() map[string]*hcl.File {
	all := map[string]*hcl.File{}
	for name, b := range f.Content() {
		all[name] = &hcl.File{Bytes: b}
	}
	return all
}

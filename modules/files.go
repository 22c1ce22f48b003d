package modules

import (
	"maps"
	"sync"
)

// Files is every text that was read: what diagnostics quote and, the
// configuration alone, what a saved plan carries. It may be used by several
// goroutines.
type Files struct {
	mu            sync.Mutex
	configuration map[string][]byte
	values        map[string][]byte
}

// NewFiles returns an empty set of files.
func NewFiles() *Files {
	return &Files{configuration: map[string][]byte{}, values: map[string][]byte{}}
}

// AddValues remembers a file of values, or a text that has a name, such as
// the value of a -var flag. It may hold secrets.
func (f *Files) AddValues(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[name] = content
}

func (f *Files) addConfiguration(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.configuration[name] = content
}

// Content returns all files by name. The caller must not change the bytes.
func (f *Files) Content() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := maps.Clone(f.configuration)
	maps.Copy(all, f.values)
	return all
}

// Configuration returns the files that Load read, without any that give
// values to variables: Load works from them again, and a saved plan may hold
// them where it must not hold secrets.
func (f *Files) Configuration() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.configuration)
}

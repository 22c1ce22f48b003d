package schema

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

//go:embed data/*.json.gz
var data embed.FS

// Library has the schemas of all minors that stoke knows. Its zero value is ready
// for use, by several goroutines.
type Library struct {
	mu     sync.Mutex
	minors map[string]*Minor
}

// Minor has the kinds of one minor version of Kubernetes, and their schemas.
type Minor struct {
	// Version is the one that the schemas were taken from, such as "v1.36.3".
	Version string

	kinds map[gvk.GroupVersionKind]Kind
	raw   map[string]json.RawMessage // by name; until it is decoded

	mu      sync.Mutex
	decoded map[string]*spec.Schema
}

// Kind is a kind whose objects can be made.
type Kind struct {
	// Resource is what its objects are called in paths and in rules of RBAC, such as
	// "deployments".
	Resource string
	// Namespaced tells whether its objects are in namespaces.
	Namespaced bool
	// Schema is the name of its schema, which Minor.Schema knows.
	Schema string
}

// Minors lists the minors that a library knows, from old to new, such as "1.36".
func Minors() ([]string, error) {
	files, err := fs.Glob(data, "data/*.json.gz")
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "data/"), ".json.gz"))
	}
	slices.SortFunc(names, func(a, b string) int { return minor(a) - minor(b) })
	return names, err
}

// minor is the second number of a version, which begins with 1.
func minor(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		return -1
	}
	return n
}

// Minor is that of a version such as "1.36", "v1.36.3", or "v1.36.3-gke.100". It
// is an error where the library does not know it.
func (l *Library) Minor(version string) (*Minor, error) {
	name := strings.TrimPrefix(version, "v")
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 {
		name = parts[0] + "." + parts[1]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.minors[name]; m != nil {
		return m, nil
	}
	text, err := unpack("data/" + name + ".json.gz")
	if err != nil {
		known, err := Minors()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("stoke has no schemas of Kubernetes %s, only of %s", version, strings.Join(known, ", "))
	}
	m, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("schemas of Kubernetes %s: %w", name, err)
	}
	if l.minors == nil {
		l.minors = map[string]*Minor{}
	}
	l.minors[name] = m
	return m, nil
}

func unpack(file string) ([]byte, error) {
	packed, err := data.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(r)
	return text.Bytes(), err
}

func read(text []byte) (*Minor, error) {
	var document struct {
		Version string
		Kinds   []struct {
			Group, Version, Kind, Resource string
			Namespaced                     bool
			Schema                         string
		}
		Schemas map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	m := &Minor{Version: document.Version, raw: document.Schemas, kinds: map[gvk.GroupVersionKind]Kind{}, decoded: map[string]*spec.Schema{}}
	for _, k := range document.Kinds {
		m.kinds[gvk.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}] = Kind{Resource: k.Resource, Namespaced: k.Namespaced, Schema: k.Schema}
	}
	return m, nil
}

// Kind looks a kind up. It is not there where the minor does not serve it, and
// where it is a custom resource's.
func (m *Minor) Kind(of gvk.GroupVersionKind) (Kind, bool) {
	k, ok := m.kinds[of]
	return k, ok
}

// Kinds lists all kinds, in the order of group, version, and kind.
func (m *Minor) Kinds() []gvk.GroupVersionKind {
	var all []gvk.GroupVersionKind
	for k := range m.kinds {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b gvk.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// reference is how schemas refer to each other.
const reference = "#/components/schemas/"

// Schema is the schema of a name, or of a reference to one as schemas contain
// them. References in it are for Schema again. The schema belongs to the Minor:
// do not change it.
func (m *Minor) Schema(name string) (*spec.Schema, error) {
	name = strings.TrimPrefix(name, reference)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decode(name)
}

func (m *Minor) decode(name string) (*spec.Schema, error) {
	if s := m.decoded[name]; s != nil {
		return s, nil
	}
	raw, ok := m.raw[name]
	if !ok {
		return nil, fmt.Errorf("no schema %s in Kubernetes %s", name, m.Version)
	}
	s := &spec.Schema{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("schema %s of Kubernetes %s: %w", name, m.Version, err)
	}
	m.decoded[name] = s
	return s, nil
}

// Schemas are all schemas by name, as managedfields.NewTypeConverter wants them.
// The map is the caller's, the schemas are not.
func (m *Minor) Schemas() (map[string]*spec.Schema, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]*spec.Schema, len(m.raw))
	for name := range m.raw {
		s, err := m.decode(name)
		if err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, nil
}

// Serves lists the versions in which the minor has a kind, such as "policy/v1".
func (m *Minor) Serves(kind gvk.GroupKind) []string {
	var versions []string
	for of := range m.kinds {
		if of.GroupKind() == kind {
			versions = append(versions, of.GroupVersion().String())
		}
	}
	slices.Sort(versions)
	return versions
}

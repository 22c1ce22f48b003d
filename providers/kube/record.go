package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// Keys of private data.
const (
	keepApplied  = "applied"  // map of applied, by the objects' keys
	keepRendered = "rendered" // what the configuration rendered when it was last applied
	keepPlanned  = "planned"  // promise
)

// applied is the record of an object's last apply. While it holds there is
// nothing to ask the cluster.
type applied struct {
	Declared string    `json:"declared"`          // hash of what was declared
	Result   string    `json:"result"`            // hash of the text that came of it
	UID      types.UID `json:"uid"`               // of the object
	Mark     string    `json:"mark,omitempty"`    // of an imported one: its label
	Waiting  bool      `json:"waiting,omitempty"` // it was not ready yet
	Left     bool      `json:"left,omitempty"`    // its replicas are an autoscaler's
}

// holds reports that nothing has changed since: neither what is declared, by its
// hash, nor the text of the object. wait asks for objects that are ready.
func (a applied) holds(text, declared string, wait bool) bool {
	return a.Declared == declared && a.Result == object.Hash(text) && !(a.Waiting && wait)
}

// ours reports whether a live object belongs to the resource: by its mark, or
// because it is the same object that was applied or imported and has no mark
// since. An object with another mark belongs to another resource.
func (a applied) ours(u *unstructured.Unstructured, id string) bool {
	mark := u.GetLabels()[live.Mark]
	return id != "" && mark == id || a.UID != "" && a.UID == u.GetUID() && (mark == "" || mark == a.Mark)
}

// memory is all that is remembered of a resource.
type memory struct {
	objects  map[string]applied // by the objects' keys
	rendered string
}

// privates reads private data.
type privates interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// keyed writes private data.
type keyed interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readMemory(ctx context.Context, from privates) (memory, diag.Diagnostics) {
	m := memory{objects: map[string]applied{}}
	text, diags := from.GetKey(ctx, keepApplied)
	var all map[string]applied
	if len(text) > 0 && json.Unmarshal(text, &all) == nil { // otherwise the objects are read
		for name, a := range all {
			m.objects[current(name)] = a
		}
	}
	text, more := from.GetKey(ctx, keepRendered)
	diags.Append(more...)
	if len(text) > 0 && json.Unmarshal(text, &m.rendered) != nil {
		m.rendered = ""
	}
	return m, diags
}

// current is the text of a key as it is written now.
func current(name string) string {
	if k, err := object.ParseKey(name); err == nil {
		return k.String()
	}
	return name
}

// write stores the memory in place of the promise.
func (m memory) write(ctx context.Context, to keyed) (diags diag.Diagnostics) {
	diags.Append(writeKey(ctx, to, keepApplied, m.objects)...)
	diags.Append(writeKey(ctx, to, keepRendered, m.rendered)...)
	diags.Append(to.SetKey(ctx, keepPlanned, nil)...)
	return diags
}

func writeKey(ctx context.Context, to keyed, key string, v any) diag.Diagnostics {
	text, err := json.Marshal(v)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Private data cannot be written", sentence(err))}
	}
	return to.SetKey(ctx, key, text)
}

// promise is what a plan was made of: an apply carries out that and nothing
// else.
type promise struct {
	Salt    string            `json:"salt"`
	Objects map[string]string `json:"objects"`         // hashes by key, both as they are rendered
	Takes   map[string]string `json:"takes,omitempty"` // marks of other resources, by the keys of objects that come from them
	Anew    []string          `json:"anew,omitempty"`  // keys of objects that are deleted and recreated
}

// replaces reports an object that the plan deletes and recreates: no other object is.
func (p *promise) replaces(name string) bool { return p != nil && slices.Contains(p.Anew, name) }

// newPromise is the promise for rendered objects.
func newPromise(objects []*unstructured.Unstructured, salt string) *promise {
	return &promise{Salt: salt, Objects: sums(objects, salt), Takes: map[string]string{}}
}

// readPromise finds what the plan left: Terraform's framework hands it to
// updates, and stoke's call to creates as well. nil where there is none.
func readPromise(text []byte) *promise {
	var p promise
	if len(text) == 0 || json.Unmarshal(text, &p) != nil {
		return nil
	}
	return &p
}

// plannedOf takes the promise from all private data of a plan.
func plannedOf(private []byte) *promise {
	var all map[string][]byte
	if json.Unmarshal(private, &all) != nil {
		return nil
	}
	return readPromise(all[keepPlanned])
}

// describeDifference describes how rendered objects differ from the promised ones; "" where
// they do not.
func (p *promise) describeDifference(objects []*unstructured.Unstructured) string {
	if p == nil {
		return ""
	}
	now := sums(objects, p.Salt)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := p.Objects[name]; !ok {
			parts = append(parts, name+" is new")
		} else if was != now[name] {
			parts = append(parts, name+" is another one")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Objects)) {
		if _, ok := now[name]; !ok {
			parts = append(parts, name+" is missing")
		}
	}
	if len(parts) > 5 {
		parts = append(parts[:5], fmt.Sprintf("and %d more", len(parts)-5))
	}
	return strings.Join(parts, ", ")
}

// sums returns hashes of the declared objects, by key.
func sums(objects []*unstructured.Unstructured, salt string) map[string]string {
	all := make(map[string]string, len(objects))
	for _, u := range objects {
		all[object.KeyOf(u).String()] = hashDeclared(u, salt)
	}
	return all
}

// rendering is a hash of all that is declared.
func rendering(objects []*unstructured.Unstructured, salt string) string {
	all := sums(objects, salt)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+" "+all[name])
	}
	return object.Hash(strings.Join(lines, "\n"))
}

// hashDeclared returns the hash of a declared object. The mark is not a part of it.
func hashDeclared(u *unstructured.Unstructured, salt string) string {
	text, err := object.Text(u.Object, salt)
	if err != nil {
		return ""
	}
	return object.Hash(text)
}

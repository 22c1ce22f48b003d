package object

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/runtime/pattern"
)

// MaxBytes is how much a manifest may have. An object may have 1.5 MB in etcd.
const MaxBytes = 64 << 20

// Parse reads the documents of a manifest: YAML or JSON, several parted by
// "---", and Lists taken apart. from names it in errors, with the line where a
// document begins.
func Parse(text []byte, from string) ([]*unstructured.Unstructured, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes; the most is %d", from, len(text), MaxBytes)
	}
	var all []*unstructured.Unstructured
	var problems []error
	err := documents(text, from, func(at string, objects []*unstructured.Unstructured, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", at, err))
			return
		}
		all = append(all, objects...)
	})
	if err != nil {
		return nil, err
	}
	return all, errors.Join(problems...)
}

// Origin returns the place of the first matching object in a manifest, in the
// form of Parse's errors: "web.yaml, document 2 (line 9)"; "" where there is
// none.
func Origin(text []byte, from string, meant func(*unstructured.Unstructured) bool) (found string) {
	_ = documents(text, from, func(at string, objects []*unstructured.Unstructured, _ error) {
		if found == "" && slices.ContainsFunc(objects, meant) {
			found = at
		}
	}) // what cannot be read has no origin
	return found
}

// documents reads one document after another, and says where each begins.
func documents(text []byte, from string, each func(at string, objects []*unstructured.Unstructured, err error)) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	line, number := 1, 0
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		number++
		at := fmt.Sprintf("%s, document %d (line %d)", from, number, line)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		first := line
		line += bytes.Count(doc, []byte("\n"))
		if !bytes.HasSuffix(doc, []byte("\n")) {
			line++
		}
		if number > 0 && line > first {
			line++ // the separator
		}
		objects, err := document(doc, first)
		each(at, objects, err)
	}
}

// blank is a document of comments.
var blank = pattern.New(`\A(\s*(#.*)?(\n|\z))*\z`)

// ended is the end of a document. Another one may follow it without a ---.
var ended = pattern.New(`(?m)^\.\.\.[ \t\r]*(#.*)?$`)

func document(doc []byte, first int) ([]*unstructured.Unstructured, error) {
	if at := ended.FindIndex(doc); at != nil {
		before, err := document(doc[:at[0]], first)
		if err != nil {
			return nil, err
		}
		after, err := document(doc[at[1]:], first+bytes.Count(doc[:at[1]], []byte("\n")))
		return append(before, after...), err
	}
	if len(bytes.TrimSpace(doc)) == 0 || blank.Match(doc) {
		return nil, nil
	}
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, errors.New(moved(err.Error(), first))
	}
	if string(text) == "null" {
		return nil, nil
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, errors.New("it is not an object: want apiVersion, kind and metadata")
	}
	u := &unstructured.Unstructured{Object: content}
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(u.GetKind(), "List") {
		var all []*unstructured.Unstructured
		for i, item := range items {
			o, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("item %d of the %s is not an object", i, u.GetKind())
			}
			one := &unstructured.Unstructured{Object: o}
			if err := check(one); err != nil {
				return nil, fmt.Errorf("item %d of the %s: %w", i, u.GetKind(), err)
			}
			all = append(all, one)
		}
		return all, nil
	}
	return []*unstructured.Unstructured{u}, check(u)
}

var lineOf = pattern.New(`line (\d+)`)

// moved turns the parser's line numbers, which are the document's, into the
// manifest's.
func moved(text string, first int) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "error converting YAML to JSON: "), "yaml: ")
	return lineOf.ReplaceAllStringFunc(text, func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return fmt.Sprintf("line %d", n+first-1)
	})
}

// check says what every object needs.
func check(u *unstructured.Unstructured) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if s, ok := u.Object[field].(string); !ok || s == "" {
			return fmt.Errorf("it has no %s", field)
		}
	}
	if _, ok := u.Object["metadata"].(map[string]any); !ok {
		return fmt.Errorf("the %s has no metadata", u.GetKind())
	}
	meta := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace", "generateName"} {
		if v, ok := meta[field]; ok && v != nil {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("metadata.%s of the %s is %v, and has to be a text", field, u.GetKind(), v)
			}
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		v, ok := meta[field]
		if !ok || v == nil {
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("metadata.%s of the %s is not a map", field, u.GetKind())
		}
		for k, v := range m {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("metadata.%s[%q] of the %s is %v, and has to be a text: put it in quotes", field, k, u.GetKind(), v)
			}
		}
	}
	if IsSecret(u) {
		if err := checkSecret(u.Object); err != nil {
			return err
		}
	}
	switch {
	case u.GetName() == "" && u.GetGenerateName() != "":
		return fmt.Errorf("the %s has generateName, whose name would be another one each time: give it a name", u.GetKind())
	case u.GetName() == "":
		return fmt.Errorf("the %s has no metadata.name", u.GetKind())
	}
	return nil
}

// servers are fields that the API server writes.
var servers = []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// lastApplied is kubectl's own note of a manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Clean takes out of an object what only the API server writes, what is null
// (which says nothing to an apply), and the rules of a ClusterRole that gathers
// them from others, and turns a Secret's stringData into data. It changes u.
func Clean(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	withoutNulls(u.Object)
	if meta, ok := u.Object["metadata"].(map[string]any); ok {
		for _, field := range servers {
			delete(meta, field)
		}
		if notes, ok := meta["annotations"].(map[string]any); ok {
			delete(notes, lastApplied)
		}
	}
	switch {
	case IsSecret(u):
		encode(u.Object)
	case u.GetKind() == "ClusterRole" && u.Object["aggregationRule"] != nil:
		delete(u.Object, "rules") // a controller's, which gathers them
	}
}

func withoutNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
				continue
			}
			withoutNulls(e)
		}
	case []any:
		for _, e := range v {
			withoutNulls(e)
		}
	}
}

// Command schemas writes what stoke knows of the kinds of Kubernetes without
// asking a cluster: the OpenAPI documents of some versions, without descriptions,
// compressed.
//
//	schemas FOLDER VERSION…
//
// It writes FOLDER/VERSION.json.gz, by the minor, from the documents in the
// module k8s.io/kubernetes, which are those that the API server of that version
// serves. `make schemas` calls it.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// document is what is written.
type document struct {
	Version string                     `json:"version"`
	Kinds   []kind                     `json:"kinds"`
	Schemas map[string]json.RawMessage `json:"schemas"`
}

// kind is one whose objects can be made.
type kind struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
	Schema     string `json:"schema"`
}

// id is what a kind is called in full.
type id struct{ Group, Version, Kind string }

// openAPI is what is read of a document of one group and version.
type openAPI struct {
	Paths map[string]struct {
		Post *struct {
			Action string `json:"x-kubernetes-action"`
			Of     id     `json:"x-kubernetes-group-version-kind"`
		}
	}
	Components struct {
		Schemas map[string]map[string]any
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: schemas FOLDER VERSION…")
		os.Exit(2)
	}
	for _, version := range os.Args[2:] {
		if err := write(os.Args[1], version); err != nil {
			fmt.Fprintf(os.Stderr, "schemas of %s: %v\n", version, err)
			os.Exit(1)
		}
	}
}

func write(folder, version string) error {
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+version).Output()
	if err != nil {
		return fmt.Errorf("download k8s.io/kubernetes: %w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	d := document{Version: version, Schemas: map[string]json.RawMessage{}}
	files, err := filepath.Glob(filepath.Join(module.Dir, "api", "openapi-spec", "v3", "api*__*_openapi.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no documents in %s: %v", module.Dir, err)
	}
	for _, file := range files {
		if err := d.add(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	slices.SortFunc(d.Kinds, func(a, b kind) int {
		return strings.Compare(a.Group+"/"+a.Version+"/"+a.Kind, b.Group+"/"+b.Version+"/"+b.Kind)
	})
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	minor := strings.Join(strings.Split(strings.TrimPrefix(version, "v"), ".")[:2], ".")
	fmt.Printf("%s: %d kinds, %d schemas, %d bytes, %d compressed\n", version, len(d.Kinds), len(d.Schemas), len(text), packed.Len())
	return os.WriteFile(filepath.Join(folder, minor+".json.gz"), packed.Bytes(), 0o644)
}

// add reads one document. Schemas of one name are the same in all, but for
// those that every group adds its kinds to, which nobody declares.
func (d *document) add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var read openAPI
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	for path, item := range read.Paths {
		parts := strings.Split(path, "/")
		// A subresource, such as binding of a pod, is no kind of its own.
		if item.Post == nil || item.Post.Action != "post" || strings.Contains(path, "{name}") {
			continue
		}
		of := item.Post.Of
		k := kind{of.Group, of.Version, of.Kind, parts[len(parts)-1], strings.Contains(path, "/namespaces/{namespace}/"), read.schema(of)}
		if k.Schema == "" {
			return fmt.Errorf("%s has no schema", of.Kind)
		}
		if !slices.Contains(d.Kinds, k) {
			d.Kinds = append(d.Kinds, k)
		}
	}
	for name, schema := range read.Components.Schemas {
		if strings.HasSuffix(name, ".meta.v1.DeleteOptions") || strings.HasSuffix(name, ".meta.v1.WatchEvent") {
			continue
		}
		bare, err := json.Marshal(undescribed(schema))
		if err != nil {
			return err
		}
		if known, ok := d.Schemas[name]; ok && !bytes.Equal(known, bare) {
			return fmt.Errorf("%s is not what it is elsewhere", name)
		}
		d.Schemas[name] = bare
	}
	return nil
}

// schema is the name of the schema of a kind.
func (o *openAPI) schema(of id) string {
	for name, schema := range o.Components.Schemas {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		k := kinds[0].(map[string]any)
		if k["group"] == of.Group && k["version"] == of.Version && k["kind"] == of.Kind {
			return name
		}
	}
	return ""
}

// undescribed takes descriptions out of a schema.
func undescribed(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		for key, value := range s {
			switch {
			case key == "description":
				delete(s, key)
			case key == "properties":
				for name, property := range value.(map[string]any) {
					value.(map[string]any)[name] = undescribed(property)
				}
			default:
				s[key] = undescribed(value)
			}
		}
	case []any:
		for i := range s {
			s[i] = undescribed(s[i])
		}
	}
	return schema
}

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/kube/object"
)

// manifest is any YAML.
var manifest = kind{
	name:        "manifest",
	description: "Objects of any kind, from YAML: applied on the server's side, waited for, and pruned when they leave the YAML.",
	at:          path.Root("yaml"),
	or:          path.Root("path"),
	waits:       true,
	attributes: func() map[string]schema.Attribute {
		return map[string]schema.Attribute{
			"yaml": schema.StringAttribute{Optional: true, Description: "The objects as YAML or JSON, several documents parted by ---. A Secret with data is refused here, since this text is stored: give it by path, or use kube_secret."},
			"path": schema.StringAttribute{Optional: true, Description: "A file, or a folder whose files *.yaml, *.yml " +
				"and *.json are read, with its subfolders."},
			"namespace": schema.StringAttribute{
				Optional: true, Description: "Namespace of objects that name none. Default: default.",
			},
		}
	},
	render: renderManifest,
}

func renderManifest(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	var text, from, namespace types.String
	var diags diag.Diagnostics
	diags.Append(config.GetAttribute(ctx, path.Root("yaml"), &text)...)
	diags.Append(config.GetAttribute(ctx, path.Root("path"), &from)...)
	diags.Append(config.GetAttribute(ctx, path.Root("namespace"), &namespace)...)
	switch {
	case diags.HasError():
		return nil, false, diags
	case text.IsUnknown() || from.IsUnknown() || namespace.IsUnknown():
		return nil, false, diags
	case text.IsNull() == from.IsNull():
		diags.AddAttributeError(path.Root("yaml"), "Not one source of objects", "Give either yaml or path.")
		return nil, true, diags
	}
	var objects []*unstructured.Unstructured
	at := path.Root("yaml")
	if from.IsNull() {
		found, err := object.Parse([]byte(text.ValueString()), "yaml")
		addParse(&diags, at, err)
		for _, u := range found {
			if object.IsSecret(u) && (u.Object["data"] != nil || u.Object["stringData"] != nil) {
				diags.AddAttributeError(at, "Secret in a stored text", fmt.Sprintf("The Secret %s would be stored in the state with this text. Keep it in a file and give its path, or use kube_secret.", u.GetName()))
			}
		}
		objects = found
	} else {
		at = path.Root("path")
		found, err := readPath(from.ValueString())
		addParse(&diags, at, err)
		objects = found
	}
	if !diags.HasError() && len(objects) == 0 {
		diags.AddAttributeError(at, "No objects", "It has no document. Leave the resource out where there is nothing to apply.")
	}
	for _, u := range objects {
		if u.GetNamespace() == "" && !namespace.IsNull() {
			u.SetNamespace(namespace.ValueString()) // taken away again where the kind has none
		}
	}
	return objects, true, diags
}

// addParse reports each problem by itself.
func addParse(diags *diag.Diagnostics, at path.Path, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	for _, e := range all {
		diags.AddAttributeError(at, "Manifest cannot be read", e.Error()+".")
	}
}

// readPath reads a file, or the manifests of a folder in the order of their
// names.
func readPath(from string) ([]*unstructured.Unstructured, error) {
	files, err := manifests(from)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	var problems []error
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > object.MaxBytes {
			return nil, fmt.Errorf("%s is not a regular file, or has more than %d bytes", name, object.MaxBytes)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := object.Parse(text, name)
		if err != nil {
			problems = append(problems, err)
		}
		all = append(all, found...)
	}
	return all, errors.Join(problems...)
}

// manifests returns the files of a path.
func manifests(from string) ([]string, error) {
	root, err := connect.ExpandHome(from)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("file or folder %s does not exist: a path is relative to the folder where stoke runs; "+
			"${path.module}/… is in the folder of the configuration", root)
	}
	if err != nil {
		return nil, err
	}
	files := []string{root}
	if info.IsDir() {
		files = nil
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name))) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

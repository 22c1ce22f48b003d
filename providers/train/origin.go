package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/spec"
)

// origin turns the configuration into what the trainer is asked for. known is
// false while a part of it is not known.
func (m *datasetModel) origin() (o spec.Origin, known bool, diags diag.Diagnostics) {
	known = true
	count := func(name string, n types.Number, high int64) int64 {
		if n.IsNull() || n.IsUnknown() {
			known = known && !n.IsUnknown()
			return 0
		}
		v, err := integer(n, 0, high)
		if err != nil {
			diags.AddAttributeError(path.Root(name), "Value out of range", fmt.Sprintf("%s counts records: %s.", name, err))
		}
		return v
	}
	o.Train = count("train", m.Train, 1<<40)
	o.Test = count("test", m.Test, 1<<40)
	if !m.Seed.IsNull() && !m.Seed.IsUnknown() {
		seed, err := integer(m.Seed, 0, math.MaxInt64)
		if err != nil {
			diags.AddAttributeError(path.Root("seed"), "Value out of range", fmt.Sprintf("seed starts the random numbers: %s.", err))
		}
		o.Seed = uint64(seed)
	}
	known = known && !m.Seed.IsUnknown() && !m.Format.IsUnknown() && !m.Path.IsUnknown()
	o.Format = m.Format.ValueString()
	if !m.Format.IsUnknown() && !slices.Contains(spec.DatasetFormats(), o.Format) {
		diags.AddAttributeError(path.Root("format"), "Unknown dataset format", fmt.Sprintf("format must be one of %s; it is %q.", strings.Join(spec.DatasetFormats(), ", "), o.Format))
		return o, known, diags
	}
	m.place(&o, &diags)
	m.csv(&o, &known, &diags)
	return o, known, diags
}

// place resolves the path.
func (m *datasetModel) place(o *spec.Origin, diags *diag.Diagnostics) {
	given := m.Path.ValueString()
	switch {
	case m.Path.IsUnknown() || m.Format.IsUnknown():
	case o.Format == spec.FormatSynthetic && !m.Path.IsNull():
		diags.AddAttributeError(path.Root("path"), "Synthetic digits have no path", "They are drawn, not read. Leave path out, or choose another format.")
	case o.Format == spec.FormatSynthetic:
	case given == "":
		diags.AddAttributeError(path.Root("path"), "No path given", fmt.Sprintf("Name the folder or file that holds the %s data: path = \"…\".", o.Format))
	case strings.ContainsRune(given, 0):
		diags.AddAttributeError(path.Root("path"), "Path is malformed", "A path cannot hold a zero byte.")
	default:
		full, err := expandHome(given)
		if err == nil {
			full, err = filepath.Abs(full)
		}
		if err != nil {
			diags.AddAttributeError(path.Root("path"), "Path cannot be resolved", err.Error()+".")
		}
		o.Path = full
	}
}

func (m *datasetModel) csv(o *spec.Origin, known *bool, diags *diag.Diagnostics) {
	if m.CSV.IsNull() {
		return
	}
	if m.CSV.IsUnknown() {
		*known = false
		return
	}
	at := path.Root("csv")
	if o.Format != "csv" && !m.Format.IsUnknown() {
		diags.AddAttributeError(at, "Block csv has no use", fmt.Sprintf("The format is %q. Remove the block, or set format = \"csv\".", o.Format))
		return
	}
	c := new(spec.CSV)
	text := func(name string) string {
		v, _ := m.CSV.Attributes()[name].(types.String)
		*known = *known && !v.IsUnknown()
		return v.ValueString()
	}
	c.Label, c.Header, c.Type = text("label"), text("header"), text("type")
	if c.Header != "" && c.Header != "yes" && c.Header != "no" {
		diags.AddAttributeError(at.AtName("header"), "Unknown value", fmt.Sprintf("header must be \"yes\" or \"no\", or left out; it is %q.", c.Header))
	}
	if c.Type != "" && c.Type != "u8" && c.Type != "f32" {
		diags.AddAttributeError(at.AtName("type"), "Unknown value", fmt.Sprintf("type must be \"u8\" or \"f32\", or left out; it is %q.", c.Type))
	}
	if share, _ := m.CSV.Attributes()["test_share"].(types.Number); share.IsUnknown() {
		*known = false
	} else if !share.IsNull() {
		c.TestShare = float(share)
		if !(c.TestShare > 0 && c.TestShare < 1) {
			diags.AddAttributeError(at.AtName("test_share"), "Value out of range", fmt.Sprintf("test_share must be above 0 and below 1; it is %g.", c.TestShare))
		}
	}
	shape, _ := m.CSV.Attributes()["shape"].(types.List)
	*known = *known && !shape.IsUnknown()
	if n := len(shape.Elements()); n > 8 {
		diags.AddAttributeError(at.AtName("shape"), "Too many dimensions", fmt.Sprintf("A record has at most 8 dimensions; shape has %d.", n))
		return
	}
	for i, e := range shape.Elements() {
		n, _ := e.(types.Number)
		if n.IsUnknown() || n.IsNull() {
			*known = *known && !n.IsUnknown()
			continue
		}
		d, err := integer(n, 1, 1<<24)
		if err != nil {
			diags.AddAttributeError(at.AtName("shape").AtListIndex(i), "Value out of range", fmt.Sprintf("A dimension counts elements: %s.", err))
		}
		c.Shape = append(c.Shape, int(d))
	}
	o.CSV = c
}

// fingerprintOf returns a cheap sign of what an origin reads: names, sizes and times
// of its files. Equal fingerprints, equal records, as far as file systems tell.
func fingerprintOf(o spec.Origin) (string, error) {
	h := sha256.New()
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s\n", text)
	if o.Path == "" {
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	info, err := os.Stat(o.Path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		fmt.Fprintf(h, "%d %d\n", info.Size(), info.ModTime().UnixNano())
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	if err := writeSigns(h, os.DirFS(o.Path), o.Format == spec.FormatImages || o.Format == spec.FormatCIFAR); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeSigns writes name, size and time of each file in a folder, and of those
// in its folders where deep, sorted by name.
func writeSigns(to io.Writer, folder fs.FS, deep bool) error {
	return fs.WalkDir(folder, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err == nil && e.IsDir() && name != "." && !deep:
			return fs.SkipDir
		case err == nil && !e.IsDir():
			var info fs.FileInfo
			if info, err = fs.Stat(folder, name); err == nil && info.Mode().IsRegular() {
				fmt.Fprintf(to, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
		}
		if name != "." && errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile, or a link to nothing
		}
		return err
	})
}

// dimensions gives a shape as a value.
func dimensions(shape []int) types.List {
	elements := make([]attr.Value, len(shape))
	for i, d := range shape {
		elements[i] = whole(int64(d))
	}
	return types.ListValueMust(types.NumberType, elements)
}

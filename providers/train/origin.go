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
	return o, m.options(&o, &diags) && known, diags
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

// originOptions reads the block of one format.
type originOptions struct {
	at     path.Path
	values map[string]attr.Value
	known  bool
	diags  *diag.Diagnostics
}

// options reads the blocks of the formats, and reports whether all of them are known.
func (m *datasetModel) options(o *spec.Origin, diags *diag.Diagnostics) (known bool) {
	known = true
	for _, b := range []struct {
		name, format string
		value        types.Object
		read         func(*originOptions)
	}{
		{"csv", spec.FormatCSV, m.CSV, func(b *originOptions) { o.CSV = readCSV(b) }},
		{"example", spec.FormatExamples, m.Example, func(b *originOptions) { o.Example = readExample(b) }},
		{"text", spec.FormatText, m.Text, func(b *originOptions) { o.Text = readText(b) }},
	} {
		if b.value.IsNull() {
			continue
		}
		at := path.Root(b.name)
		if o.Format != b.format && !m.Format.IsUnknown() {
			diags.AddAttributeError(at, fmt.Sprintf("Block %s has no use", b.name),
				fmt.Sprintf("The format is %q. Remove the block, or set format = %q.", o.Format, b.format))
			continue
		}
		block := &originOptions{at, b.value.Attributes(), !b.value.IsUnknown(), diags}
		if block.known {
			b.read(block)
		}
		known = known && block.known
	}
	return known
}

func readCSV(b *originOptions) *spec.CSV {
	return &spec.CSV{
		Label: b.text("label"), LabelType: b.text("label_type", "class", "number"), Header: b.text("header", "yes", "no"),
		Type:      b.text("type", "u8", "f32"),
		TestShare: b.share("test_share"), Shape: b.shape("shape"),
	}
}

func readExample(b *originOptions) *spec.Example {
	return &spec.Example{Image: b.text("image"), Label: b.text("label"), Shape: b.shape("shape"), Type: b.text("type", "u8", "f32")}
}

func readText(b *originOptions) *spec.Text {
	return &spec.Text{Length: b.count("length", 1<<24), TestShare: b.share("test_share")}
}

// text returns one of some values, or any where none are named.
func (b *originOptions) text(name string, allowed ...string) string {
	v, _ := b.values[name].(types.String)
	b.known = b.known && !v.IsUnknown()
	text := v.ValueString()
	if text != "" && allowed != nil && !slices.Contains(allowed, text) {
		b.diags.AddAttributeError(b.at.AtName(name), "Unknown value",
			fmt.Sprintf("%s must be \"%s\", or left out; it is %q.", name, strings.Join(allowed, "\" or \""), text))
	}
	return text
}

func (b *originOptions) refuse(name, detail string) {
	b.diags.AddAttributeError(b.at.AtName(name), "Value out of range", detail)
}

// share returns a number between 0 and 1, or 0 where none is given.
func (b *originOptions) share(name string) float64 {
	v, _ := b.values[name].(types.Number)
	if v.IsUnknown() || v.IsNull() {
		b.known = b.known && !v.IsUnknown()
		return 0
	}
	share := float(v)
	if !(share > 0 && share < 1) {
		b.refuse(name, fmt.Sprintf("%s must be above 0 and below 1; it is %g.", name, share))
	}
	return share
}

// count returns a whole number from 1, or 0 where none is given.
func (b *originOptions) count(name string, most int64) int {
	v, _ := b.values[name].(types.Number)
	if v.IsUnknown() || v.IsNull() {
		b.known = b.known && !v.IsUnknown()
		return 0
	}
	n, err := integer(v, 1, most)
	if err != nil {
		b.refuse(name, fmt.Sprintf("%s counts elements: %s.", name, err))
	}
	return int(n)
}

func (b *originOptions) shape(name string) []int {
	v, _ := b.values[name].(types.List)
	b.known = b.known && !v.IsUnknown()
	if n := len(v.Elements()); n > 8 {
		b.diags.AddAttributeError(b.at.AtName(name), "Too many dimensions",
			fmt.Sprintf("A record has at most 8 dimensions; %s has %d.", name, n))
		return nil
	}
	var shape []int
	for i, e := range v.Elements() {
		n, _ := e.(types.Number)
		if n.IsUnknown() || n.IsNull() {
			b.known = b.known && !n.IsUnknown()
			continue
		}
		d, err := integer(n, 1, 1<<24)
		if err != nil {
			b.diags.AddAttributeError(b.at.AtName(name).AtListIndex(i), "Value out of range",
				fmt.Sprintf("A dimension counts elements: %s.", err))
		}
		shape = append(shape, int(d))
	}
	return shape
}

// deep lists the formats whose files may be in folders of the path.
var deep = []string{spec.FormatImages, spec.FormatCIFAR, spec.FormatExamples}

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
	if err := writeSigns(h, os.DirFS(o.Path), slices.Contains(deep, o.Format)); err != nil {
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
		elements[i] = wholeNumber(int64(d))
	}
	return types.ListValueMust(types.NumberType, elements)
}

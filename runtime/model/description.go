package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Description is the part of a Model that people write: its layers and its loss.
// Input and classes follow from the data.
//
// As JSON it is {"layers": [{"name": "…", "type": "…", …}], "loss": "…"}: the key
// "type" is a layer's Op, the other keys are the JSON names of Layer.
type Description struct {
	Layers         []Layer
	Loss           string   // "": SoftmaxCrossEntropy; of numbers MeanSquaredError
	Metrics        []string // nil: Accuracy; of numbers MeanAbsoluteError
	LabelSmoothing float32  // of Model
}

// typeKey is the key of an operation where people write it.
const typeKey = "type"

// maxDescription is the size of a description in bytes: MaxLayers of a kilobyte each.
const maxDescription = 1 << 20

// Model returns the model for the data. It is not checked.
func (d *Description) Model(of Data) *Model {
	m := &Model{Name: "graph", Input: of.Input, Classes: of.Classes, Layers: slices.Clone(d.Layers),
		Loss: d.Loss, Metrics: d.Metrics, LabelSmoothing: d.LabelSmoothing, Target: of.Target}
	m.Input.Shape, m.Target.Shape = slices.Clone(of.Input.Shape), slices.Clone(of.Target.Shape)
	if m.Loss == "" && of.IsNumbers() {
		m.Loss = MeanSquaredError
	} else if m.Loss == "" {
		m.Loss = SoftmaxCrossEntropy
	}
	if m.Metrics == nil {
		m.Metrics = []string{Accuracy}
		if m.Loss == MeanSquaredError {
			m.Metrics = []string{MeanAbsoluteError}
		}
	}
	return m
}

// Validate reports the first thing that is wrong whatever the data are: names, inputs
// and members of layers. An error about a layer is a *LayerError.
func (d *Description) Validate() error {
	m := d.Model(Data{})
	m.Name = ""
	if d.Loss == "" && len(d.Metrics) > 0 && slices.Contains(Metrics(MeanSquaredError), d.Metrics[0]) {
		m.Loss = MeanSquaredError // the data decide
	}
	if err := m.validateLoss(); err != nil {
		return err
	}
	if _, err := m.Sources(); err != nil {
		return err
	}
	for i, l := range m.Layers {
		if err := l.checkMembers(); err != nil {
			return m.wrong(i, err)
		}
	}
	return nil
}

// MarshalJSON returns the description as people write it, without defaults.
func (d *Description) MarshalJSON() ([]byte, error) {
	layers := make([]map[string]any, len(d.Layers))
	for i, l := range d.Layers {
		text, err := json.Marshal(l)
		if err == nil {
			err = json.Unmarshal(text, &layers[i])
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		layers[i][typeKey] = l.Op
		delete(layers[i], "op")
	}
	all := map[string]any{"layers": layers}
	if d.Loss != "" {
		all["loss"] = d.Loss
	}
	if d.Metrics != nil {
		all["metrics"] = d.Metrics
	}
	if d.LabelSmoothing != 0 {
		all["label_smoothing"] = d.LabelSmoothing
	}
	return json.Marshal(all)
}

// Describe reads a description from JSON. A member that is not known, or is given
// twice, is an error, and so is a description that Validate rejects. Errors name the
// line of the text.
func Describe(text []byte) (*Description, error) {
	if len(text) > maxDescription {
		return nil, fmt.Errorf("it has %d bytes: want at most %d", len(text), maxDescription)
	}
	d := new(Description)
	r := reader{text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	err := r.read(d)
	if err != nil {
		return nil, r.wrong(err)
	}
	if err := d.Validate(); errors.As(err, new(*LayerError)) {
		return nil, r.wrong(err)
	} else if err != nil {
		return nil, err
	}
	return d, nil
}

// LineError is an error in a line of a text.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }

// Unwrap returns the error without its line.
func (e *LineError) Unwrap() error { return e.Err }

// reader reads a description.
type reader struct {
	text    []byte
	decoder *json.Decoder
	lines   []int // at which each layer begins
}

// lineAt is the number of the line at an offset.
func (r *reader) lineAt(offset int64) int {
	return 1 + bytes.Count(r.text[:min(int(offset), len(r.text))], []byte("\n"))
}

// wrong adds the line to an error.
func (r *reader) wrong(err error) error {
	line := r.lineAt(r.decoder.InputOffset())
	var syntax *json.SyntaxError
	var layer *LayerError
	switch {
	case errors.As(err, &layer):
		line = r.lines[layer.Index]
	case errors.As(err, &syntax):
		line = r.lineAt(syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the text ends too early")
	}
	return &LineError{line, err}
}

func (r *reader) read(d *Description) error {
	err := r.object(func(name string) error {
		switch name {
		case "layers":
			return r.list(func() error { return r.layer(d) })
		case "loss":
			return r.value(name, &d.Loss)
		case "metrics":
			return r.value(name, &d.Metrics)
		case "label_smoothing":
			return r.value(name, &d.LabelSmoothing)
		}
		return unknownMember(name, []string{"layers", "loss", "metrics", "label_smoothing"})
	})
	if err != nil {
		return err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows the model")
	}
	return nil
}

// layer reads one layer, whose error names it.
func (r *reader) layer(d *Description) error {
	at := r.decoder.InputOffset() // of the comma before it, or of the space
	at += int64(len(r.text)) - at - int64(len(bytes.TrimLeft(r.text[at:], ", \t\r\n")))
	r.lines = append(r.lines, r.lineAt(at))
	given := make(map[string]json.RawMessage)
	err := r.object(func(name string) error {
		var v json.RawMessage
		err := r.value(name, &v)
		given[name] = v
		return err
	})
	if err != nil {
		return fmt.Errorf("layer %d: %w", len(r.lines), err)
	}
	l, err := readLayer(given)
	if err != nil {
		return &LayerError{Index: len(r.lines) - 1, Layer: l, Err: err}
	}
	d.Layers = append(d.Layers, l)
	return nil
}

// readLayer returns the layer with these members. In a Layer zero means the default, so
// that a zero of another meaning is an error.
func readLayer(given map[string]json.RawMessage) (l Layer, err error) {
	json.Unmarshal(given["name"], &l.Name) // for errors: it is read below
	json.Unmarshal(given[typeKey], &l.Op)
	v := reflect.ValueOf(&l).Elem()
	known, ok := members[l.Op]
	if !ok {
		if given[typeKey] == nil {
			return l, errors.New("has no type: want one of " + joinNames(Ops()))
		}
		return l, l.checkMembers()
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case name == typeKey:
			continue
		case name == "name" || name == "inputs" || slices.Contains(known, name):
		case slices.Contains(Members(), name):
			return l, fmt.Errorf("has no %s: %s", name, memberAdvice(known))
		default:
			return l, unknownMember(name, append([]string{"name", typeKey, "inputs"}, known...))
		}
		field := v.FieldByIndex(fieldOf(name).Index)
		if err := json.Unmarshal(given[name], field.Addr().Interface()); err != nil || string(given[name]) == "null" {
			return l, fmt.Errorf("%s is %s: want %s", name, given[name], wording(field.Type()))
		}
		if field.IsZero() && !zeroAllowed(name) {
			return l, fmt.Errorf("%s is %s: give another value, or leave it out", name, given[name])
		}
	}
	return l, nil
}

// zeroAllowed reports whether zero means zero, not a default.
func zeroAllowed(member string) bool {
	return member == "rate" || member == "pad" || fieldOf(member).Type.Kind() == reflect.Bool
}

// Members returns the JSON names of all members that operations have, sorted.
func Members() []string {
	all := make(map[string]bool)
	for _, names := range members {
		for _, name := range names {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// MemberType returns the type of a member of Layer by its JSON name.
func MemberType(member string) reflect.Type { return fieldOf(member).Type }

// fieldOf returns the field of Layer with the JSON name. A name that no field has is a
// programmer's error.
func fieldOf(member string) reflect.StructField {
	t := reflect.TypeFor[Layer]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == member {
			return t.Field(i)
		}
	}
	panic("model: no such member: " + member)
}

// wording names the values of a type.
func wording(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float32:
		return fmt.Sprintf("a number of at most %g", math.MaxFloat32)
	case reflect.Slice:
		return "a list of texts"
	}
	return "a text"
}

func unknownMember(name string, known []string) error {
	for _, k := range known {
		if levenshtein.Distance(strings.ToLower(name), k, nil) <= 2 {
			return fmt.Errorf("unknown member %q: did you mean %q?", name, k)
		}
	}
	return fmt.Errorf("unknown member %q: want one of %s", name, strings.Join(known, ", "))
}

// value reads the value of a member.
func (r *reader) value(name string, to any) error {
	err := r.decoder.Decode(to)
	if other := new(json.UnmarshalTypeError); errors.As(err, &other) {
		return fmt.Errorf("%s: want %s, not a %s", name, wording(other.Type), other.Value)
	}
	return err
}

// object reads an object: f reads the value of each member.
func (r *reader) object(f func(name string) error) error {
	if err := r.expect('{', "an object {…}"); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		name := token.(string) // the decoder lets nothing else through
		if seen[name] {
			return fmt.Errorf("member %q is given twice", name)
		}
		seen[name] = true
		if err := f(name); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return err
}

// list reads a list: f reads each element.
func (r *reader) list(f func() error) error {
	if err := r.expect('[', "a list […]"); err != nil {
		return err
	}
	for r.decoder.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return err
}

func (r *reader) expect(begin json.Delim, want string) error {
	token, err := r.decoder.Token()
	if err == nil && token != begin {
		err = fmt.Errorf("want %s, not %v", want, token)
	}
	return err
}

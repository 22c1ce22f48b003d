package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// checker walks values side by side and collects what is wrong with them. A
// problem is a provider's bug, so messages speak to its authors.
type checker struct {
	path   cty.Path
	errs   []error
	hidden int // how many of the attributes on the path are sensitive
	// probing is set while values are only compared: the first problem is
	// enough then, and nothing is written down.
	probing bool
	failed  bool
}

func (c *checker) attr(name string) { c.path = append(c.path, cty.GetAttrStep{Name: name}) }

// index goes to an element of a list, tuple, map, set or object.
func (c *checker) index(coll cty.Type, key cty.Value) {
	if coll.IsObjectType() {
		c.attr(key.AsString())
		return
	}
	c.path = append(c.path, cty.IndexStep{Key: key})
}

func (c *checker) leavePath() { c.path = c.path[:len(c.path)-1] }

func (c *checker) errorf(format string, args ...any) {
	c.failed = true
	if c.probing {
		return
	}
	for i, a := range args {
		if v, ok := a.(cty.Value); ok {
			args[i] = c.describe(v)
		}
	}
	c.errs = append(c.errs, c.path.Copy().NewErrorf(format, args...))
}

// result is the errors in the order of their paths, whatever the order in
// which maps were walked.
func (c *checker) result() []error {
	slices.SortStableFunc(c.errs, func(a, b error) int {
		return strings.Compare(pathText(a), pathText(b))
	})
	return c.errs
}

func pathText(err error) string {
	var at cty.PathError
	if !errors.As(err, &at) {
		return ""
	}
	var b strings.Builder
	for _, step := range at.Path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + step.Name)
		case cty.IndexStep:
			if step.Key.Type() == cty.Number {
				// Wide enough that 10 comes after 9.
				n, _ := step.Key.AsBigFloat().Int64()
				fmt.Fprintf(&b, "[%012d]", n)
				continue
			}
			b.WriteString("[" + valueText(step.Key) + "]")
		}
	}
	return b.String()
}

// describe shows a value in a message, unless it is a secret.
func (c *checker) describe(v cty.Value) string {
	if c.hidden > 0 {
		return "(sensitive value)"
	}
	return valueText(v)
}

// valueText is v as JSON, cut to what a line can hold.
func valueText(v cty.Value) string {
	const most = 120
	switch {
	case v == cty.NilVal:
		return "nothing"
	case !v.IsKnown():
		return "unknown"
	case v.IsNull():
		return "null"
	}
	text, err := ctyjson.Marshal(cty.UnknownAsNull(v), v.Type())
	if err != nil {
		return v.Type().FriendlyName()
	}
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}

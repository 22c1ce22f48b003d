package eval

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// repetition is one turn of a count or for_each: what count and each stand
// for. The zero value is a thing that is not repeated.
type repetition struct {
	key   address.Key
	index cty.Value // count.index; NilVal without count
	each  cty.Value // each.value; NilVal without for_each
	name  cty.Value // each.key
	// excluded reports that the count or for_each depends on something excluded.
	excluded bool
}

// orphanRepetition is the repetition data of an instance that is no longer in the
// configuration: its value is not known.
func orphanRepetition(key address.Key) repetition {
	rep := repetition{key: key}
	if n, ok := key.Int(); ok {
		rep.index = cty.NumberIntVal(int64(n))
	}
	if s, ok := key.Str(); ok {
		rep.name, rep.each = cty.StringVal(s), cty.DynamicVal
	}
	return rep
}

// repetitionForm is the form of a declaration's instances together.
type repetitionForm uint8

const (
	once repetitionForm = iota
	counted
	mapped
	undecided // not known yet: one instance represents any number
)

// collect builds the value of the whole from its instances' values.
func (f repetitionForm) collect(values []cty.Value, key func(int) address.Key) cty.Value {
	switch f {
	case once:
		return values[0]
	case counted:
		return cty.TupleVal(values)
	case mapped:
		attrs := make(map[string]cty.Value, len(values))
		for i, v := range values {
			name, _ := key(i).Str()
			attrs[name] = v
		}
		return cty.ObjectVal(attrs)
	}
	return cty.DynamicVal
}

// instances returns the turns of a resource or a module call. Validation has one
// turn for any number of instances: it checks a block without instances as well,
// and no rule depends on the number.
func (t *Task) instances(m *Module, count, forEach hcl.Expression, what string) (repetitionForm, []repetition, bool) {
	form, reps, ok := t.repetitions(m, count, forEach, what)
	if !ok || !t.ev.opts.Validating {
		return form, reps, ok
	}
	switch form {
	case counted:
		return undecided, []repetition{{index: cty.UnknownVal(cty.Number)}}, true
	case mapped:
		return undecided, []repetition{{name: cty.UnknownVal(cty.String), each: cty.DynamicVal}}, true
	}
	return form, reps, true
}

// maxInstances bounds count, so that a slip of the keyboard does not take
// the machine's memory.
const maxInstances = 10_000_000

// repetitions evaluates count or for_each, whichever is there.
func (t *Task) repetitions(m *Module, count, forEach hcl.Expression, what string) (repetitionForm, []repetition, bool) {
	switch {
	case count != nil && forEach != nil:
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: `Invalid combination of "count" and "for_each"`,
			Detail:  `Use either "count" or "for_each", not both.`,
			Subject: forEach.Range().Ptr(),
		})
		return once, nil, false
	case count != nil:
		return t.counted(m, count)
	case forEach != nil:
		return t.mapped(m, forEach, what)
	}
	return once, []repetition{{}}, true
}

func (t *Task) counted(m *Module, expr hcl.Expression) (repetitionForm, []repetition, bool) {
	fail := func(detail string) (repetitionForm, []repetition, bool) {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid count argument", Detail: detail, Subject: expr.Range().Ptr()})
		return counted, nil, false
	}
	v, ok := t.evaluate(scope{module: m}, expr, cty.DynamicPseudoType)
	if !ok {
		return counted, nil, false
	}
	v, marks := v.Unmark()
	if _, left := marks[lang.Excluded]; left {
		return undecided, []repetition{{key: address.AnyKey(), index: cty.UnknownVal(cty.Number), excluded: true}}, true
	}
	if _, ephemeral := marks[lang.Ephemeral]; ephemeral {
		return fail("The value is ephemeral: the apply may be given another one than the plan was, but the instances have to be the same. Use a value that is not ephemeral.")
	}
	v, err := convert.Convert(v, cty.Number)
	switch {
	case err != nil:
		return fail("A whole number is required: " + err.Error() + ".")
	case v.IsNull():
		return fail(`The value is null; "count" needs a whole number. Leave the argument out for exactly one instance.`)
	case !v.IsKnown():
		if key, ok := t.leaveOpen(m); ok {
			return undecided, []repetition{{key: key, index: cty.UnknownVal(cty.Number)}}, true
		}
		return fail("The value is known only while applying, and no resource that it depends on can make it known before. " +
			"Use a value that is known while planning, or an attribute of a resource.")
	}
	var n int
	if err := gocty.FromCtyValue(v, &n); err != nil || !v.AsBigFloat().IsInt() {
		return fail(fmt.Sprintf("A whole number is required, not %s.", v.AsBigFloat().Text('g', -1)))
	}
	if n < 0 || n > maxInstances {
		return fail(fmt.Sprintf("The number must be between 0 and %d, not %d.", maxInstances, n))
	}
	reps := make([]repetition, n)
	for i := range reps {
		reps[i] = repetition{key: address.IntKey(i), index: cty.NumberVal(new(big.Float).SetInt64(int64(i)))}
	}
	return counted, reps, true
}

func (t *Task) mapped(m *Module, expr hcl.Expression, what string) (repetitionForm, []repetition, bool) {
	fail := func(detail string) (repetitionForm, []repetition, bool) {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid for_each argument", Detail: detail, Subject: expr.Range().Ptr()})
		return mapped, nil, false
	}
	v, ok := t.evaluate(scope{module: m}, expr, cty.DynamicPseudoType)
	if !ok {
		return mapped, nil, false
	}
	v, marks := v.Unmark()
	if _, left := marks[lang.Excluded]; left {
		return undecided, []repetition{{key: address.AnyKey(), name: cty.UnknownVal(cty.String), each: cty.DynamicVal, excluded: true}}, true
	}
	if _, ephemeral := marks[lang.Ephemeral]; ephemeral {
		return fail("The value is ephemeral: the apply may be given another one than the plan was, but the instances have to be the same. Use a value that is not ephemeral.")
	}
	if _, sensitive := marks[lang.Sensitive]; sensitive {
		return fail(fmt.Sprintf("The keys become part of addresses, which every output shows, but the value is sensitive. Use nonsensitive() on the keys if the %s's names are not secret.", what))
	}
	if v.IsKnown() && v.IsNull() {
		return fail(`The value is null; "for_each" needs a map or a set of strings. Use an empty map ({}) for no instances.`)
	}
	ty := v.Type()
	switch {
	case ty == cty.DynamicPseudoType && !v.IsKnown():
	case ty.IsMapType() || ty.IsObjectType():
	case ty.IsSetType() && (ty.ElementType() == cty.String || ty.ElementType() == cty.DynamicPseudoType):
	default:
		return fail(fmt.Sprintf("A map or a set of strings is required, not %s. Use toset() to turn a list of strings into a set.", ty.FriendlyName()))
	}
	if !v.IsKnown() || (ty.IsSetType() && !v.IsWhollyKnown()) {
		if key, ok := t.leaveOpen(m); ok {
			return undecided, []repetition{{key: key, name: cty.UnknownVal(cty.String), each: cty.DynamicVal}}, true
		}
		return fail("The keys are known only while applying, and no resource that they depend on can make them known before. " +
			"Use a map whose keys are known while planning (its values may be unknown), or an attribute of a resource.")
	}
	reps := make([]repetition, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, each := it.Element()
		if ty.IsSetType() {
			if k.IsNull() {
				return fail("The set holds a null; every element must be a string.")
			}
			each, _ = each.Unmark()
			k = each
		}
		reps = append(reps, repetition{key: address.StringKey(k.AsString()), name: k, each: each})
	}
	return mapped, reps, true
}

// leaveOpen reports whether a count or for_each may stay unknown in this phase,
// and returns the key of the instance that represents all others. It may while
// validating, where values are unknown, and where it depends on a resource, so
// that a later plan knows it.
func (t *Task) leaveOpen(m *Module) (address.Key, bool) {
	switch {
	case t.ev.opts.Validating:
		return address.Key{}, true
	case t.readsResources() || m.Undecided():
		t.Defer()
		return address.AnyKey(), true
	}
	return address.Key{}, false
}

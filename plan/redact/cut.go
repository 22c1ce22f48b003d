package redact

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// TakeSecrets takes the secrets out of a value: their places and themselves are
// returned, in the order of a walk, and they are unknown in what is left.
func TakeSecrets(v cty.Value, paths []cty.Path) (left cty.Value, found []cty.Path, secrets [][]byte, err error) {
	if len(paths) == 0 || v == cty.NilVal {
		return v, nil, nil, nil
	}
	left, err = replace(nil, v, []*places{placesOf(paths)}, func(path cty.Path, at cty.Value) (cty.Value, error) {
		if !at.IsKnown() {
			return at, nil
		}
		b, err := msgpack.Marshal(at, cty.DynamicPseudoType)
		found, secrets = append(found, path.Copy()), append(secrets, b)
		return cty.UnknownVal(at.Type()), err
	})
	return left, found, secrets, err
}

// RestoreSecrets puts the secrets back that Cut took out.
func RestoreSecrets(v cty.Value, found []cty.Path, secrets [][]byte) (cty.Value, error) {
	if len(secrets) != len(found) {
		return v, errors.New("sealed values and their places do not match")
	}
	if len(found) == 0 {
		return v, nil
	}
	mended := 0
	out, err := replace(nil, v, []*places{placesOf(found)}, func(path cty.Path, at cty.Value) (cty.Value, error) {
		if mended == len(secrets) || at.IsKnown() || !path.Equals(found[mended]) {
			return cty.DynamicVal, errors.New("sealed values and their places do not match")
		}
		mended++
		return msgpack.Unmarshal(secrets[mended-1], cty.DynamicPseudoType)
	})
	if err == nil && mended < len(secrets) {
		err = errors.New("there are more sealed values than places for them")
	}
	return out, err
}

// Hides reports whether Cut would find anything.
func Hides(v cty.Value, paths []cty.Path) bool {
	if len(paths) == 0 || v == cty.NilVal {
		return false
	}
	some := false
	_, err := replace(nil, v, []*places{placesOf(paths)}, func(_ cty.Path, at cty.Value) (cty.Value, error) {
		some = some || at.IsKnown()
		return at, nil
	})
	return some || err != nil
}

type replacement func(path cty.Path, at cty.Value) (cty.Value, error)

// replace changes what is in the sets, from above and in one order always;
// parts of a changed value are not visited. Nulls hide nothing and stay.
func replace(path cty.Path, v cty.Value, sets []*places, with replacement) (cty.Value, error) {
	ty := v.Type()
	switch {
	case len(sets) == 0 || v.IsNull():
		return v, nil
	case anyHere(sets) || ty.IsSetType() && v.IsKnown(): // a set that holds a secret is one as a whole
		return with(path, v)
	case !v.IsKnown():
		return v, nil
	case ty.IsObjectType() || ty.IsMapType():
		return replaceNamed(path, v, sets, with)
	case v.CanIterateElements() && v.LengthInt() > 0:
		list := make([]cty.Value, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			key, e := it.Element()
			step := cty.IndexStep{Key: key}
			e, err := replace(append(path, step), e, childPlaces(sets, stepKey(step)), with)
			if err != nil {
				return v, err
			}
			list = append(list, e)
		}
		if ty.IsTupleType() {
			return cty.TupleVal(list), nil
		}
		return listOf(list, ty)
	}
	return v, nil
}

func replaceNamed(path cty.Path, v cty.Value, sets []*places, with replacement) (cty.Value, error) {
	all := v.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var step cty.PathStep = cty.GetAttrStep{Name: name}
		if v.Type().IsMapType() {
			step = cty.IndexStep{Key: cty.StringVal(name)}
		}
		e, err := replace(append(path, step), all[name], childPlaces(sets, "."+name), with)
		if err != nil {
			return v, err
		}
		all[name] = e
	}
	switch {
	case len(all) == 0:
		return v, nil
	case v.Type().IsObjectType():
		return cty.ObjectVal(all), nil
	}
	if !cty.CanMapVal(all) {
		return v, errors.New("sealed values do not fit the map that they belong to")
	}
	return cty.MapVal(all), nil
}

func listOf(list []cty.Value, ty cty.Type) (cty.Value, error) {
	if !cty.CanListVal(list) {
		return cty.DynamicVal, fmt.Errorf("sealed values do not fit the %s that they belong to", ty.FriendlyName())
	}
	return cty.ListVal(list), nil
}

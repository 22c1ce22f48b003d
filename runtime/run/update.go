package run

import (
	"bytes"
	"math"
	"strconv"

	"github.com/stokehq/stoke/runtime/spec"
)

// decodeUpdate decodes the line of an update, or of several, that has numbers only, as
// most lines of a history do: encoding/json takes ten times as long. ok is false for all
// other lines, valid or not, which the caller gives to encoding/json.
func decodeUpdate(h head, line []byte) (e spec.Event, ok bool) {
	if h.kind != spec.EventUpdate && h.kind != spec.EventUpdates || line[len(`{"n":`)] == '0' {
		return spec.Event{}, false
	}
	e.Number, e.Time, e.Type = h.number, h.time, h.kind
	rest := bytes.TrimRight(line[h.size:], "\n")
	for ok = true; ok; {
		if string(rest) == "}" {
			return e, true
		}
		var key, value []byte
		if key, rest, ok = quoted(rest, `,"`); !ok || len(rest) == 0 || rest[0] != ':' {
			return spec.Event{}, false
		}
		rest = rest[1:]
		n := bytes.IndexAny(rest, ",}")
		if n < 0 {
			return spec.Event{}, false
		}
		value, rest = rest[:n], rest[n:]
		ok = setNumber(&e, string(key), value)
	}
	return spec.Event{}, false
}

// setNumber sets a field of an event by its name in JSON; ok is false for fields and
// values of other kinds.
func setNumber(e *spec.Event, key string, value []byte) (ok bool) {
	switch key {
	case "loss":
		return setFloat(&e.Loss, value)
	case "norm":
		return setFloat(&e.Norm, value)
	case "loss_min":
		return setFloat(&e.LossMin, value)
	case "loss_max":
		return setFloat(&e.LossMax, value)
	}
	if len(value) == 0 || len(value) > 18 || value[0] == '0' && len(value) > 1 {
		return false
	}
	n := int64(0)
	for _, digit := range value {
		if digit < '0' || digit > '9' {
			return false
		}
		n = 10*n + int64(digit-'0')
	}
	switch key {
	case "term":
		e.Term = n
	case "generation":
		e.Generation = n
	case "step":
		e.Step = n
	case "epoch":
		e.Epoch = int(n)
	case "records":
		e.Records = n
	case "staleness":
		e.Staleness = n
	case "first":
		e.First = n
	case "count":
		e.Count = n
	case "skips":
		e.Skips = n
	default:
		return false
	}
	return true
}

// setFloat sets a number from a value of JSON; ok is false where the value is not a number.
func setFloat(to *spec.Number, value []byte) (ok bool) {
	if string(value) == "null" {
		*to = spec.Number(math.NaN())
		return true
	}
	if !isNumber(value) {
		return false
	}
	v, err := strconv.ParseFloat(string(value), 64)
	*to = spec.Number(v)
	return err == nil
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	whole := countDigits(text)
	if whole == 0 || whole > 1 && text[0] == '0' {
		return false
	}
	if text = text[whole:]; len(text) > 0 && text[0] == '.' {
		n := countDigits(text[1:])
		if n == 0 {
			return false
		}
		text = text[1+n:]
	}
	if len(text) > 0 && (text[0] == 'e' || text[0] == 'E') {
		if text = text[1:]; len(text) > 0 && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		n := countDigits(text)
		if n == 0 {
			return false
		}
		text = text[n:]
	}
	return len(text) == 0
}

// countDigits counts the digits that a text begins with.
func countDigits(text []byte) (n int) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

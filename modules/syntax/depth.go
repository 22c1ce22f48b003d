package syntax

import (
	"bytes"
	"fmt"
)

// CheckJSONDepth refuses JSON text with too many brackets within each other,
// for decoders that recurse. The error says where.
func CheckJSONDepth(src []byte) error {
	depth := 0
	for i := 0; len(src) > maxNesting && i < len(src); i++ {
		switch src[i] {
		case '[', '{':
			if depth++; depth > maxNesting {
				return tooNested(src, i)
			}
		case ']', '}':
			depth--
		case '"':
			i = stringEnd(src, i) - 1
		}
	}
	return nil
}

// CheckYAMLDepth does the same for YAML, where brackets, dashes that open
// lists within lists on one line, and indentation nest. Decoders take time
// that grows with the square of the depth. It takes a quote for the start of
// a string where YAML might.
func CheckYAMLDepth(src []byte) error {
	flow, dashes, column := 0, 0, 0
	before := byte('\n') // the character before, spaces left out
	spaced := true       // a space, a bracket or the like came before
	for i := 0; len(src) > maxNesting && i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\n':
			dashes, column, before, spaced = 0, -1, '\n', true
		case c == ' ' || c == '\t':
			spaced = true
			if before == '\n' {
				column++
			}
			continue
		case c == '[' || c == '{':
			flow++
		case c == ']' || c == '}':
			flow = max(flow-1, 0)
		case (c == '-' || c == '?' || c == ':') && spaced:
			dashes++
		case c == '#' && spaced:
			if n := bytes.IndexByte(src[i:], '\n'); n >= 0 {
				i += n - 1
			}
		case (c == '"' || c == '\'') && (spaced || before == '[' || before == '{' || before == ','):
			i = yamlStringEnd(src, i) - 1
		}
		if c != '\n' {
			before, spaced = c, false
		}
		if flow+dashes+max(column, 0)/2 > maxNesting {
			return tooNested(src, i)
		}
	}
	return nil
}

// yamlStringEnd returns the offset after the quoted string that starts at i.
func yamlStringEnd(src []byte, i int) int {
	if src[i] == '"' {
		return stringEnd(src, i)
	}
	for i++; i < len(src); i++ {
		if src[i] == '\'' {
			if i+1 >= len(src) || src[i+1] != '\'' {
				return i + 1
			}
			i++
		}
	}
	return len(src)
}

func tooNested(src []byte, at int) error {
	pos := position("", src, min(at, len(src))).Start
	return fmt.Errorf("it is nested more than %d levels deep at line %d, column %d", maxNesting, pos.Line, pos.Column)
}

package model

import (
	"fmt"
	"strings"
)

// Summary returns a line for each layer, with the shape of its output for one record and
// the number of its parameters, and the number of all parameters. The moments of batch
// normalisation do not count: they are not trained.
func (m *Model) Summary() (lines []string, parameters int, err error) {
	shapes, err := m.Shapes()
	if err != nil {
		return nil, 0, err
	}
	vars, _, err := m.Layout()
	if err != nil {
		return nil, 0, err
	}
	own := make(map[string]int)
	for _, v := range vars {
		if v.Kind == Trained {
			own[v.Name[:strings.LastIndexByte(v.Name, '/')]] += v.Len
			parameters += v.Len
		}
	}
	for i, l := range m.Layers {
		sizes := make([]string, len(shapes[i]))
		for k, size := range shapes[i] {
			sizes[k] = fmt.Sprint(size)
		}
		line := fmt.Sprintf("%s: %s, %s", l.Name, l.Op, strings.Join(sizes, " × "))
		if n := own[l.Name]; n > 0 {
			line += fmt.Sprintf(", %d parameters", n)
		}
		lines = append(lines, line)
	}
	return lines, parameters, nil
}

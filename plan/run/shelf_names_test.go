package run_test

import "slices"

// names are those of all things on the shelf, in order.
func (s *shelf) names() []string {
	var out []string
	for _, attrs := range s.things {
		out = append(out, attrs["name"].AsString())
	}
	slices.Sort(out)
	return out
}

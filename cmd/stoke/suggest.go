package main

import "github.com/agext/levenshtein"

// nearest returns the name that was most likely meant, "" where none is near.
func nearest(given string, names []string) string {
	best, distance := "", 3
	for _, name := range names {
		if d := levenshtein.Distance(given, name, nil); d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}

// suggest is the end of an error message: the name that was meant, with what
// it is written with.
func suggest(prefix, given string, names []string) string {
	if name := nearest(given, names); name != "" {
		return ". Did you mean \"" + prefix + name + "\"?"
	}
	return ""
}

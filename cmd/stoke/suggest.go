package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

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

// asSentence makes a sentence of an error's text.
func asSentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?\"") {
		return text
	}
	return text + "."
}

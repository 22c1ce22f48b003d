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

// suggest returns the end of an error message: the closest known name, with its
// prefix.
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

// absent says why a command that people know from Terraform is not here, and
// what to do instead; "" for any other name.
func absent(name string) string {
	switch name {
	case "login", "logout":
		return "stoke has no command \"" + name + "\": it keeps no credentials. Registries and state servers take a token from the environment (TF_TOKEN_<host>) or from the file that TF_CLI_CONFIG_FILE names"
	case "test":
		return "stoke has no command \"test\" yet. Preconditions, postconditions and check blocks are decided by every plan"
	case "cloud", "stacks":
		return "stoke has no command \"" + name + "\": it works with no hosted service. Keep the state in a backend that your team can reach"
	case "env":
		return "the command \"env\" is called \"workspace\""
	}
	return ""
}

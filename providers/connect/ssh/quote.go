package ssh

import "strings"

// Quote renders an argument so that a POSIX shell reads it back as exactly
// these bytes. An argument that needs no quotes gets none. NUL, which no
// argument can hold, is left out.
func Quote(arg string) string {
	arg = strings.ReplaceAll(arg, "\x00", "")
	if arg != "" && strings.IndexFunc(arg, special) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// QuoteAll renders a command with its arguments.
func QuoteAll(args ...string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = Quote(arg)
		if i == 0 && strings.Contains(arg, "=") && !strings.HasPrefix(quoted[i], "'") {
			quoted[i] = "'" + arg + "'" // else it would be an assignment
		}
	}
	return strings.Join(quoted, " ")
}

func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_./:=@%+,", r)
}

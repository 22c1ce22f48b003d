package ssh

import (
	"fmt"
	"strconv"
	"strings"
)

// begin is what every command starts as: a mark, $1, says that login scripts and
// sudo are done with the streams. Then it reads the command from standard input, as
// a line of words, so that sudo's log has only its label, $2; what follows is for
// the command. A line that breaks off is not run. The mark again says that its
// output is whole: a connection that breaks between exit status and output would
// look like success otherwise.
const begin = `m=$1; printf '%s\n' "$m"; printf '%s\n' "$m" >&2; IFS= read -r l || exit; eval "set -- $(printf %b "$l")"; "$@"; s=$?; printf %s "$m"; exit $s`

// words returns a command as a line of standard input: quoted for the shell, with
// special bytes as escapes of printf's %b.
func words(args []string) string { return escapeForPrintf(QuoteAll(args...)) + "\n" }

// maxLabel is how many bytes of a command people read.
const maxLabel = 200

func truncateLabel(label string) string {
	if len(label) > maxLabel {
		return label[:maxLabel] + " …"
	}
	return label
}

// label is the short form of a command for people: for a shell script with a
// comment as its first line, that comment and the script's arguments.
func label(args []string) string {
	if len(args) > 2 && args[0] == "sh" && args[1] == "-c" {
		first, _, more := strings.Cut(args[2], "\n")
		if what, ok := strings.CutPrefix(first, "# "); ok && more {
			return truncateLabel(strings.TrimSpace("script " + strconv.Quote(what) + " " + QuoteAll(args[min(4, len(args)):]...)))
		}
	}
	return QuoteAll(args...)
}

// decode makes a POSIX shell run only the encoded text. Where login scripts
// have made PATH something of their own, the programs of the system are found
// still.
const decode = `/bin/sh -c 'PATH=${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH; eval "$(printf %b "$1")"' sh `

// forAnyShell wraps a command for a POSIX shell so that any login shell passes
// it on unchanged. Between single quotes fish, csh and the like differ from
// POSIX in backslashes, exclamation marks and line ends; so there are none.
func forAnyShell(command string) string {
	return decode + "'" + escapeForPrintf(command) + "'"
}

// escapeForPrintf encodes special bytes for printf's %b.
func escapeForPrintf(command string) string {
	var b strings.Builder
	for i := range len(command) {
		switch c := command[i]; {
		case c < ' ', c > '~', c == '\'', c == '\\', c == '!':
			fmt.Fprintf(&b, `\0%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

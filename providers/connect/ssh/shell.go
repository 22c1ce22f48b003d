package ssh

import (
	"fmt"
	"strings"
)

// begin is what every command starts as. It says that login scripts and sudo
// are done with the streams, runs the command, and says that its output is
// whole: a connection that breaks between exit status and output would look
// like success otherwise.
const begin = `m=$1; shift; printf '%s\n' "$m"; printf '%s\n' "$m" >&2; "$@"; s=$?; printf %s "$m"; exit $s`

// decode makes a POSIX shell run what is for it alone. Where login scripts have
// made PATH something of their own, the programs of the system are found still.
const decode = `/bin/sh -c 'PATH=${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH; eval "$(printf %b "$1")"' sh `

// forAnyShell wraps a command for a POSIX shell so that whatever login shell
// there is hands it on as it stands. Between single quotes fish, csh and the
// like differ from POSIX in backslashes, exclamation marks and line ends; so
// there are none.
func forAnyShell(command string) string {
	return decode + "'" + plain(command) + "'"
}

// plain writes what is no plain text as printf's %b has it.
func plain(command string) string {
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

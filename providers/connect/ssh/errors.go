package ssh

import (
	"errors"
	"fmt"
	"strings"
)

// Permanent is an error that trying again cannot fix: a wrong key, a wrong
// user, a machine that is another one.
type Permanent struct{ Err error }

func (e Permanent) Error() string { return e.Err.Error() }
func (e Permanent) Unwrap() error { return e.Err }

// IsPermanent reports whether trying again is of no use.
func IsPermanent(err error) bool {
	var p Permanent
	return errors.As(err, &p)
}

// HostKeyError: a machine showed another host key than the known one, or no
// host key is known.
type HostKeyError struct {
	Address string
	Want    string // SHA256 fingerprint; "" when none is known
	Got     string // the key as an authorized_keys line
	Print   string // SHA256 fingerprint of Got
	From    string // the files that the key it is known by is from; "" where it was declared
}

func (e *HostKeyError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("no host key is known of %s, which shows %s (%s); compare it with the machine's own /etc/ssh/ssh_host_*_key.pub, then set host_key", e.Address, e.Got, e.Print)
	}
	then := fmt.Sprintf("set host_key = %q", e.Got)
	if e.From != "" {
		then = fmt.Sprintf("make it %q in %s", e.Got, e.From)
	}
	return fmt.Sprintf("%s shows the host key %s instead of %s: either the machine was reinstalled, or an attacker "+
		"intercepts the connection; only if you know why, %s", e.Address, e.Print, e.Want, then)
}

// wrongPassword marks an error after which the password is not sent again:
// machines count failed attempts and lock accounts.
type wrongPassword struct{ error }

func (e wrongPassword) Unwrap() error { return e.error }

// CommandError is the failure of a command on a machine.
type CommandError struct {
	Host    string
	Command string // as it can be pasted into a shell there, without what is secret; of a script what it is for
	Status  int    // exit status; -1 when a signal ended it
	Signal  string // such as "KILL"; "" for none
	Output  string // the last lines of standard error, or else of standard output
}

func (e *CommandError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != "" {
		how = "ended by SIG" + e.Signal
	}
	msg := fmt.Sprintf("%s: %s: %s", e.Host, e.Command, how)
	if e.Output != "" {
		msg += ":\n" + indent(e.Output)
	}
	return msg
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

// LostError: a connection broke. With Begun, the effect of the command is not
// known.
type LostError struct {
	Host  string
	Begun bool // the command was sent
	Err   error
}

func (e *LostError) Error() string { return fmt.Sprintf("%s: connection lost: %v", e.Host, e.Err) }
func (e *LostError) Unwrap() error { return e.Err }

// ForwardError: a machine opened no connection from itself.
type ForwardError struct {
	Host    string
	Address string // where to
	Reason  string // what it said; its answer; "" if it forbids forwarding
}

func (e *ForwardError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%s does not open connections to %s for others: allow it in its sshd_config (AllowTcpForwarding, PermitOpen, DisableForwarding)", e.Host, e.Address)
	}
	return fmt.Sprintf("dial %s from %s: %s", e.Address, e.Host, e.Reason)
}

// busyError: a machine runs no more commands at a time on this connection
// (sshd's MaxSessions).
type busyError struct {
	host string
	said string
}

func (e *busyError) Error() string {
	return fmt.Sprintf("%s opens no session on an open connection (MaxSessions in its sshd_config): %s", e.host, e.said)
}

package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// UpdateError is what "apt-get update" complained of, one problem for each
// repository.
type UpdateError struct{ Problems []Problem }

// Problem is what is wrong with one repository.
type Problem struct {
	URI    string // as apt names it; "" for a problem of the sources as such
	Said   string // by apt
	Advice string
}

func (p Problem) String() string {
	if p.URI == "" {
		return p.Said + ": " + p.Advice
	}
	return p.URI + ": " + p.Said + ": " + p.Advice
}

func (e *UpdateError) Error() string {
	var all []string
	for _, p := range e.Problems {
		all = append(all, p.String())
	}
	return "apt cannot read its repositories: " + strings.Join(all, "; ")
}

// causes tell apt's complaints apart, the most particular first. The texts are
// those of apt 2.4 to 3.0 in the locale C.
var causes = []struct {
	text   *pattern.Pattern
	advice string
}{
	{pattern.New(`NO_PUBKEY|public key is not available|Missing key`), "it is signed by another key than the one declared: compare with the publisher's fingerprint"},
	{pattern.New(`EXPKEYSIG|key.* expired|xpired on|not live`), "its key has expired: the publisher has a newer one, and apply fetches it where the fingerprint is the same"},
	{pattern.New(`REVKEYSIG|revoked`), "its key was revoked: see what the publisher says"},
	{pattern.New(`BADSIG|signatures? (were|was) invalid|is not signed|manipulated|Sub-process.*(gpgv|sqv)`), "its signature is wrong: a mirror in the middle of an update, a proxy that changes files, or someone who should not"},
	{pattern.New(`is not valid yet`), "the machine's clock is behind, or the repository's is ahead: check timedatectl on the machine"},
	{pattern.New(`is expired`), "the mirror is no longer kept up, or the machine's clock is ahead: check timedatectl on the machine, then the mirror"},
	{pattern.New(`Hash Sum mismatch|unexpected size|File has unexpected`), "the mirror is in the middle of an update, or a proxy has old files: try again in some minutes"},
	{pattern.New(`(?i)certificate|handshake|SSL|TLS`), "the machine does not trust the server's certificate: install ca-certificates or the proxy's authority there, or check its clock"},
	{pattern.New(`does not have a Release file|404 +Not Found`), "there is no such suite at this URI: check both"},
	{pattern.New(`40[137] +\w+|Proxy Authentication`), "access is refused: check apt's proxy and its credentials in /etc/apt/auth.conf.d"},
	{pattern.New(`Could not resolve|Temporary failure resolving|Something wicked happened resolving`), "the machine cannot resolve the name: check its DNS, or apt's proxy"},
	{pattern.New(`Could not connect|Connection refused|timed out|Unable to connect|Connection failed|Network is unreachable|No route`), "it cannot be reached from the machine: check the network, the firewall and apt's proxy"},
	{pattern.New(`No space left|enough free space`), "the machine's disk is full"},
	{pattern.New(`Conflicting values set for option Signed-By`), "one repository is declared twice with two keys: remove the other entry"},
	{pattern.New(`Malformed|could not be read|Type .* is not known`), "a file under /etc/apt/sources.list.d is damaged: fix it"},
}

var (
	badSignature = pattern.New(`^W: (?:.*GPG error|OpenPGP signature verification failed): (\S+) .*?InRelease: (.+)$`)
	failedFetch  = pattern.New(`^[EW]: Failed to fetch (\S+) +(.+)$`)
	noRelease    = pattern.New(`^[EW]: The repository '(\S+) .*' (does not have a Release file|is not signed|is no longer signed|does no longer have a Release file)`)
	badRelease   = pattern.New(`^[EW]: Release file for (\S+) (is .+?)(?:\. Updates .*)?$`)
	otherError   = pattern.New(`^E: (.+)$`)
)

func parseUpdate(text string) []Problem {
	var all []Problem
	add := func(uri, said string) {
		p := Problem{URI: uri, Said: said, Advice: "see the output of apt-get update on the machine"}
		for _, c := range causes {
			if c.text.MatchString(said) {
				p.Advice = c.advice
				break
			}
		}
		if !slices.Contains(all, p) && len(all) < 50 {
			all = append(all, p)
		}
	}
	signature := map[string]string{} // what is wrong with it, by URI: the error itself does not say
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := badSignature.FindStringSubmatch(line); m != nil {
			signature[m[1]] = strings.TrimSpace(m[2])
		} else if m := failedFetch.FindStringSubmatch(line); m != nil {
			add(m[1], strings.TrimSpace(m[2]))
		} else if m := noRelease.FindStringSubmatch(line); m != nil {
			if why := signature[m[1]]; why != "" {
				m[2] = why
			}
			add(m[1], m[2])
		} else if m := badRelease.FindStringSubmatch(line); m != nil {
			add(m[1], m[2])
		} else if m := otherError.FindStringSubmatch(line); m != nil &&
			!strings.HasPrefix(m[1], "Some index files failed") && !strings.HasPrefix(m[1], "The list of sources could not be read") {
			add("", m[1])
		}
	}
	return all
}

// ours reports whether a problem keeps what is declared from coming: it is one
// of a repository of ours, or of the sources as such.
func (s Spec) ours(p Problem) bool {
	if p.URI == "" {
		return true
	}
	for _, r := range s.Repositories {
		if slices.ContainsFunc(r.URIs, func(u string) bool { return strings.HasPrefix(p.URI+"/", strings.TrimRight(u, "/")+"/") }) {
			return true
		}
	}
	return false
}

// refreshScript refreshes the lists of some sources files alone, whatever state
// all others are in. $1 is how many; they follow, and then the command.
const refreshScript = `# fetch lists of packages
d=$(mktemp -d) || exit; trap 'rm -rf -- "$d"' EXIT
chmod 755 "$d"; n=$1; shift
while [ "$n" -gt 0 ]; do cp -- "$1" "$d" || exit; shift; n=$((n - 1)); done
"$@" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$d" -o APT::Get::List-Cleanup=0 2>&1`

func (a *apply) refresh(ctx context.Context) error {
	if len(a.want.Repositories) == 0 {
		return nil
	}
	host.Step(ctx, "%s", "refresh the lists of "+strings.Join(slices.Sorted(maps.Keys(a.want.Repositories)), ", "))
	files := []string{strconv.Itoa(len(a.want.Repositories))}
	for _, name := range slices.Sorted(maps.Keys(a.want.Repositories)) {
		files = append(files, sourcesFile(name))
	}
	return a.lists(ctx, refreshScript, files)
}

// refreshAll reads all lists. That is left when the resource is destroyed, so it
// is written down.
func (a *apply) refreshAll(ctx context.Context) error {
	if err := a.rec.Remember(ctx, noteLists, true); err != nil {
		return err
	}
	host.Step(ctx, "refresh all of apt's lists")
	return a.lists(ctx, `"$@" 2>&1`, nil)
}

// lists runs apt-get update. A foreign repository that does not work is
// reported and is not an error.
func (a *apply) lists(ctx context.Context, script string, args []string) error {
	args = slices.Concat([]string{"sh", "-c", script, "sh"}, args, a.want.environment(),
		[]string{"apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Retries=2", "-o", "Dpkg::Use-Pty=0"})
	for range 3 {
		out, status, err := host.Status(ctx, a.m, args...)
		if err != nil {
			return fmt.Errorf("refresh apt's lists: %w", err)
		}
		if strings.Contains(string(out), "Could not get lock") {
			if err := a.wait(ctx); err != nil {
				return err
			}
			continue
		}
		problems := parseUpdate(string(out))
		if slices.ContainsFunc(problems, a.want.ours) {
			return &UpdateError{Problems: problems}
		}
		a.problems = problems
		for _, p := range problems {
			a.report("a repository that is not stoke's does not work: " + p.String())
		}
		if status != 0 && len(problems) == 0 {
			return &ssh.CommandError{Host: a.m.Name(), Command: "apt-get update", Status: status, Output: lastLines(string(out), 10)}
		}
		return nil
	}
	return errors.New("refresh apt's lists: someone else took apt's lock three times: apply again")
}

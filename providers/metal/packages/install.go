package packages

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// archives is where an owner's packages are downloaded to: apt's own cache stays
// as it is. The scripts that look into archives know the name, too.
func archives(owner string) string { return "/var/cache/stoke-" + owner }

// transactionScript runs a command in a session of its own, with its output in
// a file, so that it continues when the connection breaks: a closed laptop must
// not interrupt dpkg. $1 is the file of the output.
const transactionScript = `# run apt-get
log=$1.$$; shift
rm -f "$log" "$log.status"
setsid -w sh -c 'log=$1; shift; "$@" >"$log" 2>&1 </dev/null; echo $? >"$log.status"' sh "$log" "$@" &
wait $!
status=$(cat "$log.status")
tail -c 65536 "$log"
rm -f "$log" "$log.status"
exit "${status:-1}"`

// dpkgOptions are for every command that changes packages: changed
// configuration files are kept, and dpkg waits for its lock.
var dpkgOptions = []string{"-y", "-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0",
	"-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"}

func (r request) flags() []string {
	var f []string
	if r.downgrade {
		f = append(f, "--allow-downgrades")
	}
	if r.held {
		f = append(f, "--allow-change-held-packages")
	}
	return f
}

func (a *apply) install(ctx context.Context, flags []string, args ...string) error {
	if _, err := host.Run(ctx, a.m, "install", "-d", "-m", "0755", archives(a.want.Owner)); err != nil {
		return fmt.Errorf("make %s: %w", archives(a.want.Owner), err)
	}
	if err := a.apt(ctx, slices.Concat([]string{"install", "-o", "Dir::Cache::archives=" + archives(a.want.Owner), noRecommends}, flags, args)...); err != nil {
		return err
	}
	if slices.Contains(flags, "--download-only") {
		return nil
	}
	return a.dropArchives(ctx)
}

func (a *apply) dropArchives(ctx context.Context) error {
	if _, err := host.Run(ctx, a.m, "rm", "-rf", "--", archives(a.want.Owner)); err != nil {
		return fmt.Errorf("remove the downloaded packages: %w", err)
	}
	return nil
}

func (a *apply) apt(ctx context.Context, args ...string) error {
	return a.transaction(ctx, slices.Concat([]string{"apt-get"}, dpkgOptions, args)...)
}

func (a *apply) transaction(ctx context.Context, command ...string) error {
	line := slices.Concat([]string{"sh", "-c", transactionScript, "sh", path.Join(a.rec.Dir(), "apt.log")}, a.want.environment(), command)
	stdout, err := host.Run(ctx, a.m, line...)
	var ended *ssh.CommandError
	if err != nil && (!errors.As(err, &ended) || ended.Status <= 0) {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	if err == nil {
		return nil
	}
	out := string(stdout)
	if strings.TrimSpace(out) == "" {
		out = ended.Output // it was not even begun
	}
	failed := &ssh.CommandError{Host: a.m.Name(), Command: ssh.QuoteAll(command...), Status: ended.Status, Output: lastLines(out, 12)}
	if strings.Contains(out, "Unable to fetch some archives") {
		return &oldListsError{fmt.Errorf("download packages: %w", failed)}
	}
	for _, c := range causes { // what keeps apt from downloading keeps it from reading lists, too
		if c.text.MatchString(errorLines(out)) {
			return fmt.Errorf("install packages: %s: %w", c.advice, failed)
		}
	}
	if names := failedScripts(out); len(names) > 0 {
		return fmt.Errorf("the maintainer scripts of %s fail, which apt cannot fix: see why (systemctl status, "+
			"journalctl -xe), then apply again to continue: %w", strings.Join(names, ", "), failed)
	}
	return fmt.Errorf("install packages: %w", failed)
}

// errorLines are the error lines of apt and dpkg themselves, without the output
// of maintainer scripts.
func errorLines(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "E: ") || strings.HasPrefix(line, "Err:") || strings.Contains(line, "No space left on device") {
			b.WriteString(line)
		}
	}
	return b.String()
}

var failedScript = pattern.New(`(?m)^dpkg: error processing package (\S+) \(--`)

func failedScripts(out string) []string {
	var names []string
	for _, m := range failedScript.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// repair completes an interrupted dpkg: first the configuration of packages,
// then downloads by apt, if they need nothing undeclared.
func (a *apply) repair(ctx context.Context) error {
	if !a.have.unfinished() {
		return nil
	}
	why, err := a.configure(ctx)
	if err != nil || !a.have.unfinished() || a.replaces(a.have) {
		return err
	}
	return a.fix(ctx, why)
}

// configure has dpkg finish what it can; why is what it says.
func (a *apply) configure(ctx context.Context) (why, err error) {
	host.Step(ctx, "finish what dpkg was cut off in")
	why = a.transaction(ctx, "dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
	return why, a.look(ctx)
}

// fix lets apt repair a state that dpkg cannot: packages that have to be
// unpacked again, and dependencies that were removed by force. why is what dpkg
// said.
func (a *apply) fix(ctx context.Context, why error) error {
	again, broken := a.have.unfinishedPackages()
	actions, err := simulate(ctx, a.m, a.want, append([]string{"-f", "install"}, again...)...)
	if err != nil {
		return err
	}
	if reasons := a.want.judge(actions, broken...); len(reasons) > 0 {
		return &RefusedError{Reasons: append([]string{"dpkg is not finished (" + strings.Join(a.have.Broken, ", ") + ")"}, reasons...)}
	}
	if err := a.install(ctx, []string{"-f"}, again...); err != nil {
		return err
	}
	if err := a.look(ctx); err != nil {
		return err
	}
	if len(a.have.Broken) > 0 {
		return fmt.Errorf("dpkg cannot finish %s: %w", strings.Join(a.have.Broken, ", "), why)
	}
	return nil
}

// replaces reports whether every package that dpkg could not finish is about to
// be replaced by another version, or removed: the transaction fixes it then.
func (a *apply) replaces(have State) bool {
	for _, b := range have.Broken {
		name, _, _ := strings.Cut(b, " ")
		w, declared := a.want.Packages[name]
		if (!declared || Matches(w.Version, have.Packages[name].Version)) && !slices.Contains(a.want.Absent, name) {
			return false
		}
	}
	return !have.Interrupted
}

// unfinishedPackages are the packages that have to be unpacked once more, as apt's arguments,
// and broken all that are not finished.
func (st State) unfinishedPackages() (unfinishedPackages, broken []string) {
	for _, b := range st.Broken {
		name, how, _ := strings.Cut(b, " ")
		broken = append(broken, name)
		if strings.Contains(how, "half-installed") || strings.Contains(how, "again") {
			unfinishedPackages = append(unfinishedPackages, name)
		}
	}
	if len(unfinishedPackages) > 0 {
		unfinishedPackages = append([]string{"--reinstall"}, unfinishedPackages...)
	}
	return unfinishedPackages, broken
}

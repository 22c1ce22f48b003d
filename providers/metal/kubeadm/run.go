package kubeadm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// kubeadm on a machine has lockFile while it runs, whoever started it, and
// logFile has what it says. Both are in /run, and end with a boot.
const (
	lockFile = "/run/stoke-kubeadm.lock"
	logFile  = "/run/stoke-kubeadm.log"
)

// busyStatus is how the scripts end where kubeadm runs already (EX_TEMPFAIL).
const busyStatus = 75

// alone fails at once if the lock is taken: two kubeadms on a machine would undo
// each other's work. kubeadm inherits the lock, for the case that the connection
// breaks and it continues.
const alone = `export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin"
umask 077
exec 9>` + lockFile + `
flock -n 9 || { echo "kubeadm runs on this machine already" >&2; exit 75; }
`

// direct adds the addresses $1 to what a proxy is not asked for, where the machine
// has one: kubeadm hands that on to the static pods and to kube-proxy.
const direct = `if [ -n "${http_proxy-}${https_proxy-}${HTTP_PROXY-}${HTTPS_PROXY-}" ]; then
	no_proxy=${no_proxy-${NO_PROXY-}}
	no_proxy=${no_proxy:+$no_proxy,}$1
	NO_PROXY=$no_proxy
	export no_proxy NO_PROXY
fi
shift
`

// configured runs kubeadm "$@" with a configuration from standard input, which is
// a pipe for it: what the shell has may be a socket, which has no path. Its
// output goes to the log without tokens.
const configured = `: >` + logFile + `
status=$({ { cat | kubeadm "$@" --config /dev/stdin 2>&1 3>&-; echo $? >&3; } |
	sed -u -E 's/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/(token)/g' >>` + logFile + `; } 3>&1)
[ "$status" != 0 ] || exit 0
tail -n 200 ` + logFile + `
exit "${status:-1}"`

// begin, enter and phase differ in what people read in errors and logs.
const (
	begin = "# make this machine a control plane (kubeadm init)\n" + alone + direct + configured
	enter = "# have this machine join a cluster (kubeadm join)\n" + alone + direct + configured
	phase = "# repeat a part of kubeadm init\n" + alone + direct + configured
)

// Begin makes a machine a control plane by kubeadm init. It must not be repeated
// on a machine where it has begun: after a broken connection Observe finds out
// the result.
func Begin(ctx context.Context, m host.Machine, configuration []byte) error {
	// The output's commands for joining are not needed: stoke joins workers.
	return run(ctx, m, begin, configuration, "init", "--skip-phases=show-join-command")
}

// Enter makes a machine a worker by kubeadm join.
func Enter(ctx context.Context, m host.Machine, configuration []byte) error {
	return run(ctx, m, enter, configuration, "join")
}

// Phase repeats a phase of kubeadm init, such as "control-plane", "apiserver", on
// a control plane, with what Cluster.Init renders. Only the phase bootstrap-token
// makes anything of the token in it; certificates that are there stay as they are.
func Phase(ctx context.Context, m host.Machine, configuration []byte, name ...string) error {
	return run(ctx, m, phase, configuration, append([]string{"init", "phase"}, name...)...)
}

// Error says why kubeadm failed.
type Error struct {
	Host string
	Verb string // as kubeadm has it: init, join, init phase certs apiserver
	// Failed are the preflight checks that failed, as IgnorePreflight names them.
	Failed []string
	// Lines are the last that kubeadm said, without tokens.
	Lines []string
	Err   error
}

// Slow reports whether init ended because the API server did not answer its first
// call in ten seconds, a limit that cannot be changed: the steps before have
// succeeded.
func Slow(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Verb == "init" && slices.ContainsFunc(e.Lines, func(line string) bool {
		return strings.Contains(line, "could not bootstrap the admin user")
	})
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: kubeadm %s failed", e.Host, e.Verb)
	if len(e.Failed) > 0 {
		text += ", the machine is not ready for it: " + strings.Join(e.Failed, ", ")
	}
	return text + ":\n  " + strings.Join(e.Lines, "\n  ")
}

func (e *Error) Unwrap() error { return e.Err }

// ErrBusy: kubeadm runs on the machine already, started by another program or
// before a broken connection.
var ErrBusy = errors.New("kubeadm runs there already: wait until it has ended")

func run(ctx context.Context, m host.Machine, script string, configuration []byte, args ...string) error {
	var words []string
	for _, a := range args {
		if !strings.HasPrefix(a, "--") {
			words = append(words, a)
		}
	}
	verb := strings.Join(words, " ")
	host.Step(ctx, "kubeadm %s", verb)
	watch, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(watch, m, verb)
	}()
	out, err := m.Run(ctx, host.Command{Args: append([]string{"sh", "-c", script, "sh", strings.Join(clusterNames(configuration), ",")}, args...), Stdin: configuration, Once: true})
	stop()
	<-done
	return failure(m, verb, out, err)
}

// failure is what became of a run of kubeadm.
func failure(m host.Machine, verb string, out ssh.Output, err error) error {
	var failed *ssh.CommandError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failed):
		return fmt.Errorf("kubeadm %s: %w", verb, err)
	case failed.Status == busyStatus:
		return fmt.Errorf("%s: %w", m.Name(), ErrBusy)
	}
	said := string(out.Stdout)
	if strings.TrimSpace(said) == "" {
		said = string(out.Stderr)
	}
	is := &Error{Host: m.Name(), Verb: verb, Err: err}
	for line := range strings.Lines(redacted(said)) {
		if line = strings.TrimSpace(line); line != "" {
			is.Lines = append(is.Lines, line)
		}
		if f := preflightFailed.FindStringSubmatch(line); f != nil {
			is.Failed = append(is.Failed, f[1])
		}
	}
	is.Lines = is.Lines[max(0, len(is.Lines)-maxLines):]
	return is
}

// clusterNames are the networks, addresses and names of the cluster that a configuration
// is of.
func clusterNames(configuration []byte) []string {
	var all []string
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	for text := range bytes.SplitSeq(configuration, []byte("---\n")) {
		var d struct {
			ControlPlaneEndpoint string         `json:"controlPlaneEndpoint"`
			Networking           *networking    `json:"networking"`
			LocalAPIEndpoint     *localEndpoint `json:"localAPIEndpoint"`
			Discovery            *discovery     `json:"discovery"`
		}
		if yaml.Unmarshal(text, &d) != nil {
			continue // whoever reads it says so
		}
		if d.Networking != nil {
			add(strings.Split(d.Networking.ServiceSubnet, ",")...)
			add(strings.Split(d.Networking.PodSubnet, ",")...)
			add(".svc", "."+d.Networking.DNSDomain)
		}
		endpoints := []string{d.ControlPlaneEndpoint}
		if d.Discovery != nil {
			endpoints = append(endpoints, d.Discovery.BootstrapToken.APIServerEndpoint)
		}
		for _, endpoint := range endpoints {
			name, _, _ := net.SplitHostPort(endpoint)
			add(name)
		}
		if d.LocalAPIEndpoint != nil {
			add(d.LocalAPIEndpoint.AdvertiseAddress)
		}
	}
	return all
}

const maxLines = 20

var (
	preflightFailed = pattern.New(`^\[ERROR ([^\]]+)\]`)
	phaseLine       = pattern.New(`^\[([a-z][a-z-]*)\]`)
)

// lookEvery is how often people are told what kubeadm does.
const lookEvery = 2 * time.Second

const progress = `# follow kubeadm
[ ! -e "$1" ] || tail -n "+$2" "$1"`

// follow reports kubeadm's phase to the user, until ctx ends. It ignores
// failures.
func follow(ctx context.Context, m host.Machine, verb string) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for seen, last := 0, ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		out, err := host.LookScript(ctx, m, progress, logFile, strconv.Itoa(seen+1))
		if err != nil {
			continue
		}
		whole, _, _ := cutLast(string(out), "\n")
		for line := range strings.Lines(whole) {
			seen++
			if f := phaseLine.FindStringSubmatch(line); f != nil && f[1] != last {
				last = f[1]
				host.Step(ctx, "kubeadm %s: %s", verb, last)
			}
		}
	}
}

// cutLast is what is before the last sep, with it, and what is behind.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i+len(sep)], s[i+len(sep):], true
}

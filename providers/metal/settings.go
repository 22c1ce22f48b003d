package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// settings is what the provider block says, for the resources of one phase.
type settings struct {
	ssh     connect.SSHSettings
	pool    *ssh.Pool
	proxy   *packages.Proxy   // what machines download through; nil: as they are
	mirrors map[string]string // from the beginning of a URL to what stands in for it
	sums    archiveSums       // of the images' archives
	seen    *factsCache       // facts that were gathered, for Review
	places  chan struct{}     // as many as operations at a time; nil: as many as there are
	shared  *processState
	// clusters are those that nodes are members of, as their control planes give
	// access to them.
	clusters *kubernetes.Pool
	slow     sync.Map // machines whose sudo takes long, to why
	unfit    sync.Map // names of machines whose unfit GPUs the refresh has warned of
}

func newSettings(s connect.SSHSettings, with *processState) *settings {
	is := &settings{ssh: s, pool: s.Pool(), shared: with, clusters: &kubernetes.Pool{SSH: s}}
	is.pool.Slow = is.slowSudo
	return is
}

func (s *settings) slowSudo(ctx context.Context, name, why string) {
	host.Step(ctx, "sudo on %s takes long: %s", name, why)
	s.slow.Store(name, why)
}

func (s *settings) noteSlowSudo(m host.Machine, diags *diag.Diagnostics) {
	if why, slow := s.slow.Load(m.Name()); slow {
		diags.AddAttributeWarning(path.Root("address"), "sudo is slow", fmt.Sprintf("%s: sudo takes seconds each time: %s. With hostname in metal_host, apply writes that line.", m.Name(), why))
	}
}

// mirror is where a well-known URL is to be fetched from: the longest
// declared beginning counts.
func (s *settings) mirror(url string) string {
	best := ""
	for from := range s.mirrors {
		if len(from) > len(best) && (url == from || strings.HasPrefix(url, strings.TrimSuffix(from, "/")+"/")) {
			best = from
		}
	}
	if best == "" {
		return url
	}
	return strings.TrimSuffix(s.mirrors[best], "/") + strings.TrimPrefix(url, strings.TrimSuffix(best, "/"))
}

// noProxy is what machines reach directly: what is declared, and what a node must
// never ask a proxy for. The networks are the defaults of kubeadm and the usual
// CNIs for services and pods; Review reports where others are missing. nil: there
// is no proxy.
func (s *settings) noProxy() []string {
	if s.proxy == nil {
		return nil
	}
	all := slices.Clone(s.proxy.Direct)
	for _, d := range []string{"localhost", "127.0.0.0/8", "::1", ".svc", ".cluster.local", serviceNetwork, "10.244.0.0/16"} {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

func (s *settings) close() {
	if s != nil {
		s.clusters.Close()
		s.pool.Close()
	}
}

// wayOf is the way that an argument is. While something of it is unknown, the
// error is connect.ErrUnknown.
func wayOf(ctx context.Context, argument types.Object) (connect.SSH, error) {
	to, known := connect.MachineFromObject(ctx, argument)
	if !known {
		return to, connect.ErrUnknown
	}
	return to, nil
}

// machine is the one that an argument leads to. While something of it, or of
// the provider block, is unknown, the error is connect.ErrUnknown.
func (s *settings) machine(ctx context.Context, argument types.Object) (*host.Remote, error) {
	to, err := wayOf(ctx, argument)
	if err != nil {
		return nil, err
	}
	return s.reach(to, nil)
}

// reach is machine for a way that is known. accept is asked about the key of a
// machine that has none yet; nil refuses it.
func (s *settings) reach(to connect.SSH, accept func(key string) error) (*host.Remote, error) {
	target, err := s.ssh.Target(to, accept)
	switch {
	case errors.Is(err, connect.ErrUnknown):
		return nil, err
	case err != nil: // the provider block has no such credential, or no user: waiting fixes nothing
		return nil, ssh.Permanent{Err: err}
	}
	return &host.Remote{Pool: s.pool, Target: target}, nil
}

// unreachable returns the reason why a machine cannot be observed. A plan
// continues with the stored values; for an apply it is an error.
func unreachable(address string, err error) (summary, detail string) {
	var key *ssh.HostKeyError
	why := sentence(err)
	if !strings.HasPrefix(why, address) {
		why = address + ": " + why
	}
	switch {
	case errors.As(err, &key):
		return "Host key does not match", sentence(err)
	case ssh.IsPermanent(err):
		return "Cannot log in on the machine", why
	}
	return "Machine cannot be reached", why + " Nothing is known of it beyond what the state says."
}

func notLooked(diags *diag.Diagnostics, at path.Path, address string, err error) {
	summary, detail := unreachable(address, err)
	diags.AddAttributeWarning(at, summary, detail+" The plan is made without looking; apply looks before it changes anything.")
}

// isUnreachable reports whether an error means that the machine could not be asked.
func isUnreachable(err error) bool {
	var command *ssh.CommandError
	var unfit *firewall.UnfitError
	var answer *host.AnswerError
	return err != nil && !errors.As(err, &command) && !errors.As(err, &unfit) && !errors.As(err, &answer)
}

func addError(diags *diag.Diagnostics, at path.Path, summary string, err error) {
	if len(at.Steps()) == 0 {
		diags.AddError(summary, sentence(err))
		return
	}
	diags.AddAttributeError(at, summary, sentence(err))
}

// sentence is an error with one full stop at its end: what a machine said may
// have brought one.
func sentence(err error) string { return strings.TrimRight(err.Error(), ".") + "." }

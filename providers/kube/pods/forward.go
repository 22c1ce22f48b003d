package pods

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/klog/v2"

	"github.com/stokehq/stoke/providers"
)

// loopback is where ports are had. With "localhost" client-go accepts one of two
// addresses, and the other one may belong to another program.
const loopback = "127.0.0.1"

// Forward listens on 127.0.0.1 and passes connections on to a pod. A connection to the pod that is lost is made again;
// where the role may be another pod's too, that one takes over.
func (s *Set) Forward(ctx context.Context, role string, ports []providers.RunPort, o providers.RunForward) error {
	f := &forwarding{s: s, role: role, RunForward: o}
	pause := firstPause
	for begun := false; ; begun = true {
		to, err := s.choose(ctx, role)
		if err == nil {
			var bound []providers.RunPort
			bound, err = f.forward(ctx, to, ports)
			if len(bound) > 0 {
				ports, pause = bound, firstPause // the same ones again
			}
		}
		var refusal *providers.RunError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errLost):
		case !begun, errors.As(err, &refusal) && refusal.Summary == noSuchRole, errors.Is(err, providers.ErrNoRun):
			return err
		default:
			f.reportTrouble(strings.TrimSuffix(err.Error(), ".") + "; trying again")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, lastPause)
	}
}

// errLost: the connection to a pod has ended.
var errLost = errors.New("the connection to the pod is lost")

// forwarding is one call of Forward.
type forwarding struct {
	s    *Set
	role string
	providers.RunForward

	mu   sync.Mutex // guards the calls
	last string     // the pod that was last reported as ready
}

func (f *forwarding) reportTrouble(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Trouble != nil {
		f.Trouble(text)
	}
}

func (f *forwarding) ready(to *chosen, ports []providers.RunPort) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Ready != nil && f.last != string(to.pod.UID) {
		f.last = string(to.pod.UID)
		pod, _, _ := strings.Cut(to.role, "/")
		f.Ready(pod, ports)
	}
}

// forward passes connections on to one pod until its connection is lost. bound
// are the ports that it listened on.
func (f *forwarding) forward(ctx context.Context, to *chosen, ports []providers.RunPort) (bound []providers.RunPort, err error) {
	pairs := make([]string, len(ports))
	for i, p := range ports {
		remote, err := portOf(to.pod, p.Remote)
		if err != nil {
			return nil, err
		}
		pairs[i] = fmt.Sprintf("%d:%d", p.Local, remote)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer, err := f.s.Client.Tunnels(ctx, f.s.url(to.pod, "portforward", nil))
	if err != nil {
		return nil, err
	}
	var unbound bytes.Buffer
	listening, ended := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(f.logging(ctx), dialer, []string{loopback}, pairs, listening, io.Discard, &unbound)
	if err != nil {
		return nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return nil, f.explainError(to, ports, err)
	case <-listening:
	}
	if unbound.Len() > 0 {
		cancel()
		<-ended
		return nil, occupied(unbound.String())
	}
	forwarded, err := forwarder.GetPorts()
	if err != nil {
		return nil, err
	}
	bound = slices.Clone(ports)
	for i := range bound {
		bound[i].Local = forwarded[i].Local
	}
	f.ready(to, bound)
	return bound, f.explainError(to, ports, <-ended)
}

// explainError is an error of client-go in words.
func (f *forwarding) explainError(to *chosen, ports []providers.RunPort, err error) error {
	switch {
	case err == nil, errors.Is(err, portforward.ErrLostConnectionToPod):
		return errLost
	case strings.Contains(err.Error(), "unable to listen"):
		return occupied(err.Error())
	}
	return streamRefusal("forward ports", to, err)
}

// occupied is the error for ports of this machine that are in use.
func occupied(said string) error {
	return &providers.RunError{Summary: "Local port cannot be used", Detail: strings.Join(strings.Fields(said), " ") + ". Give another one before the colon, or none for any that is free: \":80\"."}
}

// logging returns a context with a logger for faults of connections through the
// forwarded ports; client-go tells it in no other way.
func (f *forwarding) logging(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.New(&troubles{f}))
}

// troubles passes on what is logged as an error.
type troubles struct{ *forwarding }

func (t *troubles) Init(logr.RuntimeInfo)          {}
func (t *troubles) Enabled(int) bool               { return false }
func (t *troubles) Info(int, string, ...any)       {}
func (t *troubles) WithValues(...any) logr.LogSink { return t }
func (t *troubles) WithName(string) logr.LogSink   { return t }
func (t *troubles) Error(err error, _ string, _ ...any) {
	if err != nil {
		t.reportTrouble(err.Error())
	}
}

// portOf is the number of a port of a pod, which may be given by its name.
func portOf(p *core.Pod, given string) (int32, error) {
	if n, err := strconv.ParseUint(given, 10, 16); err == nil && n > 0 {
		return int32(n), nil
	}
	var names []string
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == given {
				return port.ContainerPort, nil
			}
			if port.Name != "" {
				names = append(names, port.Name)
			}
		}
	}
	detail := fmt.Sprintf("%q is not a number from 1 to 65535, and pod %s has no port of that name.", given, p.Name)
	if len(names) > 0 {
		detail += " Its ports are " + strings.Join(names, ", ") + "."
	}
	return 0, &providers.RunError{Summary: "No such port", Detail: detail}
}

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/spec"
)

// errNoCoordinator: no coordinator is running that could answer.
var errNoCoordinator = errors.New("the run's coordinator does not run")

// session talks to the coordinator of a run.
type session struct {
	*api.Client
	pod       string
	unreached *atomic.Bool // the API server did not connect to the pod
}

// session connects to the coordinator in one of these pods.
func (c *cluster) session(ctx context.Context, id string, all []core.Pod) (*session, error) {
	pod := running(all)
	if pod == nil {
		return nil, errNoCoordinator
	}
	var secret core.Secret
	there, err := c.get(ctx, secrets, id, &secret)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("the Secret %s is gone: stoke cannot connect to the run", id)
	}
	pin, err := certificate.ReadPin(secret.Data[keyCertificate])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", id, err)
	}
	port := 0
	for _, c := range pod.Spec.Containers { // a webhook may have put others before ours
		for _, p := range c.Ports {
			if c.Name == container && p.Name == "api" {
				port = int(p.ContainerPort)
			}
		}
	}
	name, unreached := pod.Name, new(atomic.Bool)
	client := api.New("https://"+coordinator, string(secret.Data[keyToken]), pin).DialWith(func(ctx context.Context) (net.Conn, error) {
		conn, err := c.DialPod(ctx, c.namespace, name, port)
		unreached.Store(err != nil)
		return conn, err
	})
	return &session{client, name, unreached}, nil
}

// askIn asks coordinators over connections of their own. The caller closes the session.
func askIn(c *cluster) asking {
	return func(ctx context.Context, id string, all []core.Pod) (spec.Status, *session, error) {
		s, err := c.session(ctx, id, all)
		if err != nil {
			return spec.Status{}, nil, err
		}
		status, err := s.ask(ctx, id)
		if err != nil {
			s.Close()
			return status, nil, err
		}
		return status, s, nil
	}
}

// askTime is how long a coordinator may take to answer.
const askTime = 10 * time.Second

// ask returns the coordinator's status of the run.
func (s *session) ask(ctx context.Context, id string) (spec.Status, error) {
	within, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	status, err := s.Status(within)
	if err == nil {
		err = launch.Check(status, id)
	}
	return status, err
}

// running is the coordinator's pod whose container runs; nil: there is none.
func running(all []core.Pod) *core.Pod {
	for i, p := range all {
		if p.Labels[roleLabel] != coordinator || p.DeletionTimestamp != nil {
			continue
		}
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == container && s.State.Running != nil {
				return &all[i]
			}
		}
	}
	return nil
}

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/certificate"
)

// errNoCoordinator says that there is no coordinator to be asked at present.
var errNoCoordinator = errors.New("the run's coordinator does not run")

// session talks to the coordinator of a run.
type session struct {
	*api.Client
	pod string
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
		return nil, fmt.Errorf("the Secret %s is gone: nobody can talk to the run any more", id)
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
	name := pod.Name
	client := api.New("https://"+coordinator, string(secret.Data[keyToken]), pin).Through(func(ctx context.Context) (net.Conn, error) {
		return c.DialPod(ctx, c.namespace, name, port)
	})
	return &session{client, name}, nil
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

package member

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/host"
)

// UnverifiedError is a pod's finding about the GPUs of a node.
type UnverifiedError struct{ Node, Why string }

func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("the GPUs of node %s cannot be relied on: %s", e.Node, e.Why)
}

// Verified is what Verify could try.
type Verified struct {
	// Users are pods that have GPUs of the node: what they have could not be opened,
	// and systemd was not reloaded, which they might have lost it by.
	Users []string
}

// errGivenWay: a probe's GPUs were given to a foreign pod.
var errGivenWay = errors.New("its GPUs were given to another pod")

const (
	probeUndo = 40 * time.Second
	// rounds are how often a probe looks again after something happened, until that
	// is taken for its outcome.
	rounds = 3
)

// Verify tests the node with pods: one opens every free GPU, and one that
// requested none sees none. Where no other pod there has a GPU, reload reloads
// systemd, and both look again: containers that run may lose their GPUs by it
// (nvidia-container-toolkit#48). An *UnverifiedError says what failed.
func Verify(ctx context.Context, c *kubernetes.Client, want Spec, image string, reload func(context.Context) error, patience time.Duration) (v Verified, err error) {
	have, err := Observe(ctx, c, want.Name)
	if err == nil && have == nil {
		err = Unready(want, nil)
	}
	if err == nil {
		err = RemoveProbes(ctx, c, want.Name)
	}
	if err != nil {
		return v, err
	}
	probes, users, err := probesFor(ctx, c, have, want, image)
	if err != nil {
		return v, err
	}
	v.Users = users
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeUndo)
		defer cancel()
		err = errors.Join(err, awaitGone(undo, c, want.Name))
	}()
	host.Step(ctx, "trying the GPUs of node %s", want.Name)
	end := time.Now().Add(patience)
	for _, p := range probes {
		if err := p.make(ctx, c); err != nil {
			return v, err
		}
	}
	var seen []int
	for _, p := range probes {
		n, err := p.await(ctx, c, 1, end)
		switch {
		case errors.Is(err, errGivenWay):
			v.Users = append(v.Users, "a pod that came since")
			return v, nil
		case err != nil:
			return v, err
		}
		seen = append(seen, n)
	}
	if len(v.Users) > 0 {
		return v, nil
	}
	host.Step(ctx, "reloading systemd under pods with GPUs of node %s, which are stoke's own", want.Name)
	if err := reload(ctx); err != nil {
		return v, err
	}
	for i, p := range probes {
		_, err := p.await(ctx, c, seen[i]+rounds, time.Now().Add(patience))
		if failed := (*UnverifiedError)(nil); errors.As(err, &failed) {
			failed.Why += ", after systemctl daemon-reload: so would every pod there. Have the device plugin and the runtime name devices by CDI, and look at /dev/char"
		}
		if err != nil && !errors.Is(err, errGivenWay) {
			return v, err
		}
	}
	return v, nil
}

// probesFor returns the pods that test a node: one without a GPU, and one with
// all free GPUs.
func probesFor(ctx context.Context, c *kubernetes.Client, have *State, want Spec, image string) (all []probe, users []string, err error) {
	id := strings.ToLower(rand.Text()[:10])
	none := probe{node: want.Name, name: "stoke-sees-no-gpu-" + id, image: image}
	users, free, err := Users(ctx, c, have, want.GPUs)
	if err != nil {
		return nil, nil, err
	}
	with := probe{node: want.Name, name: "stoke-opens-gpus-" + id, image: image, on: have, gpus: map[string]int64{}}
	for name, n := range free {
		if want.GPUs[name] > 0 {
			with.gpus[name] = n
		}
	}
	capacity := have.Node.Status.Capacity[GPU]
	if want.GPUs[GPU] > 0 && capacity.IsZero() && have.Devices[GPU] > 0 && len(users) == 0 {
		with.claims = have.Devices[GPU] // only the driver knows which pod has which of them
	}
	if with.runtime, err = nvidiaRuntime(ctx, c); err != nil {
		return nil, nil, err
	}
	all = []probe{none}
	if len(with.gpus) > 0 || with.claims > 0 {
		all = append(all, with)
	}
	return all, users, nil
}

// await waits until a probe has looked so often, and returns how often it has.
func (p probe) await(ctx context.Context, c *kubernetes.Client, least int, end time.Time) (int, error) {
	for {
		n, waits, err := p.round(ctx, c)
		switch {
		case err != nil:
			return n, err
		case n >= least:
			return n, nil
		case n == 0 && p.outrun(ctx, c):
			return 0, errGivenWay
		case time.Now().After(end):
			return n, &UnverifiedError{p.node, fmt.Sprintf("the pod %s/%s does not begin, with the image %s: %s", probeNamespace, p.name, p.image, waits)}
		}
		if stop := host.Pause(ctx, pause); stop != nil {
			return n, stop
		}
	}
}

// outrun reports whether a foreign pod got a GPU before the probe, which
// requests all free ones.
func (p probe) outrun(ctx context.Context, c *kubernetes.Client) bool {
	if len(p.gpus) == 0 {
		return false
	}
	_, free, err := Users(ctx, c, p.on, p.gpus)
	for name, n := range p.gpus {
		if err == nil && free[name] < n {
			return true
		}
	}
	return false
}

// round returns how often a probe has looked, and why it waits if it has not.
func (p probe) round(ctx context.Context, c *kubernetes.Client) (n int, waits string, err error) {
	pod := &core.Pod{}
	switch err := get(ctx, c, pods, probeNamespace, p.name, pod); {
	case apierrors.IsNotFound(err):
		return 0, "", errGivenWay
	case err != nil:
		return 0, err.Error(), nil // the API server may be back in a moment
	case pod.DeletionTimestamp != nil:
		return 0, "", errGivenWay
	case pod.Status.Phase == core.PodFailed || pod.Status.Phase == core.PodSucceeded:
		return 0, "", p.failed(ctx, c, pod)
	case pod.Status.Phase == core.PodPending:
		return 0, pending(pod), nil
	}
	line, err := p.lastLogLine(ctx, c)
	if err != nil {
		return 0, fmt.Sprintf("its log cannot be read: %v", err), nil
	}
	if _, err := fmt.Sscanf(line, "round %d", &n); err != nil {
		return 0, "it says " + line, nil
	}
	return n, "", nil
}

// lastLogLine is the last line of a probe's log.
func (p probe) lastLogLine(ctx context.Context, c *kubernetes.Client) (string, error) {
	log, err := c.PodLog(ctx, probeNamespace, p.name, kubernetes.LogOptions{Container: "probe", Tail: 1})
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(io.LimitReader(log, 4<<10))
	return lastLine(string(text)), err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// failed is why a probe has ended.
func (p probe) failed(ctx context.Context, c *kubernetes.Client, pod *core.Pod) error {
	if pod.Status.Reason == "Preempting" || pod.Status.Reason == "Preempted" || strings.HasPrefix(pod.Status.Reason, "OutOf") {
		return errGivenWay
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core.DisruptionTarget && condition.Reason == "PreemptionByScheduler" {
			return errGivenWay
		}
	}
	why := pod.Status.Message
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.Message != "" {
			why = lastLine(t.Message)
		}
	}
	if why == "" {
		why, _ = p.lastLogLine(ctx, c) // where that is gone, too, its reason has to do
	}
	if why == "" {
		why = "it ended with no word: " + pod.Status.Reason
	}
	what := "a pod that asked for no GPU"
	if len(p.gpus) > 0 || p.claims > 0 {
		what = "a pod with " + amounts(p.gpus, p.claims)
	}
	return &UnverifiedError{p.node, what + " " + why}
}

func amounts(gpus map[string]int64, claims int64) string {
	if claims > 0 {
		return fmt.Sprintf("%d devices of %s", claims, draDriver)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(gpus)) {
		all = append(all, fmt.Sprintf("%d %s", gpus[name], name))
	}
	return strings.Join(all, ", ")
}

// pending is what a pod waits for.
func pending(pod *core.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Message != "" {
			return w.Reason + ": " + w.Message
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == core.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return "it is pending"
}

// awaitGone removes all probes of a node, and waits until GPUs are free again.
func awaitGone(ctx context.Context, c *kubernetes.Client, node string) error {
	if err := RemoveProbes(ctx, c, node); err != nil {
		return err
	}
	for {
		left := false
		err := listEach(ctx, c, pods, "spec.nodeName="+node, func(p *core.Pod) {
			left = left || p.Annotations[probeLabel] == node
		})
		if err != nil || !left {
			return err
		}
		if err := host.Pause(ctx, pause); err != nil {
			return fmt.Errorf("a pod that tried the GPUs of node %s does not end: %w", node, err)
		}
	}
}

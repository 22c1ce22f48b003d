package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	resources "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/host"
)

const (
	// GPU is what NVIDIA's device plugin calls whole GPUs.
	GPU = "nvidia.com/gpu"
	// draDriver is NVIDIA's driver for dynamic resource allocation.
	draDriver = "gpu.nvidia.com"
	// pause is between two looks.
	pause = time.Second
)

var slicesOfNodes = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}

// devices counts what a node's ResourceSlices offer, by the names that NVIDIA's device
// plugin has for the same: whole GPUs, and slices of GPUs (MIG) by their profile. Slices
// of an older generation of a pool do not count.
func devices(ctx context.Context, c *kubernetes.Client, node string) (map[string]int64, error) {
	generations := map[string]int64{}
	pools := map[string]map[string]int64{}
	err := listEach(ctx, c, slicesOfNodes, "spec.nodeName="+node, func(s *resources.ResourceSlice) {
		pool := s.Spec.Pool
		if s.Spec.Driver != draDriver || pool.Generation < generations[pool.Name] {
			return
		}
		if pools[pool.Name] == nil || pool.Generation > generations[pool.Name] {
			generations[pool.Name], pools[pool.Name] = pool.Generation, map[string]int64{}
		}
		for _, d := range s.Spec.Devices {
			if name := resourceOf(d); name != "" {
				pools[pool.Name][name]++
			}
		}
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("look at the ResourceSlices of node %s: %w", node, err)
	}
	all := map[string]int64{}
	for _, of := range pools {
		for name, n := range of {
			all[name] += n
		}
	}
	return all, nil
}

// resourceOf is the name of the resource that a device would be with NVIDIA's device
// plugin, which writes the + of a profile as a dot; "" for an unknown one.
func resourceOf(d resources.Device) string {
	text := func(attribute resources.QualifiedName) string {
		if v := d.Attributes[attribute].StringValue; v != nil {
			return *v
		}
		return ""
	}
	switch profile := text("profile"); {
	case text("type") == "mig" && profile != "":
		return "nvidia.com/mig-" + strings.ReplaceAll(profile, "+", ".")
	case text("type") == "gpu", text("type") == "":
		return GPU
	}
	return ""
}

// Shortage is a resource that a node has less of than declared.
type Shortage struct {
	Resource             string
	Want, Have, Capacity int64
	Registered           bool // a device plugin, or a DRA driver, has told of it
}

func (s Shortage) String() string {
	switch {
	case !s.Registered && s.Want > 0:
		return fmt.Sprintf("no device plugin runs on the node that offers %s (%d declared)", s.Resource, s.Want)
	case s.Have > s.Want:
		return fmt.Sprintf("more of %s than declared (%d, and %d declared)", s.Resource, s.Have, s.Want)
	case s.Resource == GPU:
		return fmt.Sprintf("too few GPUs (%d of %d)", s.Have, s.Want) + s.unhealthy()
	}
	return fmt.Sprintf("too few of %s (%d of %d)", s.Resource, s.Have, s.Want) + s.unhealthy()
}

func (s Shortage) unhealthy() string {
	if s.Capacity > s.Have {
		return fmt.Sprintf(": the device plugin counts %d, and calls %d unhealthy", s.Capacity, s.Capacity-s.Have)
	}
	return ""
}

// Advice is what to do about it.
func (s Shortage) Advice() string {
	if !s.Registered {
		return "metal_cluster applies NVIDIA's plugin unless gpu_plugin = \"none\"; look at its pod there (kubectl get pods -A --field-selector spec.nodeName=NODE) and at the driver (nvidia-smi)"
	}
	return "Look at nvidia-smi and at the device plugin's log, or declare as many as there are"
}

// Shortages compares the GPUs for pods with the declared ones.
func (s *State) Shortages(want Spec) []Shortage {
	var all []Shortage
	for _, name := range slices.Sorted(maps.Keys(want.GPUs)) {
		capacity, known := s.Node.Status.Capacity[core.ResourceName(name)]
		have := s.Node.Status.Allocatable[core.ResourceName(name)]
		is := Shortage{Resource: name, Want: want.GPUs[name], Have: have.Value(), Capacity: capacity.Value(), Registered: known}
		// A plugin that has gone leaves its resource behind, with 0 of it.
		if capacity.IsZero() {
			is.Have, is.Capacity, is.Registered = s.Devices[name], s.Devices[name], len(s.Devices) > 0
		}
		if is.Have != is.Want {
			all = append(all, is)
		}
	}
	return all
}

// UnreadyError is the reason why a node is not ready.
type UnreadyError struct {
	Node, Why string
	Shortages []Shortage // GPUs, where the node itself is ready
}

func (e *UnreadyError) Error() string {
	if len(e.Shortages) == 0 {
		return fmt.Sprintf("node %s is not ready: %s", e.Node, e.Why)
	}
	var texts []string
	for _, s := range e.Shortages {
		texts = append(texts, s.String())
	}
	return fmt.Sprintf("node %s: %s. %s", e.Node, strings.Join(texts, "; "), strings.ReplaceAll(e.Shortages[0].Advice(), "NODE", e.Node))
}

// Unready returns what a node lacks to be ready; nil for nothing. have is nil
// where the cluster has no such node.
func Unready(want Spec, have *State) *UnreadyError {
	if have == nil {
		return &UnreadyError{Node: want.Name, Why: "its kubelet has not registered it"}
	}
	if !have.Ready() {
		e := &UnreadyError{Node: want.Name, Why: "its kubelet has said nothing yet"}
		for _, c := range have.Node.Status.Conditions {
			if c.Type == core.NodeReady && c.Message != "" {
				e.Why = c.Message
			}
		}
		return e
	}
	if short := have.Shortages(want); len(short) > 0 {
		return &UnreadyError{Node: want.Name, Shortages: short}
	}
	return nil
}

// AwaitRegistered waits until the cluster has a node of the name, ready or not.
func AwaitRegistered(ctx context.Context, c *kubernetes.Client, name string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		have, err := Observe(ctx, c, name)
		switch {
		case err == nil && have != nil:
			return nil
		case err == nil:
			err = Unready(Spec{Name: name}, nil)
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%w (waited %s)", err, patience)
		}
		if stop := host.Pause(ctx, pause); stop != nil {
			return fmt.Errorf("%w: %w", stop, err)
		}
	}
}

// Await waits until a node is ready and has the declared GPUs; after its
// patience it returns what is missing. A transient answer of the API server does
// not end it early.
func Await(ctx context.Context, c *kubernetes.Client, want Spec, patience time.Duration) (*State, error) {
	end := time.Now().Add(patience)
	told := ""
	for {
		have, err := Observe(ctx, c, want.Name)
		if err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			missing := Unready(want, have)
			if missing == nil {
				return have, nil
			}
			err = missing
		}
		if time.Now().After(end) {
			return have, fmt.Errorf("%w (waited %s)", err, patience)
		}
		if text := err.Error(); text != told {
			told = text
			host.Step(ctx, "%s", text)
		}
		if stop := host.Pause(ctx, pause); stop != nil {
			return have, fmt.Errorf("%w: %w", stop, err)
		}
	}
}

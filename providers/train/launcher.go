package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/launch/kubernetes"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/spec"
)

// trainingRun is one run, and who can reach it.
type trainingRun struct {
	launch.Launcher
	id string
}

func (r trainingRun) location() launch.Location { return r.Location(r.id) }

// launcher gives who starts and finds the runs of an experiment. This is the one
// place that knows where experiments can run.
func (s *settings) launcher(m *experimentModel) launch.Launcher {
	if m.Cluster.IsNull() {
		if place := m.RunsDir.ValueString(); place != "" { // the provider block may name another one by now
			return s.launcherIn(place)
		}
		return s.launcherIn(s.runs)
	}
	p, _, _ := m.placement(s.image) // what is wrong with it was said when it was planned
	folder := s.runs
	if logs := m.LogsDir.ValueString(); logs != "" {
		folder = filepath.Dir(filepath.Dir(logs))
	}
	given, id := m.Cluster, m.ClusterID.ValueString()
	return kubernetes.New(func(ctx context.Context) (*connected.Client, error) { return s.dial(ctx, given, id) }, p, folder)
}

// launcherOf gives who has the run of a stored object.
func (s *settings) launcherOf(v cty.Value) (launch.Launcher, error) {
	place := textAt(v, "runs_dir")
	if place == "" {
		return nil, launch.ErrNoRun
	}
	c, err := connectionAt(v)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return s.launcherIn(place), nil
	}
	dial := func(ctx context.Context) (*connected.Client, error) { return s.clusters.Get(ctx, *c) }
	folder := "" // one that is being made: whoever makes it collects what it leaves
	if logs := textAt(v, "logs_dir"); logs != "" {
		folder = filepath.Dir(filepath.Dir(logs))
	}
	return kubernetes.New(dial, launch.Placement{Namespace: place}, folder), nil
}

// benchmarks returns the launcher of a benchmark in a cluster, and the path of
// stoke-trainer in its pods.
func (s *settings) benchmarks(ctx context.Context, c *connect.Connection, o providers.RunBenchmark) (launch.Launcher, string, error) {
	image, err := s.imageFor(ctx, o)
	if err != nil {
		return nil, "", err
	}
	dial := func(ctx context.Context) (*connected.Client, error) { return s.clusters.Get(ctx, *c) }
	p := launch.Placement{Namespace: o.Namespace, Image: image, AgentImage: image, Program: true, Port: defaultPort}
	return kubernetes.New(dial, p, ""), kubernetes.AgentProgram, nil
}

// imageFor returns the image of a benchmark's pods: the one from which the pods of its
// experiment would have stoke-trainer.
func (s *settings) imageFor(ctx context.Context, o providers.RunBenchmark) (string, error) {
	own, given := textAt(o.Cluster.Value, "image"), s.image
	hasProgram := o.Cluster.Value.Type().HasAttribute("program") && !o.Cluster.Value.GetAttr("program").IsNull()
	if o.Image == "" && (own == "" || hasProgram) && given == "" && o.Cluster.Configured != nil {
		configured, err := configuredSettings(ctx, *o.Cluster)
		if err != nil {
			return "", err
		}
		given = configured.image
	}
	image, agent := podImages(own, given, hasProgram)
	image = cmp.Or(o.Image, agent, image)
	if image == "" {
		return "", &providers.RunError{
			Summary: "No image",
			Detail: "The object names no image, and the provider block has no trainer_image: " +
				"give -image=REFERENCE, an image with stoke-trainer as its entry point.",
		}
	}
	return image, nil
}

// connectionAt is the connection of a stored object; nil: it is of this machine.
func connectionAt(v cty.Value) (*connect.Connection, error) {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute("cluster") || v.GetAttr("cluster").IsNull() {
		return nil, nil
	}
	c, err := connect.FromValue(v.GetAttr("cluster"))
	if err != nil {
		return nil, err
	}
	if id := textAt(v, "cluster_id"); id != "" {
		c.ID = id
	}
	return &c, nil
}

// launcherIn gives who started the runs in a folder of this machine.
func (s *settings) launcherIn(place string) launch.Launcher {
	return local.New(place, func(of *spec.Spec) (string, error) {
		t, missing := s.trainerOf(of)
		if missing != nil {
			return "", errors.New(missing.Detail())
		}
		return string(t), nil
	})
}

// dial connects to a cluster, whose id was recorded with the run.
func (s *settings) dial(ctx context.Context, given types.Object, id string) (*connected.Client, error) {
	c, known, diags := connect.FromObject(ctx, given)
	switch {
	case diags.HasError():
		return nil, fmt.Errorf("%s: %s", diags.Errors()[0].Summary(), diags.Errors()[0].Detail())
	case !known || c == nil:
		return nil, fmt.Errorf("the connection to the cluster is not known yet")
	}
	if id != "" {
		c.ID = id
	}
	return s.clusters.Get(ctx, *c)
}

// run is the recorded one.
func (s *settings) run(m *experimentModel) trainingRun {
	return trainingRun{s.launcher(m), m.ID.ValueString()}
}

// locate finds out which run of this machine somebody wants to import.
func (s *settings) locate(given string) (trainingRun, error) {
	given, err := expandHome(given)
	if err != nil {
		return trainingRun{}, err
	}
	place, id, err := local.Locate(given, s.runs)
	return trainingRun{s.launcherIn(place), id}, err
}

// OnMachine implements providers.MachineRuns.
func (runs) OnMachine(folder string) ([]providers.MachineRun, error) {
	place, err := stateFolder(folder, "runs")
	if err != nil {
		return nil, err
	}
	if place, err = filepath.Abs(place); err != nil {
		return nil, err
	}
	ids, err := local.Place(place).List()
	if err != nil {
		return nil, err
	}
	all := make([]providers.MachineRun, 0, len(ids))
	for _, id := range ids {
		all = append(all, providers.MachineRun{ID: id, Object: providers.RunObject{Type: "train_experiment",
			Value: cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(id), "runs_dir": cty.StringVal(place)})}})
	}
	return all, nil
}

// demandsOf is what the pods of a run on a cluster ask of its nodes.
func demandsOf(s spec.Spec, p launch.Placement) (all []connect.Demand) {
	for _, pods := range kubernetes.PodsOf(s, p) {
		d := connect.Demand{Name: "the role " + pods.Role, Count: int64(pods.Count)}
		live.Ask(&d, &core.Pod{Spec: pods.Spec})
		all = append(all, d)
	}
	return all
}

// isHere reports whether a launcher's runs are processes of this machine.
func isHere(l launch.Launcher) bool {
	_, here := l.(*local.Launcher)
	return here
}

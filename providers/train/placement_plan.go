package train

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	at "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// placed begins the names of changes of a placement.
const placed = "placement."

// option is one argument that only clusters know.
type placementOption struct{ in, name string }

func (o placementOption) path() at.Path {
	if o.in == "" {
		return at.Root(o.name)
	}
	return at.Root(o.in).AtName(o.name)
}

// options lists what only clusters know, but for cluster itself.
func placementOptions() []placementOption {
	var all []placementOption
	for name := range placementAttributes() {
		if name != "cluster_id" {
			all = append(all, placementOption{"", name})
		}
	}
	for name := range workerPodAttributes() {
		all = append(all, placementOption{"worker", name})
	}
	for name := range podAttributes(nil) {
		all = append(all, placementOption{"parameter_server", name})
	}
	for name := range coordinatorAttributes() {
		all = append(all, placementOption{"coordinator", name})
	}
	all = append(all, placementOption{"checkpoint", "place"}, placementOption{"worker", "priority"})
	slices.SortFunc(all, func(a, b placementOption) int { return strings.Compare(a.in+"."+a.name, b.in+"."+b.name) })
	return all
}

// givenOption is what stands there; nil is nothing.
func (m *experimentModel) givenOption(o placementOption) attr.Value {
	if o.in != "" {
		block := m.object(o.in)
		if block.IsNull() || block.IsUnknown() {
			return nil
		}
		return present(block.Attributes()[o.name])
	}
	return present(map[string]attr.Value{
		"namespace": m.Namespace, "image": m.Image, "image_pull_policy": m.PullPolicy, "image_pull_secrets": m.PullSecrets, "port": m.Port,
		"environment": m.Environment, "dataset_path": m.DatasetPath, "tolerations": m.Tolerations, "volumes": m.Volumes,
	}[o.name])
}

func present(v attr.Value) attr.Value {
	if v == nil || v.IsNull() {
		return nil
	}
	return v
}

// checkPlacement validates the declared place of the pods.
func (m *experimentModel) checkPlacement(ctx context.Context) (diags diag.Diagnostics) {
	if m.Cluster.IsNull() {
		for _, o := range placementOptions() {
			v := m.givenOption(o)
			switch {
			case v == nil, o == placementOption{"worker", "priority"}:
			case m.hasProgram() && o == placementOption{"", "environment"}:
				diags.AddAttributeError(o.path(), "Only clusters know this", "Give a program its variables as environment in program {}.")
			default:
				diags.AddAttributeError(o.path(), "Only clusters know this", fmt.Sprintf("%s says what pods get. Give cluster, or leave it out.", o.name))
			}
		}
		return diags
	}
	c, known, wrong := connect.FromObject(ctx, m.Cluster)
	diags.Append(wrong...)
	if known && c != nil && !wrong.HasError() {
		diags.Append(c.Validate(at.Root("cluster"))...)
	}
	p, _, wrong := m.placement("")
	diags.Append(wrong...)
	if m.DatasetPath.IsNull() && (!m.hasProgram() || !m.Dataset.IsNull()) {
		diags.AddAttributeError(at.Root("dataset_path"), "Pods do not see this machine's folders",
			"Put the dataset into the image with train_image's files, or onto a volume, and say as dataset_path where pods find it.")
	} else if p.Dataset != "" && !path.IsAbs(p.Dataset) {
		diags.AddAttributeError(at.Root("dataset_path"), "Path is not absolute", fmt.Sprintf("Give a folder in the pods such as \"/data\"; it is %q.", p.Dataset))
	}
	if p.PullPolicy != "" && !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, p.PullPolicy) {
		diags.AddAttributeError(at.Root("image_pull_policy"), "Unknown value", fmt.Sprintf("image_pull_policy must be one of Always, IfNotPresent, Never; it is %q.", p.PullPolicy))
	}
	if m.hasProgram() && strings.Contains(p.Checkpoints, "://") {
		diags.AddAttributeError(at.Root("checkpoint").AtName("place"), "A program's checkpoints are in a folder",
			fmt.Sprintf("Give an absolute path on a volume that all of its pods mount; it is %q.", p.Checkpoints))
	} else if scheme, _, ok := strings.Cut(p.Checkpoints, "://"); p.Checkpoints != "" && !path.IsAbs(p.Checkpoints) && (!ok || scheme != "gs" && scheme != "s3") {
		diags.AddAttributeError(at.Root("checkpoint").AtName("place"), "Not a place for checkpoints",
			fmt.Sprintf("Give gs://BUCKET/PREFIX, s3://BUCKET/PREFIX or an absolute path on a volume; it is %q.", p.Checkpoints))
	}
	return append(diags, m.checkCheckpoints(p)...)
}

// place rejects a placement without an image or with checkpoints that would be
// lost, once the provider block is known.
func (m *experimentModel) place(s *settings) (diags diag.Diagnostics) {
	if m.Cluster.IsNull() || s.unknown {
		return nil
	}
	p, _, _ := m.placement("") // whose volumes may have been unknown when the configuration was checked
	diags.Append(m.checkCheckpoints(p)...)
	if m.Image.IsNull() && s.image == "" {
		diags.AddAttributeError(at.Root("image"), "The pods have no image",
			"No image of the trainer is published yet. Build one with train_image and give its reference as image, or name one as trainer_image in the provider block.")
	}
	return diags
}

// moves lists what changes of where pods are and what they get. A template of
// pods is immutable: it costs what a change of the image does.
func moves(plan, prior *experimentModel) (changes []spec.Change) {
	if plan.Cluster.IsNull() || prior.Cluster.IsNull() {
		return nil
	}
	for _, o := range placementOptions() {
		was, is := prior.givenOption(o), plan.givenOption(o)
		if o.name == "namespace" || was == nil && is == nil || was != nil && is != nil && was.Equal(is) {
			continue
		}
		name := o.name
		if o.in != "" {
			name = o.in + "." + name
		}
		changes = append(changes, spec.Change{Field: placed + name, Cost: spec.Resume, Old: was, New: is})
	}
	return changes
}

// otherPlace returns the arguments that place the run elsewhere: it cannot move
// there, and is replaced.
func (p *planning) otherPlace(ctx context.Context, prior *experimentModel) (paths []at.Path) {
	cluster, namespace := at.Root("cluster"), at.Root("namespace")
	switch was, is := prior.Cluster.IsNull(), p.plan.Cluster.IsNull(); {
	case was != is:
		note(ctx, p.resp, cluster, providers.NoteChange, "new run: it cannot move between this machine and a cluster")
		return []at.Path{cluster}
	case is:
		return nil
	}
	if !p.plan.Namespace.IsUnknown() && namespaceOf(prior) != namespaceOf(p.plan) {
		note(ctx, p.resp, namespace, providers.NoteChange, "new run: it cannot move to another namespace")
		return []at.Path{namespace}
	}
	if prior.Cluster.Equal(p.plan.Cluster) || p.plan.Cluster.IsUnknown() {
		return nil
	}
	_, err := p.settings.dial(ctx, p.plan.Cluster, prior.ClusterID.ValueString())
	if other := new(connected.OtherClusterError); errors.As(err, &other) {
		note(ctx, p.resp, cluster, providers.NoteChange, "new run: this is another cluster")
		return []at.Path{cluster}
	}
	return nil
}

func namespaceOf(m *experimentModel) string {
	if name := m.Namespace.ValueString(); name != "" {
		return name
	}
	return defaultNamespace
}

// perishes reports whether a change stops a run whose checkpoints would then be
// lost.
func (p *planning) perishes(prior *experimentModel, changes []spec.Change, left remains) bool {
	if prior.Cluster.IsNull() || spec.Costliest(changes) != spec.Resume || left.Phase.Final() || launch.Idle(left.Phase) {
		return false
	}
	was, _, _ := prior.placement(p.settings.image)
	return !was.Durable() || left.DiesWithCoordinator
}

// strays reports whether a change would point the run at a place without its
// checkpoints, so that it would start over.
func (p *planning) strays(prior *experimentModel) bool {
	if prior.Cluster.IsNull() || p.plan.Cluster.IsNull() {
		return false
	}
	was, _, _ := prior.placement(p.settings.image)
	is, known, _ := p.plan.placement(p.settings.image)
	return astray(was, is, known)
}

// astray reports whether checkpoints of a run placed as was cannot be reached
// by a run placed as is; known: all of is is known.
func astray(was, is launch.Placement, known bool) bool {
	switch {
	case !was.Durable():
		return false // nothing would be there
	case was.Checkpoints != is.Checkpoints:
		return true
	case was.Checkpoints == "":
		return !is.Durable()
	}
	return known && heldBy(was) != heldBy(is)
}

// heldBy is the volume that a folder of checkpoints is on.
func heldBy(p launch.Placement) (on launch.Volume) {
	for _, v := range p.Volumes {
		if path.IsAbs(p.Checkpoints) && isBelow(p.Checkpoints, v.Path) && len(path.Clean(v.Path)) >= len(on.Path) {
			on = v
			on.Path, on.ReadOnly = path.Clean(v.Path), false
		}
	}
	return on
}

// identifyCluster records by what the run's cluster is told from others.
func (s *settings) identifyCluster(ctx context.Context, m *experimentModel) {
	m.ClusterID = types.StringNull()
	if m.Cluster.IsNull() {
		return
	}
	m.ClusterID = types.StringValue("")
	if client, err := s.dial(ctx, m.Cluster, ""); err == nil {
		m.ClusterID = types.StringValue(client.ID)
	}
}

package train

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	at "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stokehq/stoke/providers/train/launch"
)

const (
	defaultNamespace = "default"
	defaultPort      = 7070
	defaultGPU       = "nvidia.com/gpu"
)

// reading takes a placement from a configuration, a plan or a state.
type reading struct {
	diags   diag.Diagnostics
	unknown bool // something that is needed to make pods is not known yet
}

func (r *reading) wrong(p at.Path, summary, format string, args ...any) {
	r.diags.AddAttributeError(p, summary, fmt.Sprintf(format, args...))
}

// podImages returns the image of an experiment's pods, and the image that they get
// stoke-trainer from; "": the same one. own is the experiment's image, which may have
// a program only, trainer the provider's trainer_image; "": not set.
func podImages(own, trainer string, hasProgram bool) (image, agent string) {
	if hasProgram && own != "" {
		return own, trainer
	}
	return cmp.Or(own, trainer), ""
}

// placement reads where and how the pods of an experiment are. known is false
// while something of it is not known yet.
func (m *experimentModel) placement(image string) (p launch.Placement, known bool, diags diag.Diagnostics) {
	r := new(reading)
	pods, agent := podImages(r.text(m.Image, ""), image, m.hasProgram())
	p = launch.Placement{
		AgentImage: agent, Program: m.hasProgram(),
		Namespace: r.text(m.Namespace, defaultNamespace), Image: pods, PullPolicy: r.text(m.PullPolicy, ""),
		Dataset: r.text(m.DatasetPath, ""), Port: r.number(at.Root("port"), m.Port, defaultPort, 1, 65533),
	}
	for _, v := range r.elements(m.PullSecrets) {
		p.PullSecrets = append(p.PullSecrets, r.text(v.(types.String), ""))
	}
	p.Environment = r.mapping(m.Environment)
	for i, v := range r.elements(m.Volumes) {
		p.Volumes = append(p.Volumes, r.volume(at.Root("volumes").AtListIndex(i), v.(types.Object)))
	}
	var tolerations []launch.Toleration
	for _, v := range r.elements(m.Tolerations) {
		f := fields{r, at.Root("tolerations"), v.(types.Object)}
		tolerations = append(tolerations, launch.Toleration{Key: f.text("key"), Value: f.text("value"), Effect: f.text("effect")})
	}
	master := fields{r, at.Root("coordinator"), m.Coordinator}
	p.Coordinator, p.Storage, p.StorageClass = master.pod(), master.quantity("storage"), master.text("storage_class")
	p.Server = fields{r, at.Root("parameter_server"), m.ParameterServer}.pod()
	w := fields{r, at.Root("worker"), m.Worker}
	p.Worker = w.pod()
	p.Worker.SharedMemory, p.HighPriority = w.quantity("shared_memory"), w.number("high_priority_replicas", 0)
	if p.Worker.GPUs = w.number("gpus", 0); p.Worker.GPUs > 0 {
		p.Worker.GPUResource = r.text(w.string("gpu_resource"), defaultGPU)
	}
	p.Checkpoints = fields{r, at.Root("checkpoint"), m.Checkpoint}.text("place")
	// A higher priority than the workers': the coordinator and the servers must
	// not be evicted before them.
	switch w.text("priority") {
	case launch.PriorityHigh:
		p.Worker.Priority, p.Coordinator.Priority, p.Server.Priority = launch.PriorityHigh, launch.PriorityHigh, launch.PriorityHigh
	case launch.PriorityLow:
		p.Worker.Priority, p.Coordinator.Priority, p.Server.Priority = launch.PriorityLow, launch.PriorityHigh, launch.PriorityHigh
	}
	if p.HighPriority > 0 {
		p.Coordinator.Priority, p.Server.Priority = launch.PriorityHigh, launch.PriorityHigh
	}
	for _, role := range []*launch.PodRole{&p.Coordinator, &p.Server, &p.Worker} {
		role.Tolerations = tolerations
	}
	return p, !r.unknown, r.diags
}

// volume reads one volume, which has one source.
func (r *reading) volume(where at.Path, o types.Object) launch.Volume {
	f := fields{r, where, o}
	v := launch.Volume{
		Path: f.text("mount_path"), SubPath: f.text("sub_path"), Claim: f.text("claim"), HostPath: f.text("host_path"),
		ConfigMap: f.text("config_map"), Secret: f.text("secret"), EmptyDir: f.quantity("empty_dir"),
	}
	if b, ok := o.Attributes()["read_only"].(types.Bool); ok {
		v.ReadOnly = b.ValueBool()
		r.unknown = r.unknown || b.IsUnknown()
	}
	sources, open := 0, false
	for _, name := range []string{"claim", "host_path", "nfs", "config_map", "secret", "empty_dir"} {
		if a := o.Attributes()[name]; a != nil && !a.IsNull() {
			sources, open = sources+1, open || a.IsUnknown()
		}
	}
	if nfs, ok := o.Attributes()["nfs"].(types.Object); ok && !nfs.IsNull() {
		n := fields{r, where.AtName("nfs"), nfs}
		v.NFSServer, v.NFSPath = n.text("server"), n.text("path")
	}
	switch {
	case sources != 1 && !open:
		r.wrong(where, "A volume has one source", "Give one of claim, host_path, nfs, config_map, secret and empty_dir; there are %d.", sources)
	case v.Path != "" && (!path.IsAbs(v.Path) || path.Clean(v.Path) == "/"):
		r.wrong(where.AtName("mount_path"), "Mount path is not absolute", "Give a folder in the pods such as \"/data\"; it is %q.", v.Path)
	case strings.HasPrefix(v.SubPath, "/") || slices.Contains(strings.Split(v.SubPath, "/"), ".."):
		r.wrong(where.AtName("sub_path"), "Path leads out of the volume", "sub_path is relative and has no \"..\"; it is %q.", v.SubPath)
	}
	return v
}

// fields reads the attributes of a block; those of one that was left out are
// null.
type fields struct {
	*reading
	at     at.Path
	object types.Object
}

func (f fields) value(name string) attr.Value {
	switch {
	case f.object.IsUnknown():
		f.unknown = true
		return nil
	case f.object.IsNull():
		return nil
	}
	return f.object.Attributes()[name]
}

func (f fields) string(name string) types.String {
	s, _ := f.value(name).(types.String)
	return s
}

func (f fields) text(name string) string { return f.reading.text(f.string(name), "") }

func (f fields) number(name string, least int) int {
	n, ok := f.value(name).(types.Number)
	if !ok {
		return 0
	}
	return f.reading.number(f.at.AtName(name), n, 0, least, 1<<30)
}

// quantity reads an amount in Kubernetes' notation.
func (f fields) quantity(name string) string {
	text := f.text(name)
	if text == "" {
		return ""
	}
	if q, err := resource.ParseQuantity(text); err != nil || q.Sign() <= 0 {
		f.wrong(f.at.AtName(name), "Not an amount", "%s is an amount above 0 such as \"2\", \"500m\" or \"4Gi\"; it is %q.", name, text)
		return ""
	}
	return text
}

// pod reads what pods of a role get.
func (f fields) pod() launch.PodRole {
	r := launch.PodRole{
		CPU: f.quantity("cpu"), Memory: f.quantity("memory"), EphemeralStorage: f.quantity("ephemeral_storage"),
		Bandwidth: f.number("bandwidth_mbps", 1), SpreadOver: f.text("spread_over"),
	}
	if m, ok := f.value("node_selector").(types.Map); ok {
		r.NodeSelector = f.mapping(m)
	}
	return r
}

func (r *reading) text(v types.String, otherwise string) string {
	switch {
	case v.IsUnknown():
		r.unknown = true
		return ""
	case v.ValueString() == "":
		return otherwise
	}
	return v.ValueString()
}

func (r *reading) number(where at.Path, v types.Number, otherwise, least, most int) int {
	switch {
	case v.IsUnknown():
		r.unknown = true
		return otherwise
	case v.IsNull():
		return otherwise
	}
	n, err := integer(v, int64(least), int64(most))
	if err != nil {
		r.wrong(where, "Value out of range", "%s.", err)
		return otherwise
	}
	return int(n)
}

func (r *reading) elements(v types.List) []attr.Value {
	r.unknown = r.unknown || v.IsUnknown()
	return v.Elements()
}

func (r *reading) mapping(v types.Map) map[string]string {
	r.unknown = r.unknown || v.IsUnknown()
	if len(v.Elements()) == 0 {
		return nil
	}
	all := make(map[string]string)
	for name, e := range v.Elements() {
		all[name] = r.text(e.(types.String), "")
	}
	return all
}

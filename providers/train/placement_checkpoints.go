package train

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	at "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/launch"
)

// checkCheckpoints rejects a place of checkpoints that would not outlive the
// pods: a folder that is not on a volume, or is on a volume that cannot keep
// them. Unknown volumes are not checked.
func (m *experimentModel) checkCheckpoints(p launch.Placement) (diags diag.Diagnostics) {
	if !path.IsAbs(p.Checkpoints) || m.Volumes.IsUnknown() {
		return nil
	}
	where := fmt.Sprintf("checkpoint.place is %q, ", p.Checkpoints)
	on, mounted := (*launch.Volume)(nil), []string(nil)
	for i, v := range p.Volumes {
		if open(m.Volumes.Elements()[i].(types.Object)) {
			return nil
		}
		mounted = append(mounted, v.Path)
		if isBelow(p.Checkpoints, v.Path) && (on == nil || len(path.Clean(v.Path)) >= len(path.Clean(on.Path))) {
			on = &p.Volumes[i]
		}
	}
	switch {
	case on == nil && mounted == nil:
		where += "and pods mount no volume: the folder would be in each pod's own image."
	case on == nil:
		where += "which is on no volume: pods mount " + strings.Join(mounted, ", ") + "."
	case on.EmptyDir != "":
		where += fmt.Sprintf("which is on the empty_dir at %s: each pod has its own, deleted with the pod.", on.Path)
	case on.ReadOnly, on.ConfigMap != "", on.Secret != "":
		where += fmt.Sprintf("which is on the volume at %s: pods can only read that.", on.Path)
	default:
		return nil
	}
	advice := " Give a folder below the mount_path of a claim that the coordinator and the servers share, gs://BUCKET/PREFIX or s3://BUCKET/PREFIX; " +
		"or leave place out and give coordinator.storage: then they are stored next to the coordinator's log."
	if p.Program {
		advice = " Give a folder below the mount_path of a claim that all workers share."
	}
	diags.AddAttributeError(at.Root("checkpoint").AtName("place"), "Checkpoints would be lost", where+advice)
	return diags
}

// isBelow tells whether a path in a pod is a folder or in it.
func isBelow(name, folder string) bool {
	name, folder = path.Clean(name), path.Clean(folder)
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// open reports whether the type or the place of a volume is unknown. The name
// of its claim may be unknown.
func open(volume types.Object) bool {
	unknown := func(v attr.Value) bool { return v != nil && v.IsUnknown() }
	all := volume.Attributes()
	return volume.IsUnknown() || unknown(all["mount_path"]) || unknown(all["read_only"]) || unknown(all["empty_dir"]) ||
		unknown(all["config_map"]) || unknown(all["secret"])
}

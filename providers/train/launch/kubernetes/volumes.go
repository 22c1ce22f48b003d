package kubernetes

import (
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stokehq/stoke/providers/train/launch"
)

// volumes are those of a role's pods, and where they are mounted.
func (l *layout) volumes(role string) (volumes []core.Volume, mounts []core.VolumeMount) {
	add := func(name, path string, readOnly bool, source core.VolumeSource) {
		volumes = append(volumes, core.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, core.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	add("spec", specFolder, true, core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{
		LocalObjectReference: core.LocalObjectReference{Name: l.id}, Items: []core.KeyToPath{{Key: keySpec, Path: keySpec}},
	}})
	identity := l.identity(role)
	add("secret", secretFolder, true, core.VolumeSource{Secret: &core.SecretVolumeSource{
		SecretName: l.id, DefaultMode: new(int32(0o440)), Items: []core.KeyToPath{{Key: keyToken, Path: keyToken}, {Key: identity, Path: identity}},
	}})
	add("tmp", "/tmp", false, core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}})
	if role == coordinator {
		state := core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}
		if l.Storage != "" {
			state = core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: l.id}}
		}
		add("state", stateFolder, false, state)
		if l.spec.Program.Code != "" {
			add("code", codeFolder, true, l.codeSource())
		}
	}
	if l.isAgent(role) {
		add("agent", agentFolder, false, core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}})
	}
	if size := l.sharedMemory(role); size != "" {
		limit := resource.MustParse(size)
		add("shared-memory", "/dev/shm", false, core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{Medium: core.StorageMediumMemory, SizeLimit: &limit}})
	}
	for i, v := range l.Volumes {
		add(fmt.Sprintf("volume-%d", i), v.Path, v.ReadOnly, source(v))
		mounts[len(mounts)-1].SubPath = v.SubPath
	}
	return volumes, mounts
}

// source is where a volume of the user comes from.
func source(v launch.Volume) core.VolumeSource {
	switch {
	case v.Claim != "":
		return core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: v.Claim, ReadOnly: v.ReadOnly}}
	case v.HostPath != "":
		return core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: v.HostPath, Type: new(core.HostPathDirectory)}}
	case v.NFSServer != "":
		return core.VolumeSource{NFS: &core.NFSVolumeSource{Server: v.NFSServer, Path: v.NFSPath, ReadOnly: v.ReadOnly}}
	case v.ConfigMap != "":
		return core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: v.ConfigMap}}}
	case v.Secret != "":
		return core.VolumeSource{Secret: &core.SecretVolumeSource{SecretName: v.Secret}}
	}
	limit := resource.MustParse(v.EmptyDir)
	return core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{SizeLimit: &limit}}
}

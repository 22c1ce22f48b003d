package facts

import (
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers"
)

// room is what a folder needs: less than least bytes is an error, less than
// good a warning.
type room struct {
	path        string
	least, good int64
	why         string
}

func rooms(role string, packages bool) []room {
	if role == "" && !packages { // a machine that is full can still be told how to become less so
		return []room{{"/", 16 * mib, 128 * mib, "files are written there"}}
	}
	list := []room{
		{"/", 512 * mib, gib, "packages are unpacked there"},
		{"/tmp", 16 * mib, 128 * mib, "packages' scripts work there"},
		{"/var/cache/apt/archives", 512 * mib, gib, "packages are downloaded to it"},
		{"/boot", 64 * mib, 256 * mib, "a kernel with its initial RAM disk is 100 to 200 MiB"},
	}
	if role == "" {
		return list
	}
	list = append(list,
		room{"/var/lib/kubelet", 512 * mib, 2 * gib, "pods' volumes and logs are kept there"},
		// The control plane's images are 1 GiB, one for training with CUDA 10 to 20 GiB.
		room{"/var/lib/containerd", 2 * gib, 20 * gib, "images and containers are kept there"})
	if role == ControlPlane {
		// etcd's default quota is 2 GiB, and it keeps snapshots and a write-ahead log beside it.
		list = append(list, room{"/var/lib/etcd", gib, 4 * gib, "etcd keeps the cluster there"})
	}
	return list
}

// evictBelow is the share of a filesystem, in percent, below which the kubelet
// evicts pods unless it is told otherwise: evictionHard's nodefs.available and
// imagefs.available.
func evictBelow(path string) int64 {
	switch path {
	case "/var/lib/kubelet":
		return 10
	case "/var/lib/containerd":
		return 15
	}
	return 0
}

// fewInodes is what a package manager and a handful of images need.
const fewInodes = 20000

// space says which filesystem is short of space, once for each, with everything
// that needs it there.
func (p *problems) space(f Facts, want Needs) {
	var mounts []string
	short := map[string][]string{}
	bad := map[string]bool{}
	note := func(s Space, severe bool, text string) {
		if _, known := short[s.Mount]; !known {
			mounts = append(mounts, s.Mount)
		}
		short[s.Mount] = append(short[s.Mount], text)
		bad[s.Mount] = bad[s.Mount] || severe
	}
	for _, r := range rooms(want.Role, want.Packages) {
		s, ok := f.SpaceAt(r.path)
		if !ok {
			continue
		}
		percent := evictBelow(r.path)
		switch {
		case s.Free < r.good:
			note(s, s.Free < r.least, fmt.Sprintf("%s: %s, better %s, because %s", r.path, size(r.least), size(r.good), r.why))
		case want.Role != "" && percent > 0 && s.Size > 0 && s.Free/percent < s.Size/100:
			note(s, false, fmt.Sprintf("%s: %d %% of it, or the kubelet evicts pods", r.path, percent))
		}
		if s.FreeInodes > 0 && s.FreeInodes < fewInodes {
			note(s, false, fmt.Sprintf("%s: %d inodes are left, too few for packages and images", r.path, s.FreeInodes))
		}
	}
	for _, mount := range mounts {
		severity, summary := providers.Warning, "Little space on "+mount
		if bad[mount] {
			severity, summary = providers.Error, "Too little space on "+mount
		}
		free := int64(0)
		for _, s := range f.Space {
			if s.Mount == mount {
				free = s.Free
			}
		}
		p.add(severity, "", summary, "%s is free. Needed on it:\n  %s", size(free), strings.Join(short[mount], "\n  "))
	}
}

package containerd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Facts are what a machine showed of its container runtime.
type Facts struct {
	Version string // such as 1.6.20; "" when it is not installed
	Active  bool
	Enabled bool
	// Stale reports that the service runs with an older configuration or unit than
	// the present files.
	Stale  bool
	Along  []string          // units that systemd restarts with it, and that run
	Docker bool              // it runs, and uses this containerd
	Config string            // config.toml
	Files  map[string]string // the declared registries' hosts.toml, and the proxy's drop-in, by path
	Images map[string]ImageFacts
	// Seen reports whether the images were read, which needs a running containerd.
	Seen bool
}

// ImageFacts is an image as containerd has it.
type ImageFacts struct {
	Digest  string // such as sha256:…; "" when there is none of that reference
	Archive string // the archive that this very content was imported from, if stoke did it
	Pinned  bool
}

// restartMark is there from before a configuration is replaced until containerd
// has been restarted. A boot removes it, and is a restart, too.
const restartMark = "/run/stoke-containerd-restart"

// archiveLabel says which archive an image came from and which digest it had
// then: ARCHIVE@DIGEST.
const archiveLabel = "dev.stoke.archive"

const pinLabel = "io.cri-containerd.pinned"

// look prints one line for each fact, files in base64. Its arguments are the
// files, then, if any image is declared, the word images.
const look = `# observe containerd
export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin"
b64() { head -c 1048576 | base64 -w0; }
show() { systemctl show "$@" --value containerd.service 2>/dev/null; }
reload() { # systemd 257 says it of every unit once one was enabled without a reload: what counts are this one's files
	[ "$(show -p NeedDaemonReload)" = yes ] || return 0
	t=$(show --timestamp=unix -p ActiveEnterTimestamp); t=${t#@}
	for f in $(show -p FragmentPath -p DropInPaths); do
		[ -e "$f" ] || { echo yes; return; }
	done
	for f in $(show -p FragmentPath -p DropInPaths) /etc/systemd/system/containerd.service /etc/systemd/system/containerd.service.d/*.conf /run/systemd/system/containerd.service.d/*.conf; do
		[ ! -e "$f" ] || [ "$(stat -c %Z -- "$f")" -le "${t:-0}" ] || { echo yes; return; }
	done
}
printf 'version\t%s\n' "$(containerd --version 2>/dev/null | head -n 1)"
printf 'active\t%s\n' "$(systemctl is-active containerd.service 2>/dev/null)"
printf 'enabled\t%s\n' "$(systemctl is-enabled containerd.service 2>/dev/null)"
printf 'reload\t%s\n' "$(reload)"
for u in $(show -p RequiredBy -p BoundBy -p ConsistsOf); do
	if systemctl is-active --quiet -- "$u"; then printf 'along\t%s\n' "$u"; fi
done
if systemctl is-active --quiet docker.service; then echo 'docker	active'; fi
s=; [ -e /run/stoke-containerd-restart ] && s=due
printf 'restart\t%s\n' "$s"
while [ $# -gt 0 ]; do
	if [ "$1" = images ]; then
		i=; systemctl is-active --quiet containerd.service && i=$(timeout 30 ctr -n k8s.io images ls 2>/dev/null)
		printf 'images\t%s\n' "$(printf %s "$i" | base64 -w0)"
	else
		printf 'file\t%s\t' "$1"; [ -f "$1" ] && b64 <"$1"; echo
	fi
	shift
done
echo end`

func (s Spec) files() map[string]string {
	f := map[string]string{}
	for registry, m := range s.Mirrors {
		f[hostsFile(registry)] = m.Text(registry)
	}
	if s.Proxy != nil {
		f[proxyFile] = s.Proxy.text()
	}
	return f
}

func (s Spec) empty() bool {
	return !s.Config && s.Proxy == nil && len(s.Mirrors)+len(s.Images) == 0
}

// Observe looks at everything that want declares, in one round trip.
func Observe(ctx context.Context, m host.Machine, want Spec) (Facts, error) {
	if want.empty() {
		return Facts{}, nil
	}
	args := append([]string{ConfigFile}, slices.Sorted(maps.Keys(want.files()))...)
	if len(want.Images) > 0 {
		args = append(args, "images")
	}
	f, lines := reader(args)
	err := host.Look(ctx, m, "containerd", look, lines, args...)
	return *f, err
}

var versionLine = pattern.New(`^containerd \S+ v?([0-9]+\.[0-9]+[^\s~]*)`)

func reader(asked []string) (*Facts, host.Lines) {
	f := &Facts{Files: map[string]string{}, Images: map[string]ImageFacts{}}
	lines := host.Lines{
		"version": host.Fields(1, func(l []string) error {
			if m := versionLine.FindStringSubmatch(l[0]); m != nil {
				f.Version = m[1]
			} else if l[0] != "" {
				return fmt.Errorf("containerd reports the version %.80q", l[0])
			}
			return nil
		}).ExactlyOnce(),
		"active":  host.Fields(1, host.FirstFieldIs(&f.Active, "active")).ExactlyOnce(),
		"enabled": host.Fields(1, host.FirstFieldIs(&f.Enabled, "enabled")).ExactlyOnce(),
		"along":   host.Fields(1, host.Append(&f.Along)),
		"docker":  host.Fields(1, host.FirstFieldIs(&f.Docker)),
		"reload":  host.Fields(1, host.FirstFieldIs(&f.Stale, "yes")).ExactlyOnce(),
		"restart": host.Fields(1, host.FirstFieldIs(&f.Stale, "due")).ExactlyOnce(),
		"file": host.Data(2, func(l []string) error {
			if !slices.Contains(asked, l[0]) {
				return fmt.Errorf("file %.80q was not asked for", l[0])
			}
			if l[0] == ConfigFile {
				f.Config = l[1]
			} else {
				f.Files[l[0]] = l[1]
			}
			return nil
		}),
	}
	if slices.Contains(asked, "images") {
		lines["images"] = host.Data(1, func(l []string) error {
			f.Seen = l[0] != ""
			return f.images(l[0])
		}).ExactlyOnce()
	}
	return f, lines
}

// images reads what ctr images ls printed: REF TYPE DIGEST SIZE PLATFORMS
// LABELS, where the size has a blank in it.
func (f *Facts) images(text string) error {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || i == 0 && fields[0] == "REF" {
			continue
		}
		if len(fields) < 4 || !strings.Contains(fields[2], ":") {
			return fmt.Errorf("images: %.200q is none", line)
		}
		img := ImageFacts{Digest: fields[2]}
		for label := range strings.SplitSeq(fields[len(fields)-1], ",") {
			switch k, v, _ := strings.Cut(label, "="); k {
			case pinLabel:
				img.Pinned = v == "pinned"
			case archiveLabel:
				if archive, of, ok := strings.Cut(v, "@"); ok && of == img.Digest {
					img.Archive = archive
				}
			}
		}
		f.Images[fields[0]] = img
	}
	return nil
}

package kubeadm

import (
	"context"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// keepLogs keeps the last lines of the kubelet, of containerd and of the static pods
// in the file $1, without what looks like a token, a password or a key.
const keepLogs = `# keep the last that the cluster's programs said
umask 077
{
	for unit in kubelet containerd; do
		echo "== $unit"
		journalctl --no-pager --quiet --lines=100 --unit="$unit.service" 2>/dev/null
	done
	for f in /var/log/pods/kube-system_*/*/*.log; do
		[ -f "$f" ] || continue
		case $f in *_kube-apiserver-*|*_etcd-*|*_kube-controller-manager-*|*_kube-scheduler-*) ;; *) continue ;; esac
		echo "== ${f#/var/log/pods/}"
		tail -n 100 "$f"
	done
} | sed -E '
	/-----BEGIN [A-Z ]*PRIVATE KEY-----/,/-----END [A-Z ]*PRIVATE KEY-----/c (private key)
	s/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/(token)/g
	s/eyJ[A-Za-z0-9._-]{20,}/(token)/g
	s/\b(Basic|Bearer) +[^ "]+/\1 (left out)/gI
	s/((token|password|secret|client-key-data|private[_-]?key)"?[=:] *"?)[^ ",]+/\1(left out)/gI' >"$1"`

// KeepLogs writes what the kubelet, containerd and the static pods said last to a
// file on the machine that root alone reads, without tokens and keys.
func KeepLogs(ctx context.Context, m host.Machine, file string) error {
	_, err := host.Script(ctx, m, keepLogs, file)
	return err
}

// maxSaid is how many lines of such a file an error has.
const maxSaid = 12

const lastErrors = `# the last errors that were kept
grep -E '^[EF][0-9]{4} |[[:space:]][EF][0-9]{4} |level=(error|fatal)|"level":"(error|fatal)"' "$1" | tail -n "$2" | cut -c 1-400`

// LastErrors are those in a file that KeepLogs has written; "" where they
// cannot be had.
func LastErrors(ctx context.Context, m host.Machine, file string) string {
	out, _, err := host.LookStatus(ctx, m, "sh", "-c", lastErrors, "sh", file, strconv.Itoa(maxSaid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(redacted(string(out)))
}

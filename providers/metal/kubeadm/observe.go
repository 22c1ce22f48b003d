package kubeadm

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Role is what a machine is in a cluster.
type Role string

// A machine that has begun to be one of the latter is one: Facts.Whole tells.
const (
	NoRole       Role = ""
	ControlPlane Role = "control plane"
	Worker       Role = "worker"
)

// Facts are what a machine showed of Kubernetes. There is nothing secret in them.
type Facts struct {
	Role Role
	// Whole says that kubeadm came to its end as far as files tell: the kubelet
	// has an identity of the cluster, and a control plane has admin.conf.
	Whole bool
	// Running says that kubeadm works there right now.
	Running bool

	Kubeadm, Kubelet string // versions of the programs, such as v1.36.3; "" where there is none
	KubeletActive    bool
	KubeletEnabled   bool
	RestartDue       bool           // it runs with other arguments, or another configuration, than there are by now
	KubeletConfig    map[string]any // /var/lib/kubelet/config.yaml
	KubeletArgs      string         // as kubeadm wrote them: kubeadm-flags.env

	NodeName string // as the kubelet's certificate has it
	Server   string // where the kubelet reaches the API server: https://HOST:PORT
	CAHash   string // of the cluster's authority

	// Of a control plane:
	Version    string              // of the API server's image, such as v1.36.3
	APIServer  map[string][]string // its arguments, by name without dashes
	Admin      bool                // there is admin.conf
	SuperAdmin bool                // there is super-admin.conf
	Etcd       bool                // there is data of etcd
	// Certificates are those in files, by path; those in kubeconfigs too.
	Certificates map[string]Certificate
	// Left are paths that a cluster has left on a machine without a role.
	Left []string
}

// Certificate is what a certificate says that expires.
type Certificate struct {
	Expires time.Time
	Names   []string // DNS names and addresses
}

// observe prints one line for each fact, and of files the parts that are no keys.
const observe = `# observe Kubernetes
export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin"
b64() { head -c 1048576 | base64 -w0; }
file() { [ ! -f "$2" ] || printf '%s\t%s\t%s\n' "$1" "$2" "$(b64 <"$2")"; }
certificates() { sed -n '/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p' "$1"; }
printf 'kubeadm\t%s\n' "$(kubeadm version -o short 2>/dev/null | head -n 1)"
printf 'kubelet\t%s\n' "$(kubelet --version 2>/dev/null | head -n 1)"
printf 'active\t%s\n' "$(systemctl is-active kubelet.service 2>/dev/null)"
printf 'enabled\t%s\n' "$(systemctl is-enabled kubelet.service 2>/dev/null)"
[ ! -e /run/stoke-kubelet-restart ] || printf 'restart\tdue\n'
if [ -e ` + lockFile + ` ] && ! flock -n ` + lockFile + ` true; then printf 'running\tyes\n'; fi
for f in /etc/kubernetes/*.conf /etc/kubernetes/manifests/*.yaml /etc/kubernetes/pki/ca.crt /var/lib/kubelet/config.yaml /var/lib/kubelet/pki/kubelet-client-current.pem /var/lib/etcd/member; do
	[ ! -e "$f" ] || printf 'there\t%s\n' "$f"
done
for f in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt /var/lib/kubelet/pki/kubelet-client-current.pem; do
	[ ! -f "$f" ] || printf 'certificate\t%s\t%s\n' "$f" "$(certificates "$f" | b64)"
done
for f in /etc/kubernetes/*.conf; do
	[ -f "$f" ] || continue
	c=$(sed -n 's/^ *client-certificate-data: *//p' "$f" | head -n 1)
	[ -z "$c" ] || printf 'certificate\t%s\t%s\n' "$f" "$c"
done
# A patch may have put the data elsewhere: the pod says where.
etcd=$(awk '$1 == "path:" { path = $2 } $NF == "etcd-data" { at = path } END { print at }' ` + etcdFile + ` 2>/dev/null)
[ ! -e "${etcd:-/var/lib/etcd}/member" ] || printf 'etcd\tyes\n'
[ ! -f /etc/kubernetes/kubelet.conf ] || printf 'server\t%s\n' "$(sed -n 's/^ *server: *//p' /etc/kubernetes/kubelet.conf | head -n 1)"
file file /etc/kubernetes/manifests/kube-apiserver.yaml
file file /var/lib/kubelet/config.yaml
file file /var/lib/kubelet/kubeadm-flags.env
echo end`

const (
	etcdFile        = "/etc/kubernetes/manifests/etcd.yaml"
	apiServerFile   = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	kubeletFile     = "/var/lib/kubelet/config.yaml"
	flagsFile       = "/var/lib/kubelet/kubeadm-flags.env"
	kubeletIdentity = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	authorityFile   = "/etc/kubernetes/pki/ca.crt"
	kubeletConf     = "/etc/kubernetes/kubelet.conf"
	adminConf       = "/etc/kubernetes/admin.conf"
)

// Observe looks at a machine, with one command, and changes nothing.
func Observe(ctx context.Context, m host.Machine) (Facts, error) {
	f := Facts{Certificates: map[string]Certificate{}}
	there := map[string]bool{}
	lines := host.Lines{
		"kubeadm": host.Fields(1, host.Text(&f.Kubeadm)).ExactlyOnce(),
		"restart": host.Fields(1, host.FirstFieldIs(&f.RestartDue, "due")),
		"kubelet": host.Fields(1, func(v []string) error { f.Kubelet = strings.TrimPrefix(v[0], "Kubernetes "); return nil }).ExactlyOnce(),
		"active":  host.Fields(1, host.FirstFieldIs(&f.KubeletActive, "active")).ExactlyOnce(),
		"enabled": host.Fields(1, host.FirstFieldIs(&f.KubeletEnabled, "enabled")).ExactlyOnce(),
		"running": host.Fields(1, host.FirstFieldIs(&f.Running)),
		"there":   host.Fields(1, func(v []string) error { there[v[0]] = true; f.Left = append(f.Left, v[0]); return nil }),
		"etcd":    host.Fields(1, host.FirstFieldIs(&f.Etcd, "yes")),
		"server":  host.Fields(1, host.Text(&f.Server)),
		"certificate": host.Data(2, func(v []string) error {
			return f.certificate(v[0], []byte(v[1]))
		}),
		"file": host.Data(2, func(v []string) error { return f.file(v[0], []byte(v[1])) }),
	}
	if err := host.Look(ctx, m, "Kubernetes", observe, lines); err != nil {
		return Facts{}, err
	}
	f.Admin, f.SuperAdmin = there[adminConf], there["/etc/kubernetes/super-admin.conf"]
	switch {
	case there[apiServerFile], f.Admin:
		f.Role, f.Whole = ControlPlane, there[apiServerFile] && f.Admin && there[kubeletConf] && f.NodeName != ""
	case there[kubeletConf], there["/etc/kubernetes/bootstrap-kubelet.conf"]:
		f.Role, f.Whole = Worker, there[kubeletConf] && f.NodeName != ""
	}
	if f.Role != NoRole {
		f.Left = nil
	}
	return f, nil
}

func (f *Facts) certificate(name string, content []byte) error {
	if len(content) == 0 { // it is being written
		return nil
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return fmt.Errorf("%s has no certificate", name)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	seen := Certificate{Expires: c.NotAfter, Names: c.DNSNames}
	for _, ip := range c.IPAddresses {
		seen.Names = append(seen.Names, ip.String())
	}
	f.Certificates[name] = seen
	switch name {
	case authorityFile:
		f.CAHash = CAHash(c)
	case kubeletIdentity:
		f.NodeName = strings.TrimPrefix(c.Subject.CommonName, "system:node:")
	}
	return nil
}

// CAHash is how kubeadm names an authority: sha256: and the hash of its public
// key (RFC 7469, SubjectPublicKeyInfo).
func CAHash(authority *x509.Certificate) string {
	sum := sha256.Sum256(authority.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (f *Facts) file(name string, content []byte) (err error) {
	switch name {
	case apiServerFile:
		f.Version, f.APIServer, err = readAPIServer(content)
	case kubeletFile:
		err = yaml.Unmarshal(content, &f.KubeletConfig)
	case flagsFile:
		text := strings.TrimSpace(string(content))
		text = strings.TrimPrefix(text, "KUBELET_KUBEADM_ARGS=")
		f.KubeletArgs = strings.Trim(text, `"`)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readAPIServer reads the static pod of the API server.
func readAPIServer(content []byte) (version string, args map[string][]string, err error) {
	var pod struct {
		Spec struct {
			Containers []struct {
				Image   string   `json:"image"`
				Command []string `json:"command"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &pod); err != nil {
		return "", nil, err
	}
	if len(pod.Spec.Containers) != 1 {
		return "", nil, errors.New("it has not one container")
	}
	container := pod.Spec.Containers[0]
	if _, tag, found := strings.Cut(path.Base(container.Image), ":"); found {
		version = tag
	}
	args = map[string][]string{}
	for _, arg := range container.Command {
		if name, value, found := strings.Cut(arg, "="); found && strings.HasPrefix(name, "--") {
			name = strings.TrimPrefix(name, "--")
			args[name] = append(args[name], value)
		}
	}
	return version, args, nil
}

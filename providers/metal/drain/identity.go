package drain

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

const kubeletConf = "/etc/kubernetes/kubelet.conf"

const (
	maxConf     = 1 << 20 // bytes of kubelet.conf and of each file that it names
	maxNodeName = 253
)

// identity is what a node is in its cluster. The key is in memory only.
type identity struct {
	name     string // of the node
	endpoint *url.URL
	server   string // name in the API server's certificate; "" for the endpoint's
	roots    *x509.CertPool
	cluster  string // a digest of the cluster's authority: the same for all its nodes
	cert     tls.Certificate
	token    string // in place of a certificate
	file     string // of a kubeconfig for another user than a node
}

func (id *identity) describe() string {
	if id.file != "" {
		return "the user of " + id.file
	}
	return "node " + id.name
}

var nodeName = pattern.New(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func readIdentity(ctx context.Context, m host.Machine) (*identity, error) {
	conf, exists, err := host.ReadFile(ctx, m, kubeletConf)
	if err != nil || !exists {
		return nil, hide(err)
	}
	refuse := func(err error) (*identity, error) {
		return nil, fmt.Errorf("%s: %s: %w; if the machine is no longer a node, remove the file", m.Name(), kubeletConf, err)
	}
	cluster, user, err := parseConf(conf)
	if err != nil {
		return refuse(err)
	}
	files, err := readFiles(ctx, m, cluster.CertificateAuthority, user.ClientCertificate, user.ClientKey)
	if err != nil {
		return refuse(err)
	}
	for i, inline := range [][]byte{cluster.CertificateAuthorityData, user.ClientCertificateData, user.ClientKeyData} {
		if len(inline) > 0 { // as in client-go, it takes precedence over the file
			files[i] = inline
		}
	}
	id, err := newIdentity(cluster, files[0], files[1], files[2])
	if err != nil {
		return refuse(err)
	}
	return id, nil
}

// parseConf finds the cluster and the user in a kubelet's kubeconfig. The paths
// in them are absolute.
func parseConf(conf []byte) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if len(conf) > maxConf {
		return nil, nil, fmt.Errorf("it has more than %d bytes", maxConf)
	}
	config, err := clientcmd.Load(conf)
	if err != nil {
		return nil, nil, errors.New("it is no kubeconfig") // the parser's error may quote what is secret
	}
	cluster, user, err := current(config)
	if err != nil {
		return nil, nil, err
	}
	if len(user.ClientCertificateData) == 0 && user.ClientCertificate == "" {
		return nil, nil, errors.New("it logs in by something else than a client certificate")
	}
	for _, file := range []*string{&cluster.CertificateAuthority, &user.ClientCertificate, &user.ClientKey} {
		if *file != "" && !path.IsAbs(*file) {
			*file = path.Join(path.Dir(kubeletConf), *file)
		}
	}
	return cluster, user, nil
}

// current are the cluster and the user of a kubeconfig's current context.
func current(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, nil, fmt.Errorf("it has no context %q, which is its current one", config.CurrentContext)
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	switch {
	case cluster == nil || user == nil:
		return nil, nil, fmt.Errorf("its current context %q names a cluster or a user that is not there", config.CurrentContext)
	case cluster.InsecureSkipTLSVerify:
		return nil, nil, errors.New("it does not check who the API server is (insecure-skip-tls-verify)")
	}
	return cluster, user, nil
}

// filesScript prints files, each after its length.
const filesScript = `# read files of the kubelet
set -e
for f; do
  if [ -f "$f" ] && [ -r "$f" ]; then n=$(wc -c <"$f"); printf '%d\n' "$n"; head -c "$n" -- "$f"; else echo missing; fi
done`

// readFiles reads files with one command; a name that is "" has no content.
func readFiles(ctx context.Context, m host.Machine, names ...string) ([][]byte, error) {
	var ask []string
	for _, name := range names {
		if name != "" {
			ask = append(ask, name)
		}
	}
	contents := make([][]byte, len(names))
	if len(ask) == 0 {
		return contents, nil
	}
	out, err := host.Script(ctx, m, filesScript, ask...)
	if err != nil {
		return nil, hide(err)
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		if contents[i], out, err = nextFile(name, out); err != nil {
			return nil, err
		}
	}
	if len(out) > 0 {
		return nil, errors.New("read the kubelet's files: the machine's answer is too long")
	}
	return contents, nil
}

func nextFile(name string, out []byte) (content, rest []byte, err error) {
	line, rest, _ := bytes.Cut(out, []byte("\n"))
	if string(line) == "missing" {
		return nil, nil, fmt.Errorf("it names %s, which is not there", name)
	}
	n, err := strconv.Atoi(string(line))
	if err != nil || n < 0 || n > maxConf || n > len(rest) {
		return nil, nil, fmt.Errorf("read %s: the machine sent only a part, or more than %d bytes", name, maxConf)
	}
	return rest[:n], rest[n:], nil
}

// hide takes out of an error what a command said, which may be a key.
func hide(err error) error {
	var failed *ssh.CommandError
	if errors.As(err, &failed) {
		return fmt.Errorf("read the kubelet's identity on %s: exit status %d", failed.Host, failed.Status)
	}
	return err
}

func newIdentity(cluster *clientcmdapi.Cluster, ca, cert, key []byte) (*identity, error) {
	id, err := newCluster(cluster, ca)
	if err != nil {
		return nil, err
	}
	if id.cert, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, errors.New("its client certificate and key do not belong together")
	}
	subject := id.cert.Leaf.Subject
	name, ok := strings.CutPrefix(subject.CommonName, "system:node:")
	if !ok || !slices.Contains(subject.Organization, "system:nodes") || len(name) > maxNodeName || !nodeName.MatchString(name) {
		return nil, fmt.Errorf("its client certificate is for %q, which is not a node", subject.CommonName)
	}
	id.name = name
	return id, nil
}

// newCluster returns an identity without credentials.
func newCluster(cluster *clientcmdapi.Cluster, ca []byte) (*identity, error) {
	id := &identity{server: cluster.TLSServerName, roots: x509.NewCertPool()}
	var err error
	if id.endpoint, err = url.Parse(cluster.Server); err != nil || id.endpoint.Scheme != "https" || id.endpoint.Host == "" {
		return nil, errors.New("its server is not an https:// address")
	}
	if !id.roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("it has no certificate authority of the cluster")
	}
	id.cluster = kubernetes.AuthorityDigest(ca)
	return id, nil
}

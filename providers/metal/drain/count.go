package drain

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// CountBy has the nodes of a cluster counted by the user of a kubeconfig on this
// computer, who may list them, as a node itself may not since 1.32. This user is
// only used for that. The API server is dialled from the machine that is worked
// on, as for everything else; the kubeconfig counts for the cluster whose
// certificate authority it has.
func (r *Roll) CountBy(file string) error {
	id, err := readLister(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listers == nil {
		r.listers = map[string]*identity{}
	}
	r.listers[id.cluster] = id
	return nil
}

func readLister(file string) (*identity, error) {
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if info.Size() > maxConf {
		return nil, fmt.Errorf("it has more than %d bytes", maxConf)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, errors.New("it is no kubeconfig") // the parser's error may quote what is secret
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("its current context %q is not whole", config.CurrentContext)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("read a file that it names: %w", err)
	}
	cluster, user, err := current(config)
	if err != nil {
		return nil, err
	}
	id, err := newCluster(cluster, cluster.CertificateAuthorityData)
	if err != nil {
		return nil, err
	}
	id.file, id.token = file, user.Token
	if user.TokenFile != "" {
		b, err := os.ReadFile(user.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read its token: %w", err)
		}
		id.token = strings.TrimSpace(string(b))
	}
	switch {
	case len(user.ClientCertificateData) > 0:
		if id.cert, err = tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return nil, errors.New("its client certificate and key do not belong together")
		}
	case id.token == "":
		return nil, errors.New("it logs in by something else than a client certificate or a token")
	}
	return id, nil
}

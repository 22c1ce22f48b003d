package kubernetes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// unversioned makes requests by whole paths; failures are decoded, answers are not.
func unversioned(config *rest.Config, client *http.Client) (*rest.RESTClient, error) {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	return rest.UnversionedRESTClientForConfigAndClient(config, client)
}

// CoreREST makes requests that are built by hand, for those whose repetitions are
// the caller's own. Paths begin at /api/v1, and other groups are reached by
// AbsPath; answers are JSON.
func (c *Client) CoreREST() (*rest.RESTClient, error) {
	known := runtime.NewScheme()
	if err := core.AddToScheme(known); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.config)
	config.APIPath = "/api"
	config.GroupVersion = &core.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", c.Endpoint, err)
	}
	return client, nil
}

// Authority is a digest of the certificate authority that the connection gives
// for the API server, by which a kubelet's kubeconfig is known to be of the same
// cluster; "" where it is the system's.
func (c *Client) Authority() string {
	if len(c.authority) == 0 {
		return ""
	}
	return AuthorityDigest(c.authority)
}

// AuthorityDigest is Authority of a certificate authority in PEM.
func AuthorityDigest(pem []byte) string {
	sum := sha256.Sum256(bytes.TrimSpace(pem))
	return hex.EncodeToString(sum[:8])
}

// authority is what a configuration gives as such, in PEM.
func authority(config *rest.Config) []byte {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData
	}
	pem, _ := os.ReadFile(config.CAFile) // who cannot read it cannot connect
	return pem
}

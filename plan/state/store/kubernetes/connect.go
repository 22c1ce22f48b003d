package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/plan/state/backend"
)

// connect prepares requests to the cluster that the arguments name. It sends
// none.
func connect(c backend.Config, tries patience) (*client, error) {
	config, err := restConfig(c)
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.QPS, config.WarningHandler = c.Caller, -1, rest.NoWarnings{}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, coordination.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, trimFullStop(err)
	}
	cl := &client{namespace: c.String("namespace"), tries: tries, close: transport.CloseIdleConnections}
	if cl.namespace == "" {
		cl.namespace = "default"
	}
	for _, api := range []struct {
		path  string
		group schema.GroupVersion
		into  *rest.Interface
	}{{"/api", core.SchemeGroupVersion, &cl.core}, {"/apis", coordination.SchemeGroupVersion, &cl.coordination}} {
		of := rest.CopyConfig(config)
		of.APIPath, of.GroupVersion = api.path, &api.group
		if *api.into, err = rest.RESTClientForConfigAndClient(of, transport); err != nil {
			return nil, trimFullStop(err)
		}
	}
	return cl, nil
}

// restConfig finds out where the cluster is and who asks, by Terraform's
// arguments: those for single values stand above what files say.
func restConfig(c backend.Config) (*rest.Config, error) {
	if c.Bool("in_cluster_config", false) {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("in_cluster_config is set, and this process does not run in a cluster: %w", err)
		}
		return config, nil
	}
	paths, err := configPaths(c)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 && c.String("host") == "" {
		return nil, errors.New("no cluster is configured: give config_path (or KUBE_CONFIG_PATH in the environment), " +
			"host with credentials, or in_cluster_config")
	}
	overrides, err := overrides(c)
	if err != nil {
		return nil, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: paths, WarnIfAllMissing: false}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, trimFullStop(err)
	}
	return config, nil
}

// configPaths are the kubeconfig files, which must be there.
func configPaths(c backend.Config) ([]string, error) {
	if !c.Bool("load_config_file", true) {
		return nil, nil
	}
	paths := c.Strings("config_paths")
	if one := c.String("config_path"); one != "" {
		paths = []string{one}
	} else if len(paths) == 0 && c.Getenv != nil {
		paths = filepath.SplitList(c.Getenv("KUBE_CONFIG_PATHS"))
	}
	for i, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, err
			}
			paths[i] = home + rest
		}
		if _, err := os.Stat(paths[i]); err != nil {
			return nil, fmt.Errorf("read kubeconfig: %w", err)
		}
	}
	return paths, nil
}

// overrides are the arguments that stand above a kubeconfig.
func overrides(c backend.Config) (*clientcmd.ConfigOverrides, error) {
	o := &clientcmd.ConfigOverrides{CurrentContext: c.String("config_context")}
	o.Context.AuthInfo, o.Context.Cluster = c.String("config_context_auth_info"), c.String("config_context_cluster")
	cluster, user := &o.ClusterInfo, &o.AuthInfo
	cluster.Server = c.String("host")
	if cluster.Server != "" && !strings.Contains(cluster.Server, "://") {
		cluster.Server = "https://" + cluster.Server
	}
	cluster.InsecureSkipTLSVerify = c.Bool("insecure", false)
	cluster.CertificateAuthorityData = []byte(c.String("cluster_ca_certificate"))
	cluster.ProxyURL = c.String("proxy_url")
	user.Username, user.Password, user.Token = c.String("username"), c.String("password"), c.String("token")
	user.ClientCertificateData, user.ClientKeyData = []byte(c.String("client_certificate")), []byte(c.String("client_key"))
	exec, ok := c.Nested("exec")
	if !ok {
		return o, nil
	}
	user.Exec = &clientcmdapi.ExecConfig{
		APIVersion: exec.String("api_version"), Command: exec.String("command"), Args: exec.Strings("args"),
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	if user.Exec.APIVersion == "" || user.Exec.Command == "" {
		return nil, errors.New("exec needs api_version and command")
	}
	for name, value := range exec.Map("env") {
		user.Exec.Env = append(user.Exec.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
	}
	return o, nil
}

// trimFullStop removes the full stop from an error of the library.
func trimFullStop(err error) error {
	if text, ok := strings.CutSuffix(err.Error(), "."); ok {
		return errors.New(text)
	}
	return err
}

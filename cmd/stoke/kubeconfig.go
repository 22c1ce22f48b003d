package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientauth "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// kubeconfigFlags are the options of stoke kubeconfig.
type kubeconfigFlags struct {
	state, context    string
	port              int
	merge, credential bool
}

// name is that of the context.
func (f kubeconfigFlags) name(c *cluster) string {
	if f.context != "" {
		return f.context
	}
	return c.address.String()
}

func kubeconfigCommand(s *session) *cobra.Command {
	var f kubeconfigFlags
	cmd := &cobra.Command{
		Use:   "kubeconfig [options] ADDRESS",
		Short: "Print a kubeconfig for the cluster of an object",
		Long: `Prints a kubeconfig for kubectl and other programs, for the cluster that the
object at ADDRESS is or belongs to. It contains no secret: a program that uses it
calls stoke for a credential. With -merge it is merged into the file that kubectl
reads: the first of $KUBECONFIG, or ~/.kube/config.

A cluster behind SSH is reached through "stoke proxy ADDRESS", which has to run at
the same time; the kubeconfig names it.`,
		Args: exactArgs(1, "the ADDRESS of a cluster, or of an object in one"),
	}
	cmd.Flags().BoolVar(&f.merge, "merge", false, "Put it into the kubeconfig that kubectl reads. Entries of the same name that stoke did not write are not replaced.")
	cmd.Flags().StringVar(&f.context, "context", "", "Call the context, the cluster and the user `NAME`. It is ADDRESS unless said otherwise.")
	cmd.Flags().IntVar(&f.port, "port", 0, "Name a proxy at this `PORT`, as given to stoke proxy.")
	cmd.Flags().BoolVar(&f.credential, "credential", false, "Print a credential instead, as an ExecCredential: this is what programs call. Not on a terminal.")
	cmd.Flags().StringVar(&f.state, "state", "", "Read `FILE` in place of terraform.tfstate.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.credential && isTerminal(s.stage.out) {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-credential prints a secret, which a terminal would show: it is for programs")}
		}
		if err := checkPort(cmd, f.port); err != nil {
			return err
		}
		if f.credential {
			if err := s.guardCredential(args[0]); err != nil {
				return err
			}
		}
		s.looking.Store(true)
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		c, err := s.cluster(ctx, f.state, args[0])
		if err != nil {
			return err
		}
		pool := &kubernetes.Pool{SSH: c.ssh, Agent: "stoke/" + version}
		defer pool.Close()
		if f.merge {
			if err := s.ownSource(c, s.mergePath(f.name(c))); err != nil {
				return err
			}
		}
		if c.ID != "" { // the one that the state means, before anything is handed out
			if _, err := pool.Get(ctx, c.Connection); err != nil {
				return s.unreached(err)
			}
		}
		if f.credential {
			if err := s.checkRequestedCluster(pool, c); err != nil {
				return s.unreached(err)
			}
			return s.unreached(s.printCredential(ctx, pool, c))
		}
		config, err := s.kubeconfig(pool, c, f)
		if err != nil {
			return s.unreached(err)
		}
		if f.merge {
			return s.merge(ctx, config, config.CurrentContext)
		}
		text, err := clientcmd.Write(*config)
		if err != nil {
			return err
		}
		s.printf("%s", text)
		return nil
	}
	return cmd
}

// printCredential prints what a credential plugin does,
// https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
func (s *session) printCredential(ctx context.Context, pool *kubernetes.Pool, c *cluster) error {
	got, err := pool.Credential(ctx, c.Connection)
	if err != nil {
		return err
	}
	status := &clientauth.ExecCredentialStatus{Token: got.Token, ClientCertificateData: string(got.Certificate), ClientKeyData: string(got.Key)}
	if !got.Expires.IsZero() {
		at := metav1.NewTime(got.Expires)
		status.ExpirationTimestamp = &at
	}
	text, err := json.Marshal(clientauth.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauth.SchemeGroupVersion.String(), Kind: "ExecCredential"}, Status: status,
	})
	if err != nil {
		return err
	}
	s.printf("%s\n", text)
	return nil
}

// kubeconfig leads to a cluster, by a credential that this program hands out.
func (s *session) kubeconfig(pool *kubernetes.Pool, c *cluster, f kubeconfigFlags) (*clientapi.Config, error) {
	to, err := pool.ClusterEntry(c.Connection)
	if err != nil {
		return nil, err
	}
	if c.Credential.SSH != nil {
		to.ProxyURL = "http://" + proxyAddress(c, f.port)
	}
	plugin, err := s.plugin(c, f.state)
	if err != nil {
		return nil, err
	}
	name := f.name(c)
	ours, err := markOf(plugin)
	if err != nil {
		return nil, err
	}
	marks := map[string]runtime.Object{entryMark: ours}
	config := clientapi.NewConfig()
	to.Extensions = marks
	config.Clusters[name] = to
	config.AuthInfos[name] = &clientapi.AuthInfo{Exec: plugin, Extensions: marks}
	config.Contexts[name] = &clientapi.Context{Cluster: name, AuthInfo: name, Extensions: marks}
	config.CurrentContext = name
	return config, nil
}

// plugin is this program as a credential plugin, from whatever folder.
func (s *session) plugin(c *cluster, state string) (*clientapi.ExecConfig, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	program, err := ownPath()
	if err != nil {
		return nil, err
	}
	e := &clientapi.ExecConfig{
		APIVersion: clientauth.SchemeGroupVersion.String(), Command: program, InteractiveMode: clientapi.NeverExecInteractiveMode, ProvideClusterInfo: true,
		InstallHint: "This cluster's credentials come from stoke.", Args: []string{"-chdir=" + dir, "kubeconfig", "-credential"},
	}
	if state != "" {
		if state, err = filepath.Abs(state); err != nil {
			return nil, err
		}
		e.Args = append(e.Args, "-state="+state)
	} else {
		workspace, err := s.workspace()
		if err != nil {
			return nil, err
		}
		// Which one is selected may change.
		e.Env = append(e.Env, clientapi.ExecEnvVar{Name: workspaceVariable, Value: workspace})
	}
	if data := s.getenv("TF_DATA_DIR"); data != "" {
		if data, err = filepath.Abs(data); err != nil {
			return nil, err
		}
		e.Env = append(e.Env, clientapi.ExecEnvVar{Name: "TF_DATA_DIR", Value: data})
	}
	e.Args = append(e.Args, c.address.String())
	return e, nil
}

// ownPath is the path of this program: the one that a shell finds, which stays
// when a package manager puts another version there, or else its own.
func ownPath() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath("stoke")
	if err != nil {
		return own, nil
	}
	if found, err = filepath.Abs(found); err != nil {
		return own, nil
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found, nil
	}
	return own, nil
}

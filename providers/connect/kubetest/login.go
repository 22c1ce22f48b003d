package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	execapi "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// Credential is how a kubeconfig proves who somebody is.
type Credential int

const (
	Certificate      Credential = iota // a client certificate, in the kubeconfig
	CertificateFiles                   // a client certificate and its key, in files
	Token                              // a token, in the kubeconfig
	TokenFile                          // a token, in a file
	Exec                               // an exec plugin, which prints a token, or a client certificate
)

// Login says as whom, and how, a kubeconfig logs in.
type Login struct {
	// User is "admin" where it is left out, who may do everything. Tokens are for
	// service accounts: system:serviceaccount:NAMESPACE:NAME, which is made where it
	// is missing; left out, one that may do everything.
	User string
	// Groups are the groups of a user; a service account has none.
	Groups []string
	// Grants are what the user may do, for as long as the test runs.
	Grants []Grant
	// With is the kind of credential. Service accounts have tokens, whatever it says
	// but TokenFile and Exec.
	With Credential
	// Script is what the plugin of Exec does in place of printing the credential,
	// as a shell script: the file $CREDENTIAL has what it is to print.
	Script string
	// Expired makes the user's certificate one that ended an hour ago.
	Expired bool
	// Namespace is that of the context.
	Namespace string
	// Edit changes the kubeconfig before it is written. Its context, cluster, and
	// user are all called "kubetest".
	Edit func(*clientapi.Config)
}

// entry is what everything in a kubeconfig is called.
const entry = "kubetest"

const (
	administrator = "system:serviceaccount:" + metav1.NamespaceSystem + ":kubetest-admin"
	masters       = "system:masters"
)

func (l Login) user() string {
	if l.User == "" {
		return "admin"
	}
	return l.User
}

func (l Login) groups() []string {
	if l.User == "" {
		return []string{masters}
	}
	return l.Groups
}

// account is the service account that logs in, if one does.
func (l Login) account() (namespace, name string, ok bool) {
	user := l.User
	if user == "" && (l.With == Token || l.With == TokenFile) {
		user = administrator
	}
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok
}

// KubeconfigFor writes a kubeconfig and returns its path. It may be used at once:
// what is granted holds when this returns. It ends with the test.
func (c *Cluster) KubeconfigFor(t testing.TB, login Login) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	id, err := c.credential(ctx, dir, login)
	if err != nil {
		t.Fatalf("log in as %s: %v", login.user(), err)
	}
	if err := c.write(path, c.kubeconfig(login, id)); err != nil {
		t.Fatal(err)
	}
	grants := login.Grants
	user := login.user()
	if namespace, name, ok := login.account(); ok {
		user = "system:serviceaccount:" + namespace + ":" + name
		if user == administrator {
			grants = append(grants, Grant{Rules: everything})
		}
	}
	c.Grant(t, user, grants...)
	return path
}

// ConfigFor is KubeconfigFor, read.
func (c *Cluster) ConfigFor(t testing.TB, login Login) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigFor(t, login))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (c *Cluster) kubeconfig(login Login, id *clientapi.AuthInfo) *clientapi.Config {
	config := clientapi.NewConfig()
	config.Clusters[entry] = &clientapi.Cluster{Server: c.Endpoint, CertificateAuthorityData: c.authority.pem}
	config.AuthInfos[entry] = id
	config.Contexts[entry] = &clientapi.Context{Cluster: entry, AuthInfo: entry, Namespace: login.Namespace}
	config.CurrentContext = entry
	if login.Edit != nil {
		login.Edit(config)
	}
	return config
}

func (c *Cluster) write(path string, config *clientapi.Config) error {
	return clientcmd.WriteToFile(*config, path)
}

// credential makes what a user logs in with. Files of it lie in dir.
func (c *Cluster) credential(ctx context.Context, dir string, login Login) (*clientapi.AuthInfo, error) {
	id := clientapi.NewAuthInfo()
	status := &execapi.ExecCredentialStatus{}
	if namespace, name, ok := login.account(); ok {
		token, err := c.token(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		status.Token = token
	} else {
		if login.With == Token || login.With == TokenFile {
			return nil, fmt.Errorf("only service accounts have tokens")
		}
		ends := time.Now().Add(lifetime)
		if login.Expired {
			ends = time.Now().Add(-time.Hour)
		}
		p, err := c.authority.client(login.user(), login.groups(), ends)
		if err != nil {
			return nil, err
		}
		status.ClientCertificateData, status.ClientKeyData = string(p.cert), string(p.key)
	}
	switch {
	case login.With == Exec:
		return id, plugin(id, dir, status, login.Script)
	case login.With == TokenFile:
		id.TokenFile = filepath.Join(dir, "token")
		return id, os.WriteFile(id.TokenFile, []byte(status.Token), 0o600)
	case status.Token != "":
		id.Token = status.Token
	case login.With == CertificateFiles:
		id.ClientCertificate, id.ClientKey = filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
		return id, pair{[]byte(status.ClientCertificateData), []byte(status.ClientKeyData)}.write(dir, "client")
	default:
		id.ClientCertificateData, id.ClientKeyData = []byte(status.ClientCertificateData), []byte(status.ClientKeyData)
	}
	return id, nil
}

// plugin makes an exec plugin that prints a credential, or does what the script
// says. It is run by sh, since a script that was just written may be busy.
func plugin(id *clientapi.AuthInfo, dir string, status *execapi.ExecCredentialStatus, script string) error {
	if script == "" {
		script = `cat "$CREDENTIAL"`
	}
	answer, err := json.Marshal(execapi.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: execapi.SchemeGroupVersion.String(), Kind: "ExecCredential"}, Status: status,
	})
	if err != nil {
		return err
	}
	file, program := filepath.Join(dir, "credential.json"), filepath.Join(dir, "plugin")
	if err := os.WriteFile(file, answer, 0o600); err != nil {
		return err
	}
	id.Exec = &clientapi.ExecConfig{
		APIVersion: execapi.SchemeGroupVersion.String(), Command: "sh", Args: []string{program}, InteractiveMode: clientapi.NeverExecInteractiveMode,
		Env: []clientapi.ExecEnvVar{{Name: "CREDENTIAL", Value: file}},
	}
	return os.WriteFile(program, []byte(script+"\n"), 0o600)
}

// token has a token of one hour of a service account, which is made where it is
// missing.
func (c *Cluster) token(ctx context.Context, namespace, name string) (string, error) {
	accounts := c.Client.CoreV1().ServiceAccounts(namespace)
	account := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	seconds := int64(time.Hour / time.Second)
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

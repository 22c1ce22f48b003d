package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// DialError is the reason why the API server cannot be reached.
type DialError struct {
	Name, Endpoint string
	Err            error
	credential     string
	renew          string // the command on the control plane that renews it; "": logging in does
}

func (e *DialError) Error() string { return fmt.Sprintf("%s (%s): %v", e.Name, e.Endpoint, e.Err) }
func (e *DialError) Unwrap() error { return e.Err }

// Waits words the error of a request that is repeated, for people who wait.
func Waits(err error) string {
	var slow *SlowPluginError
	if errors.As(err, &slow) {
		return slow.Error()
	}
	return fmt.Sprintf("the API server does not answer (%v); trying again", err)
}

// Describe is what people read about an error of Dial: at most eight words, and
// what to do.
func Describe(err error) (summary, detail string) {
	var other *OtherClusterError
	var credential *NoCredentialError
	var dial *DialError
	var plane *ControlPlaneError
	var unbound *UnboundError
	switch {
	case errors.As(err, &unbound):
		return "The operators' group has no rights", fmt.Sprintf("%s lets stoke in as a member of the group %s, which may not even read the namespace kube-system. "+
			"On a control plane, bind the group once: sudo kubectl --kubeconfig /etc/kubernetes/admin.conf create clusterrolebinding %s --clusterrole=cluster-admin --group=%s", unbound.Name, Operators, Operators, Operators) + "."
	case errors.As(err, &plane):
		return plane.describe()
	case errors.As(err, &other):
		return "This is another cluster", fmt.Sprintf("%s leads to the cluster %s, and the objects are in %s (the UID of the namespace kube-system). "+
			"Nothing was read or changed. Give the connection to the right cluster.", other.Name, other.Have, other.Want)
	case errors.As(err, &credential):
		return "No credential for the cluster", fmt.Sprintf("%s: %s.", credential.From, errorText(credential.Err))
	case errors.Is(err, errAuthority):
		return "Certificate authority cannot be read", fmt.Sprintf("%s. In a kubeconfig that is base64 of a PEM file, which begins with LS0tLS1CRUdJTi.", err)
	case errors.Is(err, errUnreadable):
		return "Cluster cannot be identified", fmt.Sprintf("%s. Allow its user to get the namespace kube-system.", err)
	case errors.As(err, &dial):
		return dial.describe()
	}
	return "The API server cannot be reached", fmt.Sprintf("%s.", errorText(err))
}

func (e *DialError) describe() (summary, detail string) {
	at := fmt.Sprintf("%s (%s)", e.Name, e.Endpoint)
	if e.Name == e.Endpoint {
		at = e.Endpoint
	}
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var token *oauth2.RetrieveError
	switch {
	case apierrors.IsUnauthorized(e.Err) && e.renew != "":
		return "The API server refuses the credential", fmt.Sprintf("%s does not accept %s: it has ended, or the cluster is another one. There, `%s` renews it.", at, e.credential, e.renew)
	case apierrors.IsUnauthorized(e.Err):
		return "The API server refuses the credential", fmt.Sprintf("%s does not accept %s: it has ended, or it is of another cluster. Log in again.", at, orElse(e.credential, "the credential"))
	case errors.As(e.Err, &token):
		return "No credential for the cluster", fmt.Sprintf("%s: Google hands out no token (%s). Log in again.", orElse(e.credential, "the credential"), token.ErrorCode)
	case errors.As(e.Err, new(x509.UnknownAuthorityError)):
		return "Unknown authority of the API server", fmt.Sprintf("The certificate of %s was signed by another authority than the one given. Give the cluster's own CA; "+
			"if it should be this one, an attacker may intercept the connection.", at)
	case errors.As(e.Err, &invalid) && invalid.Reason == x509.Expired:
		return "Certificate and clock do not agree", fmt.Sprintf("The certificate of %s is good from %s to %s, and this machine's clock says %s. Set the clock, or renew the certificate.",
			at, stamp(invalid.Cert.NotBefore), stamp(invalid.Cert.NotAfter), stamp(time.Now()))
	case errors.As(e.Err, &host):
		return "Certificate for another name", fmt.Sprintf("The certificate of %s is for %s.", at, strings.Join(append(host.Certificate.DNSNames, addresses(host.Certificate.IPAddresses)...), ", "))
	case apierrors.IsBadRequest(e.Err) && strings.HasPrefix(e.Endpoint, "http://"):
		return "The API server speaks TLS", fmt.Sprintf("%s refuses plain HTTP. Give its endpoint as https://%s.", at, strings.TrimPrefix(e.Endpoint, "http://"))
	case isCertificate(e.Err):
		return "Certificate of the API server not valid", fmt.Sprintf("%s: %s.", at, errorText(e.Err))
	}
	return "The API server cannot be reached", fmt.Sprintf("%s: %s.", at, errorText(e.Err))
}

func (e *ControlPlaneError) describe() (summary, detail string) {
	why := strings.TrimRight(errorText(e.Err), ".")
	if !strings.Contains(why, e.Machine) {
		why = "The control plane " + e.Machine + ": " + why
	}
	var key *ssh.HostKeyError
	var forward *ssh.ForwardError
	switch {
	case errors.As(e.Err, &key):
		return "Host key does not match", why + "."
	case errors.As(e.Err, &forward):
		return "The API server cannot be reached", why + "."
	case ssh.IsPermanent(e.Err), errors.Is(e.Err, errNoSignature):
		return "No credential from the control plane", why + "."
	}
	return "The control plane cannot be reached", why + "."
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func addresses(ips []net.IP) (text []string) {
	for _, ip := range ips {
		text = append(text, ip.String())
	}
	return text
}

// errorText is an error without the request that it is of.
func errorText(err error) string {
	var lookup *net.DNSError
	var op *net.OpError
	var path *os.PathError
	var request *url.Error
	switch {
	case errors.As(err, &lookup):
		return fmt.Sprintf("the name %s does not resolve", lookup.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused)"
	case errors.Is(err, context.DeadlineExceeded):
		if cause := strings.SplitN(err.Error(), " (", 2)[0]; strings.HasPrefix(cause, "no answer") {
			return cause
		}
		return "no answer in time"
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.As(err, &path):
		return fmt.Sprintf("%s: %s", path.Path, path.Err)
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}

// isCertificate reports an error about certificates, which time does not fix.
func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	return errors.As(err, &verify) || errors.As(err, &alert) || errors.As(err, &record)
}

// isConnection reports that a connection was cut or could not be made.
func isConnection(err error) bool {
	for _, e := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// names lists keys for messages.
func names[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

const (
	// Operators is the group of whoever reaches a cluster over SSH. It is to be
	// bound to a role: see UnboundError.
	Operators = "stoke:operators"

	certificateTime = time.Hour
	signingTime     = 5 * time.Second // for the controller manager to sign
	tidyTime        = 3 * time.Second // to delete the request
)

// errNoSignature says that a control plane hands out no certificate.
var errNoSignature = errors.New("no certificate was signed")

// Unsigned tells whether a control plane was reached and signed no certificate. One
// that has just begun does so within the minute.
func Unsigned(err error) bool { return errors.Is(err, errNoSignature) }

// newRequest makes a key and asks for a certificate of it. The key is in no file
// and leaves this process only where somebody asks for a credential.
func newRequest() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	subject := pkix.Name{CommonName: operatorName(), Organization: []string{Operators}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// operatorName is what the cluster's audit log calls this process:
// stoke:operator:USER@COMPUTER:RANDOM, of 64 characters at most, which is what a
// common name may have (RFC 5280, ub-common-name).
func operatorName() string {
	name, computer := "unknown", "unknown"
	if me, err := user.Current(); err == nil {
		name = me.Username[strings.LastIndexByte(me.Username, '\\')+1:]
	}
	if host, err := os.Hostname(); err == nil {
		computer = host
	}
	plain := func(r rune) rune {
		if r > ' ' && r < 0x7f && r != ':' && r != '@' {
			return r
		}
		return '-'
	}
	who := strings.Map(plain, name) + "@" + strings.Map(plain, computer)
	return "stoke:operator:" + who[:min(len(who), 36)] + ":" + strings.ToLower(rand.Text()[:12])
}

// sign has the API server sign a request for one hour, as the administrator
// whom the client logs in as, and leaves nothing behind.
func sign(ctx context.Context, config *rest.Config, client *http.Client, request []byte) (certificate []byte, err error) {
	requests, err := newRequests(config, client)
	if err != nil {
		return nil, err
	}
	seconds := int32(certificateTime / time.Second)
	csr, err := requests.answer(ctx, requests.api.Post().Resource(resource).Body(&certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "stoke-" + strings.ToLower(rand.Text())},
		Spec: certificates.CertificateSigningRequestSpec{
			Request: request, SignerName: certificates.KubeAPIServerClientSignerName, ExpirationSeconds: &seconds,
			Usages: []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth},
		},
	}))
	if err != nil {
		return nil, err
	}
	name := csr.Name
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		// Where that fails, the controller manager removes it within an hour.
		_ = requests.api.Delete().Resource(resource).Name(name).Do(tidy).Error()
	}()
	csr.Status.Conditions = append(csr.Status.Conditions, certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: core.ConditionTrue, Reason: "Stoke", Message: "Approved by stoke, which logged in on the control plane over SSH.",
	})
	if csr, err = requests.answer(ctx, requests.api.Put().Resource(resource).Name(name).SubResource("approval").Body(csr)); err != nil {
		return nil, err
	}
	return requests.signed(ctx, csr)
}

const resource = "certificatesigningrequests"

// requests are those for certificates.
type requests struct {
	api        *rest.RESTClient
	parameters runtime.ParameterCodec
}

// newRequests makes a client of them. The typed one would link a module that
// nothing else here needs.
func newRequests(config *rest.Config, client *http.Client) (requests, error) {
	known := runtime.NewScheme()
	if err := certificates.AddToScheme(known); err != nil {
		return requests{}, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &certificates.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	api, err := rest.RESTClientForConfigAndClient(config, client)
	return requests{api, runtime.NewParameterCodec(known)}, err
}

func (r requests) answer(ctx context.Context, req *rest.Request) (*certificates.CertificateSigningRequest, error) {
	csr := new(certificates.CertificateSigningRequest)
	return csr, req.Do(ctx).Into(csr)
}

// signed waits for the certificate of an approved request.
func (r requests) signed(ctx context.Context, csr *certificates.CertificateSigningRequest) ([]byte, error) {
	waiting, cancel := context.WithTimeout(ctx, signingTime)
	defer cancel()
	for {
		for _, c := range csr.Status.Conditions {
			if c.Type == certificates.CertificateDenied || c.Type == certificates.CertificateFailed {
				return nil, fmt.Errorf("%w: the request is %s: %s", errNoSignature, strings.ToLower(string(c.Type)), c.Message)
			}
		}
		if len(csr.Status.Certificate) > 0 {
			return csr.Status.Certificate, nil
		}
		next, err := r.changed(waiting, csr)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case waiting.Err() != nil:
			return nil, fmt.Errorf("%w within %s: kube-controller-manager signs, so it has to run on the control plane and to have the authority's key (--cluster-signing-key-file)", errNoSignature, signingTime)
		case err != nil:
			return nil, err
		}
		csr = next
	}
}

// changed is a request once it is another than the one given.
func (r requests) changed(ctx context.Context, csr *certificates.CertificateSigningRequest) (*certificates.CertificateSigningRequest, error) {
	events, err := r.watch(ctx, csr)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if event, open := <-events.ResultChan(); open {
		if next, ok := event.Object.(*certificates.CertificateSigningRequest); ok {
			return next, nil
		}
	}
	return r.answer(ctx, r.api.Get().Resource(resource).Name(csr.Name))
}

func (r requests) watch(ctx context.Context, csr *certificates.CertificateSigningRequest) (watch.Interface, error) {
	var options runtime.Object = &metav1.ListOptions{
		Watch: true, FieldSelector: fields.OneTermEqualSelector("metadata.name", csr.Name).String(), ResourceVersion: csr.ResourceVersion,
	}
	return r.api.Get().Resource(resource).VersionedParams(options, r.parameters).Watch(ctx)
}

// pairOf puts a certificate and the key that it was asked for together.
func pairOf(key *ecdsa.PrivateKey, certificate []byte) (*tls.Certificate, error) {
	pair := &tls.Certificate{PrivateKey: key}
	for rest := certificate; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		pair.Certificate = append(pair.Certificate, block.Bytes)
	}
	if len(pair.Certificate) == 0 {
		return nil, fmt.Errorf("%w: the signer returned no certificate", errNoSignature)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSignature, err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, fmt.Errorf("%w: what was handed out is of another key", errNoSignature)
	}
	pair.Leaf = leaf
	return pair, nil
}

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Pin is the public half: enough to recognise the run.
type Pin struct {
	der []byte
}

// Certificate is the whole, with the private key: enough to be the run.
type Certificate struct {
	Pin
	pair tls.Certificate
}

// Make makes a new certificate. run is written into it for people to read.
func Make(run string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "stoke run " + run},
		// The dates do not matter: clocks of nodes may be wrong, and the certificate
		// is deleted with the run.
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &Certificate{Pin{der}, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// PEM is the public half as text.
func (p *Pin) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: p.der})
}

// PEM is the certificate and its key as text: a secret.
func (c *Certificate) PEM() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(c.pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("write certificate: %w", err)
	}
	return append(c.Pin.PEM(), pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: key})...), nil
}

// ReadPin reads what PEM gave, with or without the key.
func ReadPin(text []byte) (*Pin, error) {
	block := find(text, certificateBlock)
	if block == nil {
		return nil, errors.New("read certificate: no PEM block CERTIFICATE")
	}
	if _, err := x509.ParseCertificate(block); err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &Pin{block}, nil
}

// Read reads what Certificate.PEM gave.
func Read(text []byte) (*Certificate, error) {
	pin, err := ReadPin(text)
	if err != nil {
		return nil, err
	}
	if find(text, keyBlock) == nil {
		return nil, errors.New("read certificate: no PEM block PRIVATE KEY: who listens needs the key")
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &Certificate{*pin, pair}, nil
}

// HasKey reports whether a text has a private key, right or wrong.
func HasKey(text []byte) bool { return find(text, keyBlock) != nil }

// find returns the first block of a kind.
func find(text []byte, kind string) []byte {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil
		}
		if block.Type == kind {
			return block.Bytes
		}
		text = rest
	}
}

// Server is the TLS configuration of whoever listens.
func (c *Certificate) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.pair}}
}

// ErrOther means that whoever answered does not hold the run's certificate.
var ErrOther = errors.New("the other end has another certificate than this run's")

// Client is the TLS configuration of whoever connects.
func (p *Pin) Client() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// Instead of names and authorities, the certificate itself is compared;
		// the handshake proves that the other end holds its key.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, p.der) {
				return ErrOther
			}
			return nil
		},
	}
}

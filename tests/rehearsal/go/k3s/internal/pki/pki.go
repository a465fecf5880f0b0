// Package pki makes the certificates of a server and its node. They are made once; at every start those that expire
// within 90 days, name other hosts than needed, or come from another CA are made anew, as k3s does.
package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	certLife = 365 * 24 * time.Hour
	// RenewBefore is the rest of life at which a start makes a certificate anew.
	RenewBefore = 90 * 24 * time.Hour
)

// CA signs certificates.
type CA struct {
	Cert *x509.Certificate
	key  crypto.Signer
	// PEM is the certificate as it is in its file.
	PEM []byte
}

// Request describes a certificate that has to be there.
type Request struct {
	// Path without .crt and .key.
	Path         string
	CommonName   string
	Organization []string
	Server       bool
	Client       bool
	// Hosts are names and addresses of a server certificate.
	Hosts []string
}

// EnsureCA reads the CA at path (.crt, .key), or makes it.
func EnsureCA(path, name string, now time.Time) (*CA, error) {
	if ca, err := readCA(path); err == nil {
		return ca, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading CA %s: %w", path, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s@%d", name, now.Unix())},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
		SubjectKeyId:          keyID(&key.PublicKey),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := writePair(path, encode("CERTIFICATE", der), key); err != nil {
		return nil, err
	}
	return readCA(path)
}

func keyID(key *ecdsa.PublicKey) []byte {
	raw, err := key.Bytes()
	if err != nil {
		return nil
	}
	sum := sha1.Sum(raw)
	return sum[:]
}

func readCA(path string) (*CA, error) {
	certPEM, err := os.ReadFile(path + ".crt")
	if err != nil {
		return nil, err
	}
	certs, err := Parse(certPEM)
	if err != nil {
		return nil, err
	}
	key, err := readKey(path + ".key")
	if err != nil {
		return nil, err
	}
	return &CA{Cert: certs[0], key: key, PEM: certPEM}, nil
}

// Ensure makes the certificate of a request unless the one that is there still serves; it tells whether it made one.
func (ca *CA) Ensure(request Request, now time.Time) (bool, error) {
	if ca.serves(request, now) {
		return false, nil
	}
	key, err := readKey(request.Path + ".key")
	if err != nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return false, err
		}
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: request.CommonName, Organization: request.Organization},
		NotBefore:    ca.Cert.NotBefore,
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if request.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if request.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, host := range request.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, key.Public(), ca.key)
	if err != nil {
		return false, err
	}
	// The CA goes along: a client that holds only its hash (a joining agent) can check what it is offered.
	return true, writePair(request.Path, append(encode("CERTIFICATE", der), ca.PEM...), key)
}

func (ca *CA) serves(request Request, now time.Time) bool {
	raw, err := os.ReadFile(request.Path + ".crt")
	if err != nil {
		return false
	}
	certs, err := Parse(raw)
	if err != nil {
		return false
	}
	cert := certs[0]
	if now.Add(RenewBefore).After(cert.NotAfter) || cert.CheckSignatureFrom(ca.Cert) != nil {
		return false
	}
	if cert.Subject.CommonName != request.CommonName || !slices.Equal(cert.Subject.Organization, request.Organization) {
		return false
	}
	for _, host := range request.Hosts {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	_, err = readKey(request.Path + ".key")
	return err == nil
}

// EnsureServiceKey makes the RSA key that signs service account tokens.
func EnsureServiceKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return write(path, encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), 0o600)
}

// Parse reads the certificates of a PEM file; there is at least one.
func Parse(raw []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for {
		block, rest := pem.Decode(raw)
		if block == nil {
			break
		}
		raw = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("holds no certificate")
	}
	return certs, nil
}

func readKey(path string) (crypto.Signer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s holds no key", path)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func writePair(path string, cert []byte, signer crypto.Signer) error {
	der, err := x509.MarshalECPrivateKey(signer.(*ecdsa.PrivateKey))
	if err != nil {
		return err
	}
	if err := write(path+".key", encode("EC PRIVATE KEY", der), 0o600); err != nil {
		return err
	}
	return write(path+".crt", cert, 0o644)
}

// write replaces a file as a whole, so that no reader sees half of it.
func write(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	fresh := path + ".tmp"
	if err := os.WriteFile(fresh, content, mode); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

func encode(kind string, der []byte) []byte {
	var out bytes.Buffer
	pem.Encode(&out, &pem.Block{Type: kind, Bytes: der})
	return out.Bytes()
}

// Usages names what a certificate may be used for.
func Usages(cert *x509.Certificate) string {
	names := map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: "ServerAuth", x509.ExtKeyUsageClientAuth: "ClientAuth"}
	var usages []string
	for _, usage := range cert.ExtKeyUsage {
		usages = append(usages, names[usage])
	}
	return strings.Join(usages, ",")
}

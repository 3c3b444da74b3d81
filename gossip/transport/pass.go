package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/nats-io/nats.go"
)

// A Pass proves a connection: the key of a JWT with its permissions, and a certificate whose
// subject is that key.
type Pass struct {
	JWT         string `json:"jwt"`
	User        string `json:"user"`        // seed of the JWT's key, as NATS writes it
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`         // of the certificate, PEM
}

// tls returns the configuration of TLS 1.3 between two parties that the network's authority certified.
func (p *Pass) tls(n *Network) (*tls.Config, error) {
	own, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(n.Authority)) {
		return nil, fmt.Errorf("network.authority: found no certificate in PEM")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: pool,
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// options returns the options of a client's connection.
func (p *Pass) options(n *Network) ([]nats.Option, error) {
	config, err := p.tls(n)
	if err != nil {
		return nil, err
	}
	return []nats.Option{nats.Secure(config), nats.TLSHandshakeFirst(), nats.UserJWTAndSeed(p.JWT, p.User)}, nil
}

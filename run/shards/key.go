package shards

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// A Key is what the machines of a run share: they prove to each other that they have it, and seal with it.
type Key struct {
	Secret *remote.Secret
	proof  *tls.Config // of a connection between two of them
}

// ReadKey reads a key file: remote.SecretSize random bytes that only its owner may read. "-" is standard input. An
// error in the file is a *run.InputError.
func ReadKey(path string) (*Key, error) {
	if path == "-" {
		b, err := io.ReadAll(io.LimitReader(os.Stdin, remote.SecretSize+1))
		if err != nil {
			return nil, &run.InputError{Where: "--key -", Err: err}
		}
		return newKey("--key -", b)
	}
	fail := func(format string, args ...any) (*Key, error) {
		return nil, &run.InputError{Where: path, Err: fmt.Errorf(format, args...)}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fail("is not there; (umask 077; head -c %d /dev/urandom > %s) makes a key", remote.SecretSize, path)
	case err != nil:
		return fail("%v", err)
	case info.IsDir():
		return fail("found a directory; give a file of %d bytes", remote.SecretSize)
	}
	if err := runlog.Secret(path); err != nil {
		return fail("%w", err)
	}
	b, err := readfile.All(path, readfile.Short)
	var refused *readfile.Error
	if errors.As(err, &refused) {
		return fail("%w", refused)
	}
	if err != nil {
		return fail("%v", err)
	}
	return newKey(path, b)
}

// newKey takes the bytes of a key; where says whence they are.
func newKey(where string, b []byte) (*Key, error) {
	secret, err := remote.NewSecret(b)
	if err != nil {
		return nil, &run.InputError{Where: where,
			Err: fmt.Errorf("found a key of %d bytes; expected %d", len(b), remote.SecretSize)}
	}
	proof, err := proofOf(b)
	return &Key{secret, proof}, err
}

// errOtherKey says that the other side of a connection holds another key.
var errOtherKey = errors.New("found a coordinator or worker with another key")

// proofOf returns the configuration of TLS 1.3 by which both sides prove that they hold the key: each signs the
// handshake by the one Ed25519 key that is derived from it. The certificates around it say nothing more.
func proofOf(key []byte) (*tls.Config, error) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("sotto/shards/2 connection"))
	private := ed25519.NewKeyFromSeed(mac.Sum(nil))
	public := private.Public().(ed25519.PublicKey)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}},
		ClientAuth:   tls.RequireAnyClientCert,
		// No authority has signed a certificate, and no host has a name: the key alone counts.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !public.Equal(s.PeerCertificates[0].PublicKey) {
				return errOtherKey
			}
			return nil
		},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}, nil
}

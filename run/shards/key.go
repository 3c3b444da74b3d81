package shards

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nkeys"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// A Key is what the machines of a run share: they prove to each other that they have it, and seal with it.
type Key struct {
	Secret *remote.Secret
	user   nkeys.KeyPair // at the coordinator's server; its seed never passes over the line
	name   string
}

// ReadKey reads a key file: remote.SecretSize random bytes that only its owner may read. An error in the
// file is a *run.InputError.
func ReadKey(path string) (*Key, error) {
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
		return fail("found a directory; allowed is a file of %d bytes", remote.SecretSize)
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
	secret, err := remote.NewSecret(b)
	if err != nil {
		return fail("found a key of %d bytes; allowed are %d", len(b), remote.SecretSize)
	}
	user, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, userSeed(b))
	if err != nil {
		return nil, err
	}
	name, err := user.PublicKey()
	return &Key{secret, user, name}, err
}

// userSeed derives the seed of the user's Ed25519 key.
func userSeed(key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("sotto/shards/1 user"))
	return mac.Sum(nil)
}

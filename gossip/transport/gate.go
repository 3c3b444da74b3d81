package transport

import (
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A gate admits connections that the network's authority certified, whose account is admitted and
// was not revoked. The server itself would accept any owner's certificate together with any owner's
// JWT.
type gate struct {
	s        *server.Server
	hub      string // its own key, which needs no certificate inside this process
	accounts atomic.Pointer[map[string]*jwt.AccountClaims]
}

// Check implements server.Authentication.
func (g *gate) Check(c server.ClientAuthentication) bool {
	user, err := g.admit(c)
	if err != nil {
		return false
	}
	if user.Expires > 0 {
		id := c.GetID()
		time.AfterFunc(time.Until(time.Unix(user.Expires, 0)), func() { g.s.DisconnectClientByID(id) })
	}
	account, err := g.s.LookupAccount(user.Issuer)
	if err != nil {
		return false
	}
	r, ok := c.(interface{ RegisterNkeyUser(*server.NkeyUser) error })
	return ok &&
		r.RegisterNkeyUser(&server.NkeyUser{Nkey: user.Subject, Account: account, Issued: user.IssuedAt,
			Permissions: natsPermissions(user)}) == nil
}

// admit returns the user who connects, or why it may not connect.
func (g *gate) admit(c server.ClientAuthentication) (*jwt.UserClaims, error) {
	if c.Kind() != server.CLIENT {
		return nil, errors.New("no client")
	}
	opts := c.GetOpts()
	user, err := jwt.DecodeUserClaims(opts.JWT)
	if err != nil {
		return nil, err
	}
	checks := jwt.CreateValidationResults()
	user.Validate(checks)
	switch account := (*g.accounts.Load())[user.Issuer]; {
	case checks.IsBlocking(true): // expired, or not good yet
		return nil, fmt.Errorf("jwt: %v", checks.Errors())
	case account == nil || user.BearerToken:
		return nil, errors.New("jwt: not of this network")
	case account.IsClaimRevoked(user):
		return nil, errors.New("jwt: revoked")
	}
	key, err := nkeys.FromPublicKey(user.Subject)
	if err != nil {
		return nil, err
	}
	signature, err := base64.RawURLEncoding.DecodeString(opts.Sig)
	if err != nil {
		return nil, err
	}
	if err := key.Verify(c.GetNonce(), signature); err != nil {
		return nil, err
	}
	secure, hub := c.GetTLSConnectionState(), user.Subject == g.hub
	switch from := c.RemoteAddress(); {
	case !hub && natsPermissions(user) == nil:
		return nil, errors.New("jwt: without a limit")
	case hub && secure == nil && from != nil && from.Network() == "pipe": // this process
	case secure == nil || len(secure.VerifiedChains) == 0 || secure.PeerCertificates[0].Subject.CommonName != user.Subject:
		return nil, errors.New("the certificate is not of the JWT's key")
	}
	return user, nil
}

// natsPermissions are a JWT's; nil if it has none, as the hub's.
func natsPermissions(user *jwt.UserClaims) *server.Permissions {
	if user.Pub.Empty() && user.Sub.Empty() {
		return nil
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: user.Pub.Allow, Deny: user.Pub.Deny},
		Subscribe: &server.SubjectPermission{Allow: user.Sub.Allow, Deny: user.Sub.Deny},
	}
}

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// A Link carries a client's requests to its hub, and what the hub announces. It may lose, repeat, delay and
// reorder both: a request without an answer may have taken effect.
type Link interface {
	// Request sends body to a subject and waits for the answer until the context ends. Beside an error, again
	// says whether another request may succeed.
	Request(ctx context.Context, subject string, body []byte) (a Answer, again bool, err error)
	// Subscribe calls hear for what the hub announces under patterns of subjects, one announcement at a time
	// for each pattern. An empty subject says that announcements may have been missed.
	Subscribe(patterns []string, hear func(subject string, body []byte)) error
	// Close ends the connection.
	Close()
}

// An Answer is the hub's to a request. Status and Description are those of the answer's header, if it has one.
type Answer struct {
	Body                []byte
	Status, Description string
}

// natsLink is a Link over NATS.
type natsLink struct {
	nc      *nats.Conn
	heard   []*nats.Subscription
	refused atomic.Pointer[error]
}

// connect makes a link of an owner's credentials. It waits for the hub until the context ends.
func (l *natsLink) connect(ctx context.Context, c *Credentials, url string) error {
	options, err := c.Pass.options(&c.Network)
	if err != nil {
		return err
	}
	options = append(options,
		nats.Name(c.Name()), nats.CustomInboxPrefix(c.Network.inbox(c.Owner)),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.ReconnectJitter(reconnect/2, reconnect/2),
		nats.ReconnectBufSize(-1), nats.Timeout(5*time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if unwelcome(err) == ErrRefused {
				err = fmt.Errorf("%w: %w", ErrRefused, err)
				l.refused.Store(&err)
			}
		}),
	)
	for {
		if l.nc, err = nats.Connect(url, options...); err == nil {
			return nil
		}
		if kind := unwelcome(err); kind != nil {
			return fmt.Errorf("hub %s: %w: %w", url, kind, err)
		}
		if pause(ctx, reconnect) != nil {
			return fmt.Errorf("hub %s: %w", url, err)
		}
	}
}

// unwelcome returns ErrStranger if something else than the hub answers, ErrClock if its certificate does not hold
// today, and ErrRefused if the hub rejects this owner or its request; nil for other errors, which may be temporary.
func unwelcome(err error) error {
	var stranger *tls.CertificateVerificationError
	var op *net.OpError
	var invalid x509.CertificateInvalidError
	refusals := []error{nats.ErrPermissionViolation, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked}
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // or not valid yet
		return ErrClock
	case errors.As(err, &stranger):
		return ErrStranger
	case errors.As(err, &op) && op.Op == "remote error", // an alert of TLS: it wants another certificate
		slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) }):
		return ErrRefused
	}
	return nil
}

// Request implements Link.
func (l *natsLink) Request(ctx context.Context, subject string, body []byte) (Answer, bool, error) {
	m, err := l.nc.RequestWithContext(ctx, subject, body)
	switch refused := l.refused.Load(); {
	case err == nil:
		return Answer{m.Data, m.Header.Get("Status"), m.Header.Get("Description")}, false, nil
	case refused != nil:
		return Answer{}, false, *refused
	case unwelcome(l.nc.LastError()) == ErrRefused: // TLS refuses a certificate that ran out, and no handler hears of it
		return Answer{}, false, fmt.Errorf("%w: %w", ErrRefused, l.nc.LastError())
	case l.nc.IsClosed():
		return Answer{}, false, fmt.Errorf("hub: %w", err)
	}
	return Answer{}, !errors.Is(err, nats.ErrMaxPayload), err
}

// Subscribe implements Link. The hub knows of the subscriptions when it returns, or hears of them when the connection
// is there again.
func (l *natsLink) Subscribe(patterns []string, hear func(subject string, body []byte)) error {
	for _, pattern := range patterns {
		s, err := l.nc.Subscribe(pattern, func(m *nats.Msg) { hear(m.Subject, m.Data) })
		if err != nil {
			return err
		}
		l.heard = append(l.heard, s)
	}
	l.nc.SetReconnectHandler(func(*nats.Conn) { hear("", nil) })
	// A hub that ends here is no error, though the library says that the connection is closed.
	if err := l.nc.FlushTimeout(askAgain); err != nil && l.nc.IsClosed() {
		return fmt.Errorf("hub: %w", err)
	}
	return nil
}

// Close implements Link.
func (l *natsLink) Close() { l.nc.Close() }

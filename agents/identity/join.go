package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/identity"
	"linktrial/internal/joincode"
	"linktrial/internal/joinexchange"
)

// Join is what a laptop that has a code asks an orchestrator for.
type Join struct {
	Address string // of the orchestrator, HOST:PORT
	Code    joincode.Code
	Name    string           // of the node that the laptop will be
	Replace bool             // it takes the place of the node that has the name
	Version string           // of this program
	Now     func() time.Time // nil: time.Now
}

// Joined is an orchestrator that has the code, and its token.
type Joined struct {
	Orchestrator string // URL
	Token        identity.Token
	Version      string        // of the orchestrator
	Ahead        time.Duration // of this machine's clock, with some milliseconds of the call
	shown        tls.ConnectionState
}

// joinLimit is how long joining may take, the enrolment not counted.
const joinLimit = 30 * time.Second

// joinURL is the URL of an orchestrator at HOST:PORT; a zone is escaped in it (RFC 6874).
func joinURL(address string) string { return (&url.URL{Scheme: "https", Host: address}).String() }

// Exchange shows the orchestrator at the address that this laptop has the code, and gets a
// token from one that has it, too. Nobody else learns either. Errors are for people.
func (j Join) Exchange(ctx context.Context) (*Joined, error) {
	if j.Now == nil {
		j.Now = time.Now
	}
	base := joinURL(j.Address)
	var seen shownCertificate
	t := transport(seen.tls(j.Now))
	defer t.CloseIdleConnections()
	c := linktrialv1connect.NewJoinServiceClient(&http.Client{Transport: t}, base, connect.WithGRPC())
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	answer, err := j.exchange(ctx, c, &seen)
	if err != nil {
		return nil, joinFailure(base, err)
	}
	if answer.Refusal != "" {
		return nil, fmt.Errorf("the orchestrator at %s does not let this laptop join: %s", base, answer.Refusal)
	}
	out := &Joined{Orchestrator: base, Version: answer.Version, shown: seen.get()}
	if out.Token, err = identity.ParseToken(answer.Token); err != nil {
		return nil, fmt.Errorf("the orchestrator's answer: %w", err)
	}
	if err := answer.Time.CheckValid(); err != nil {
		return nil, fmt.Errorf("the orchestrator's answer: its time: %w", err)
	}
	out.Ahead = j.Now().Sub(answer.Time.AsTime())
	return out, nil
}

func (j Join) exchange(ctx context.Context, c linktrialv1connect.JoinServiceClient, seen *shownCertificate) (*linktrialv1.JoinAnswer, error) {
	x, err := joinexchange.NewJoiner(j.Code)
	if err != nil {
		return nil, err
	}
	begun, err := c.BeginJoin(ctx, connect.NewRequest(&linktrialv1.BeginJoinRequest{Point: x.Point()}))
	if err != nil {
		return nil, err
	}
	if len(begun.Msg.Exchange) != joinexchange.IDBytes {
		return nil, fmt.Errorf("the orchestrator's answer: a number of %d bytes, expected %d", len(begun.Msg.Exchange), joinexchange.IDBytes)
	}
	s, err := x.Finish(joinexchange.Binding{ID: [joinexchange.IDBytes]byte(begun.Msg.Exchange), Certificate: seen.hash()}, begun.Msg.Point)
	if err != nil {
		return nil, fmt.Errorf("the orchestrator's answer: %w", err)
	}
	question, err := proto.Marshal(&linktrialv1.JoinQuestion{Name: j.Name, Replace: j.Replace, Version: j.Version, Protocol: agentprotocol.Number})
	if err != nil {
		return nil, err
	}
	done, err := c.FinishJoin(ctx, connect.NewRequest(&linktrialv1.FinishJoinRequest{Exchange: begun.Msg.Exchange, Confirmation: s.Confirmation(), Sealed: s.Seal(question)}))
	if err != nil {
		return nil, err
	}
	if !s.Confirmed(done.Msg.Confirmation) {
		return nil, errOtherCode
	}
	plain, err := s.Open(done.Msg.Sealed)
	if err != nil {
		return nil, fmt.Errorf("the orchestrator's answer: %w", err)
	}
	answer := new(linktrialv1.JoinAnswer)
	if err := proto.Unmarshal(plain, answer); err != nil {
		return nil, fmt.Errorf("the orchestrator's answer: %w", err)
	}
	return answer, nil
}

var errOtherCode = errors.New("what answers does not know the code: somebody may intercept the connection. Nothing was enrolled; close the code ('linktrial node code --close') before you try again")

// joinFailure says what a person at the laptop can do.
func joinFailure(base string, err error) error {
	var ce *connect.Error
	if errors.As(err, &ce) {
		switch ce.Code() {
		case connect.CodePermissionDenied, connect.CodeResourceExhausted, connect.CodeFailedPrecondition, connect.CodeInvalidArgument:
			return fmt.Errorf("the orchestrator at %s: %s", base, ce.Message())
		case connect.CodeUnimplemented:
			return fmt.Errorf("what answers at %s has no joining by a code: it has an older version than this laptop, or is no orchestrator", base)
		}
	}
	if x := identity.Explain(base, err); identity.IsTransport(x) {
		return fmt.Errorf("joining by a code takes TLS: %w", x)
	}
	if errors.As(err, &ce) {
		err = ce.Unwrap() // its code has no place in the sentence
	}
	return fmt.Errorf("join at %s: %w", base, err)
}

// CheckTime returns an [identity.TimeError] where, by a clock, the orchestrator's
// certificate is not valid yet or no longer; [identity.ErrOtherAuthority] where it is not
// of the token's authority.
func (j *Joined) CheckTime(now time.Time) error {
	for _, cert := range j.shown.PeerCertificates[1:] {
		if identity.Fingerprint(cert) == j.Token.Fingerprint {
			return identity.VerifyOrchestrator(j.shown, cert, now)
		}
	}
	return identity.ErrOtherAuthority
}

// shownCertificate is the first certificate that the orchestrator shows. A connection with
// another one is refused: all messages of an exchange are bound to one.
type shownCertificate struct {
	mu sync.Mutex
	cs tls.ConnectionState
}

func (s *shownCertificate) tls(now func() time.Time) *tls.Config {
	c := clientTLS(nil, now)
	// Whose it is, the code shows.
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case len(cs.PeerCertificates) == 0:
			return identity.ErrOtherAuthority
		case len(s.cs.PeerCertificates) == 0:
			s.cs = cs
		case !s.leaf().Equal(cs.PeerCertificates[0]):
			return errors.New("the orchestrator changed its certificate: run 'linktrial join' again")
		}
		return nil
	}
	return c
}

func (s *shownCertificate) get() tls.ConnectionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cs
}

func (s *shownCertificate) leaf() *x509.Certificate { return s.cs.PeerCertificates[0] }

func (s *shownCertificate) hash() [32]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return identity.Fingerprint(s.leaf())
}

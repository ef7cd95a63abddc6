package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/user"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/identity"
)

// HTTP returns a client that speaks HTTP/2 also without TLS, as the orchestrator does
// on the loopback, trusts the authorities of [Trusted], and says on standard error when
// an orchestrator that was called does not answer.
func HTTP() *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	p.SetHTTP2(true)
	return &http.Client{Transport: listening(withCredentials(&http.Transport{Protocols: &p, DialTLSContext: Trusted.dial}))}
}

// New returns a client for the calls of people. Within one machine, answers are not
// compressed: a large file of results takes a fifth of its time for that.
func New(base string) linktrialv1connect.OperatorServiceClient { return newAt(base, HTTP()) }

func newAt(base string, h *http.Client) linktrialv1connect.OperatorServiceClient {
	options := []connect.ClientOption{Options()}
	if u, err := url.Parse(base); err == nil && ownMachine(u) {
		options = append(options, connect.WithAcceptCompression("gzip", nil, nil))
	}
	return linktrialv1connect.NewOperatorServiceClient(h, base, options...)
}

// NewAgent returns a client for the calls of the virtual-time lab's nodes.
func NewAgent(base string) linktrialv1connect.AgentServiceClient {
	return linktrialv1connect.NewAgentServiceClient(HTTP(), base, connect.WithGRPC())
}

// Error returns the error of a failed call with what to do about it.
func Error(base string, err error) error {
	if err == nil {
		return nil
	}
	if connect.CodeOf(err) == connect.CodeCanceled && !connect.IsWireError(err) {
		return errors.New("interrupted before the orchestrator had answered")
	}
	if absent(err) {
		return fmt.Errorf("no orchestrator answers at %s: start one with 'linktrial serve', or name another with --orchestrator", base)
	}
	var un *untrustedError
	if errors.As(err, &un) {
		return un
	}
	if x := identity.Explain(base, err); identity.IsTransport(x) {
		return x
	}
	var ce *connect.Error
	if errors.As(err, &ce) {
		if !connect.IsWireError(err) && broken(ce) {
			return fmt.Errorf("the orchestrator at %s ended the connection without an answer: it was stopped, or the network between was cut; nothing is lost, the nodes continue and keep what they measure", base)
		}
		if ce.Code() == connect.CodeUnauthenticated {
			return fmt.Errorf("%s (linktrial login)", ce.Message())
		}
		return errors.New(ce.Message())
	}
	return err
}

// broken reports whether an error, which is not the orchestrator's answer, means that
// the connection ended: its texts, such as "unexpected EOF", are those of libraries.
// What TLS has to say is for people.
func broken(ce *connect.Error) bool {
	switch ce.Code() {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeUnknown, connect.CodeInternal:
		return !strings.Contains(ce.Message(), "tls:") && !strings.Contains(ce.Message(), "x509:")
	}
	return false
}

// absent reports whether the error means that nothing listens at the address.
func absent(err error) bool {
	var op *net.OpError
	return connect.CodeOf(err) == connect.CodeUnavailable && errors.As(err, &op) && op.Op == "dial"
}

// Reachable reports whether an orchestrator answers at the URL.
func Reachable(ctx context.Context, base string) (bool, error) {
	if _, err := url.Parse(base); err != nil {
		return false, fmt.Errorf("--orchestrator: %w", err)
	}
	return Answers(ctx, New(base))
}

// Answers reports whether an orchestrator answers the client.
func Answers(ctx context.Context, c linktrialv1connect.OperatorServiceClient) (bool, error) {
	_, err := c.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 1}))
	if err != nil && absent(err) {
		return false, nil
	}
	return err == nil, err
}

// UserName returns the name of this machine's user, for the record of an orchestrator
// without login.
func UserName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return cmp.Or(u.Name, u.Username)
}

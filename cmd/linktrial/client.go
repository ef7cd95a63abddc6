package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/identity"
)

// newHTTP speaks HTTP/2 also without TLS, which the orchestrator offers on the
// loopback, and trusts the authorities that [peopleTrust] names.
func newHTTP() *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	p.SetHTTP2(true)
	return &http.Client{Transport: withCredentials(&http.Transport{Protocols: &p, DialTLSContext: peopleTrust.dial})}
}

// newClient speaks for the person at the command line.
func newClient(base string) linktrialv1connect.OperatorServiceClient {
	return linktrialv1connect.NewOperatorServiceClient(newHTTP(), base, connect.WithGRPC())
}

// newAgentClient speaks for the nodes of the virtual-time lab.
func newAgentClient(base string) linktrialv1connect.AgentServiceClient {
	return linktrialv1connect.NewAgentServiceClient(newHTTP(), base, connect.WithGRPC())
}

// rpcError puts a failed call into a sentence that says what to do.
func rpcError(base string, err error) error {
	if err == nil {
		return nil
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
		if ce.Code() == connect.CodeUnauthenticated {
			return fmt.Errorf("%s (linktrial login)", ce.Message())
		}
		return errors.New(ce.Message())
	}
	return err
}

// absent says that nobody listens there.
func absent(err error) bool {
	var op *net.OpError
	return connect.CodeOf(err) == connect.CodeUnavailable && errors.As(err, &op) && op.Op == "dial"
}

// reachable says whether an orchestrator answers at the URL.
func reachable(ctx context.Context, base string) (bool, error) {
	if _, err := url.Parse(base); err != nil {
		return false, fmt.Errorf("--orchestrator: %w", err)
	}
	_, err := newClient(base).ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 1}))
	if err != nil && absent(err) {
		return false, nil
	}
	return err == nil, err
}

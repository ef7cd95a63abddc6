package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
)

// script answers each call with the next error, and then with success.
type script struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
	errs  []error
	calls int
}

func (s *script) ListRuns(context.Context, *connect.Request[linktrialv1.ListRunsRequest]) (*connect.Response[linktrialv1.ListRunsResponse], error) {
	s.calls++
	if s.calls <= len(s.errs) {
		return nil, s.errs[s.calls-1]
	}
	return connect.NewResponse(&linktrialv1.ListRunsResponse{}), nil
}

func (s *script) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(s))
	srv := httptest.NewUnstartedServer(mux)
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = &p
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func listRuns(ctx context.Context, base string) error {
	_, err := New(base).ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{}))
	return err
}

// A call that waits is repeated while the orchestrator cannot answer, and says so once.
func TestWaiting(t *testing.T) {
	away := connect.NewError(connect.CodeUnavailable, errors.New("the database does not answer"))
	s := &script{errs: []error{away, away}}
	base := s.serve(t)
	var said []string
	ctx := Waiting(t.Context(), NewOutage(base, func(line string) { said = append(said, line) }))
	if err := listRuns(ctx, base); err != nil || s.calls != 3 {
		t.Errorf("%d calls, %v", s.calls, err)
	}
	if len(said) != 2 || !strings.Contains(said[0], ": the database does not answer; this command continues when it answers again") ||
		!strings.HasPrefix(said[0], "since ") || !strings.HasPrefix(said[1], "the orchestrator is back after 1 s") {
		t.Errorf("said %q", said)
	}
	// Without waiting, and for answers that stay the same, the first answer counts.
	s.calls = 1
	if err := listRuns(t.Context(), base); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("without waiting: %v", err)
	}
	s.calls, s.errs = 0, []error{connect.NewError(connect.CodeNotFound, errors.New("no such run"))}
	if err := listRuns(ctx, base); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("not found: %v", err)
	}
	if len(said) != 2 {
		t.Errorf("said %q", said)
	}
}

// Waiting for an orchestrator that is gone ends with its context, and what is down is said.
func TestWaitingEnds(t *testing.T) {
	s := &script{}
	base := s.serve(t)
	gone := strings.Replace(base, "127.0.0.1", "127.0.0.2", 1) // nothing listens there
	ctx, cancel := context.WithCancel(t.Context())
	var said []string
	ctx = Waiting(ctx, NewOutage(gone, func(line string) { said = append(said, line); cancel() }))
	if err := listRuns(ctx, gone); err == nil {
		t.Error("no error")
	}
	if len(said) != 1 || !strings.Contains(said[0], "no contact with the orchestrator at "+gone+"; nothing is lost") {
		t.Errorf("said %q", said)
	}
}

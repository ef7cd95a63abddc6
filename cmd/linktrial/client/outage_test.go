package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	o := NewOutage(base, func(line string) { said = append(said, line) })
	began := time.Now()
	o.now = func() time.Time { return began.Add(time.Duration(s.calls) * 5 * time.Second) } // each call takes 5 s
	ctx := Waiting(t.Context(), o)
	if err := listRuns(ctx, base); err != nil || s.calls != 3 {
		t.Errorf("%d calls, %v", s.calls, err)
	}
	if len(said) != 2 || !strings.Contains(said[0], ": the database does not answer; this command continues when it answers again") ||
		!strings.HasPrefix(said[0], "since ") || !strings.HasPrefix(said[1], "the orchestrator is back after 10 s;") {
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

// A command whose call is not answered says since when, what it waits for, and when that is
// over; one whose answer takes long says nothing.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		health http.HandlerFunc
		want   []string
	}{
		"frozen": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"does not answer; nothing is lost: the nodes continue", "the orchestrator is back after"}},
		"its database": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		}, []string{": the database does not answer; this command waits for its answer", "the orchestrator is back after"}},
		"at work":            {func(http.ResponseWriter, *http.Request) {}, nil},
		"at work, and older": {http.NotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			asked, answer := make(chan struct{}, 100), make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/healthz" {
					<-answer
					_, _ = w.Write([]byte("here"))
					return
				}
				c.health(w, r)
				asked <- struct{}{}
			}))
			t.Cleanup(srv.Close)
			said := make(chan string, 100)
			l := listening(http.DefaultTransport)
			l.silentFor, l.healthFor = 20*time.Millisecond, 50*time.Millisecond
			if name != "frozen" { // a busy machine may take its time for the answer
				l.healthFor = time.Minute
			}
			ctx := Saying(t.Context(), NewOutage(srv.URL, func(line string) { said <- line }))
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/call", nil)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				res, err := l.RoundTrip(req)
				if err == nil {
					_, _ = io.ReadAll(res.Body)
					err = res.Body.Close()
				}
				done <- err
			}()
			var lines []string
			if len(c.want) > 0 {
				lines = append(lines, <-said)
			} else {
				<-asked
				<-asked
			}
			close(answer)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for close(said); ; {
				line, more := <-said
				if !more {
					break
				}
				lines = append(lines, line)
			}
			if len(lines) != len(c.want) {
				t.Fatalf("said %q", lines)
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("said %q, expected %q", lines[i], want)
				}
			}
		})
	}
}

// A command that waits for a database that does not answer asks seldom, and soon at first.
func TestRepeatIsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var at []time.Duration
		began := time.Now()
		err := Repeat(Waiting(ctx, NewOutage("http://here", func(string) {})), func() error {
			at = append(at, time.Since(began))
			return connect.NewError(connect.CodeUnavailable, errors.New("the database does not answer"))
		})
		if connect.CodeOf(err) != connect.CodeUnavailable || len(at) > 33 || at[1] != askAgain {
			t.Errorf("%d calls in a minute, the second after %s; %v", len(at), at[1], err)
		}
	})
}

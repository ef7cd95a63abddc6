package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"linktrial/agents/session"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// asker is an orchestrator that wants a preflight and is an hour ahead.
type asker struct {
	linktrialv1connect.UnimplementedAgentServiceHandler
	mu      sync.Mutex
	wanted  *linktrialv1.PreflightRequest
	polls   []*linktrialv1.PollRequest
	reports []*linktrialv1.ReportPreflightRequest
	refuse  int // reports to turn away
}

func (o *asker) Register(context.Context, *connect.Request[linktrialv1.RegisterRequest]) (*connect.Response[linktrialv1.RegisterResponse], error) {
	return connect.NewResponse(&linktrialv1.RegisterResponse{Protocol: agentprotocol.Number, SigningKeys: []*linktrialv1.SigningKey{shown(signature.Endorsed{Key: signature.PublicOf(signingKey)})}}), nil
}

func (o *asker) Poll(ctx context.Context, r *connect.Request[linktrialv1.PollRequest]) (*connect.Response[linktrialv1.PollResponse], error) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.polls = append(o.polls, r.Msg)
	as := assignmentOf(r.Msg)
	as.Preflight = o.wanted
	return connect.NewResponse(&linktrialv1.PollResponse{Revision: 1, Assignments: []*linktrialv1.SignedAssignment{seal(signingKey, as)}}), nil
}

func (o *asker) Clock(context.Context, *connect.Request[linktrialv1.ClockRequest]) (*connect.Response[linktrialv1.ClockResponse], error) {
	now := time.Now().Add(time.Hour).UnixNano()
	return connect.NewResponse(&linktrialv1.ClockResponse{ReceivedUnixNs: now, SentUnixNs: now}), nil
}

func (o *asker) ReportPreflight(_ context.Context, r *connect.Request[linktrialv1.ReportPreflightRequest]) (*connect.Response[linktrialv1.ReportPreflightResponse], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse > 0 {
		o.refuse--
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("starting"))
	}
	o.reports = append(o.reports, r.Msg)
	return connect.NewResponse(&linktrialv1.ReportPreflightResponse{}), nil
}

func (o *asker) serve(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(o))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func (o *asker) want(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wanted = &linktrialv1.PreflightRequest{Id: id}
}

// report waits for the n-th one.
func (o *asker) report(t *testing.T, n int) *linktrialv1.ReportPreflightRequest {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		o.mu.Lock()
		if len(o.reports) >= n {
			defer o.mu.Unlock()
			return o.reports[n-1]
		}
		o.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("report %d does not come", n)
		}
	}
}

func TestPreflightWhenWanted(t *testing.T) {
	o := &asker{refuse: 1}
	url := o.serve(t)
	cfg := Config{Name: "client", Role: radio.RoleClient, Orchestrator: url, StateDir: t.TempDir(), DriversDir: drivers, Device: "none0", RadioAddress: "10.77.0.1", Trust: trust.Config{Pin: true}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	o.want("one")
	r := o.report(t, 1)
	if r.Name != "client" || r.Id != "one" {
		t.Errorf("report of %s for %s", r.Name, r.Id)
	}
	found := map[string]linktrialv1.CheckState{}
	for _, c := range r.Checks {
		found[c.Kind] = c.State
	}
	for kind, want := range map[string]linktrialv1.CheckState{"radio": linktrialv1.CheckState_CHECK_STATE_FAILED, "clock": linktrialv1.CheckState_CHECK_STATE_FAILED, "drivers": linktrialv1.CheckState_CHECK_STATE_OK} {
		if found[kind] != want {
			t.Errorf("%s is %s, expected %s", kind, found[kind], want)
		}
	}
	// The same preflight is wanted in further polls, and is not carried out twice; another one is.
	polls := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.polls)
	}
	before := polls()
	eventually(t, "three more polls", func() bool { return polls() >= before+3 })
	o.want("two")
	if r := o.report(t, 2); r.Id != "two" {
		t.Errorf("the second report is for %s", r.Id)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.polls[len(o.polls)-1]
	if off := time.Duration(last.ClockOffsetNs) - time.Hour; off.Abs() > time.Minute || last.ClockErrorNs <= 0 {
		t.Errorf("a poll tells a clock offset of %d ± %d ns, expected about an hour", last.ClockOffsetNs, last.ClockErrorNs)
	}
}

// What a run uses is left alone.
func TestNoPreflightDuringARun(t *testing.T) {
	o := &asker{}
	s, err := session.New(session.Config{URL: o.serve(t), Name: "client", Incarnation: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := &agent{node: node{cfg: Config{Name: "client"}, slot: make(chan struct{}, 1), session: s}}
	a.slot <- struct{}{} // a run executes
	a.preflight(t.Context(), &linktrialv1.Assignment{Preflight: &linktrialv1.PreflightRequest{Id: "one"}})
	a.running.Wait()
	for _, c := range o.report(t, 1).Checks {
		if c.State != linktrialv1.CheckState_CHECK_STATE_UNSPECIFIED {
			t.Errorf("%s was looked at: %s", c.Kind, c.Found)
		}
	}
}

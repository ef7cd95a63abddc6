package session

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
)

// versioned answers registrations as an orchestrator of some protocol.
type versioned struct {
	*orchestrator
	protocol      atomic.Int32
	registrations atomic.Int32
}

func (v *versioned) Register(ctx context.Context, r *connect.Request[linktrialv1.RegisterRequest]) (*connect.Response[linktrialv1.RegisterResponse], error) {
	v.registrations.Add(1)
	if _, err := v.orchestrator.Register(ctx, r); err != nil {
		return nil, err
	}
	return connect.NewResponse(&linktrialv1.RegisterResponse{OrchestratorVersion: "v9", Protocol: v.protocol.Load()}), nil
}

// logLines is a log that a test reads while it is written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// An agent that meets a newer orchestrator says once which versions these are
// and what to do, follows nothing, and goes on when the versions go together.
func TestNewerOrchestrator(t *testing.T) {
	v := &versioned{orchestrator: newOrchestrator(t)}
	v.protocol.Store(99)
	v.assign(&linktrialv1.SignedAssignment{RefusedRunId: "r1"})
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(v))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	log := &logLines{}
	s, err := New(Config{URL: server.URL, Name: "n1", Incarnation: "i1", Version: "v8", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var handled atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, func() *linktrialv1.RegisterRequest { return &linktrialv1.RegisterRequest{} }, func(Answer) bool { handled.Add(1); return false })
	}()
	eventually(t, "the node keeps trying", func() bool { return v.registrations.Load() >= 3 })
	const want = "the orchestrator's version v9 speaks protocol 99 and this agent's version v8 protocol 2: install the same version on both"
	if n := strings.Count(log.String(), want); n != 1 || handled.Load() != 0 {
		t.Errorf("logged %d times, %d answers applied: %s", n, handled.Load(), log)
	}
	v.protocol.Store(0) // an older one, which tells no number and signs sheets alone
	const older = "the orchestrator's version v9 speaks protocol 1 and this agent's version v8 protocol 2: install the same version on both"
	eventually(t, "the node says that the orchestrator is too old", func() bool { return strings.Contains(log.String(), older) })
	if handled.Load() != 0 {
		t.Error("an answer of the older orchestrator is applied")
	}
	v.protocol.Store(agentprotocol.Number)
	eventually(t, "the node works with an orchestrator of its protocol", func() bool { return handled.Load() > 0 })
	cancel()
	<-ended
	if strings.Count(log.String(), "reached again") != 1 {
		t.Errorf("the log does not say that it goes on: %s", log)
	}
}

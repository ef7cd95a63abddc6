package orchestrator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The error repeats what the orchestrator answers, with TLS and without, and the
// first answer is final.
func TestHealth(t *testing.T) {
	var asked atomic.Int32
	healthyHandler := func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); _, _ = w.Write([]byte("ok\n")) }
	unhealthy := func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
	}
	for name, tt := range map[string]struct {
		start func(http.Handler) *httptest.Server
		says  http.HandlerFunc
		err   string
	}{
		"healthy":             {httptest.NewServer, healthyHandler, ""},
		"healthy, with TLS":   {httptest.NewTLSServer, healthyHandler, ""},
		"unhealthy":           {httptest.NewServer, unhealthy, "the orchestrator answers 503 Service Unavailable: the database does not answer"},
		"unhealthy, with TLS": {httptest.NewTLSServer, unhealthy, "the orchestrator answers 503 Service Unavailable: the database does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			s := tt.start(tt.says)
			defer s.Close()
			err := healthy(t.Context(), s.Listener.Addr().String())
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.err)
			}
			require.Equal(t, int32(1), asked.Load())
		})
	}
}

func TestHealthWithoutOrchestrator(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.Listener.Addr().String()
	s.Close()
	require.ErrorContains(t, healthy(t.Context(), address), "no orchestrator answers")

	end := make(chan struct{})
	// It does not answer when the caller hangs up, either: on a busy machine that answer can
	// arrive before the connection is closed.
	hung := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer hung.Close()
	defer close(end)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := healthy(ctx, strings.TrimPrefix(hung.URL, "https://"))
	require.ErrorContains(t, err, "does not answer within")
}

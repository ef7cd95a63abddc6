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

// What the orchestrator says is told as it said it, with TLS and without, and
// one that has answered is asked nothing more.
func TestHealth(t *testing.T) {
	var asked atomic.Int32
	well := func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); _, _ = w.Write([]byte("ok\n")) }
	ill := func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
	}
	for name, tt := range map[string]struct {
		start func(http.Handler) *httptest.Server
		says  http.HandlerFunc
		err   string
	}{
		"well":               {httptest.NewServer, well, ""},
		"well, with TLS":     {httptest.NewTLSServer, well, ""},
		"not well":           {httptest.NewServer, ill, "the orchestrator says 503 Service Unavailable: the database does not answer"},
		"not well, with TLS": {httptest.NewTLSServer, ill, "the orchestrator says 503 Service Unavailable: the database does not answer"},
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

func TestHealthOfNobody(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.Listener.Addr().String()
	s.Close()
	require.ErrorContains(t, healthy(t.Context(), address), "no orchestrator answers")

	end := make(chan struct{})
	hung := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer hung.Close()
	defer close(end)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := healthy(ctx, strings.TrimPrefix(hung.URL, "https://"))
	require.ErrorContains(t, err, "does not answer within")
}

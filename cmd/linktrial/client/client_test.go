package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// Who types a command gets no text of a library where the connection breaks.
func TestErrorOfABrokenConnection(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = &p
	srv.Start()
	defer srv.Close()
	_, err := New(srv.URL).ListRuns(t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{}))
	require.Error(t, err)
	t.Log(err)
	err = Error(srv.URL, err)
	require.ErrorContains(t, err, "the orchestrator at "+srv.URL+" ended the connection without an answer")
	require.NotRegexp(t, regexp.MustCompile(`(?i)EOF|stream|http2|rpc|RST`), err.Error())
}

// Nor where somebody interrupts a command that waits.
func TestErrorOfAnInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = &p
	srv.Start()
	defer srv.Close()
	_, err := New(srv.URL).ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{}))
	require.EqualError(t, Error(srv.URL, err), "interrupted before the orchestrator had answered")
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Within one machine nothing is compressed; over a network it is.
func TestCompression(t *testing.T) {
	for base, want := range map[string]string{"http://127.0.0.1:7700": "", "http://localhost:7700": "", "https://192.0.2.1:7700": "gzip"} {
		asked := ""
		c := newAt(base, &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked = r.Header.Get("Grpc-Accept-Encoding")
			return nil, errors.New("nobody is there")
		})})
		_, err := c.ListNodes(t.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		require.Error(t, err)
		require.Equal(t, want, asked, base)
	}
}

package client

import (
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

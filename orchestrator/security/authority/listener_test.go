package authority

import (
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/liveness"
	"linktrial/orchestrator/security/admission"
)

// How long a connection has been silent is known through the listener that
// tells off those who speak without TLS.
func TestTellPlainHidesNoConnection(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := TellPlain(inner, admission.NewHosts(nil, nil, slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler))
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	here, err := l.Accept()
	require.NoError(t, err)
	defer here.Close()
	_, ok := liveness.SinceContact(liveness.WithConn(t.Context(), here))
	require.True(t, ok)
}

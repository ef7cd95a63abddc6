package people

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/identity"
	"linktrial/orchestrator/security/authority"
)

// The command line accepts an orchestrator's certificate only when its authority is
// trusted, in any of four ways; the error says how.
func TestTrust(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	shown := identity.FormatFingerprint(identity.Fingerprint(s.Certificate()))
	file := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	get := func(tr client.Trust) error {
		old := client.Trusted
		client.Trusted = tr
		defer func() { client.Trusted = old }()
		h := client.HTTP()
		defer h.CloseIdleConnections()
		res, err := h.Get(s.URL)
		if err != nil {
			return client.Error(s.URL, err)
		}
		if res.ProtoMajor != 2 {
			t.Errorf("protocol %s", res.Proto)
		}
		return res.Body.Close()
	}
	command := func(args ...string) error {
		cmd := newTrust(&setting.Settings{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{s.URL}, args...))
		return cmd.ExecuteContext(t.Context())
	}
	stranger := client.Trust{Data: t.TempDir()}

	err := get(stranger)
	require.ErrorContains(t, err, "signed by an authority that is not trusted here, with fingerprint "+shown)
	require.ErrorContains(t, err, "linktrial trust "+s.URL)

	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, file, 0o644))
	require.NoError(t, get(client.Trust{CAFile: ca, Data: stranger.Data}))
	require.ErrorContains(t, get(client.Trust{CAFile: ca + "x", Data: stranger.Data}), "--ca:")
	require.NoError(t, os.WriteFile(ca, []byte("x"), 0o644))
	require.ErrorContains(t, get(client.Trust{CAFile: ca, Data: stranger.Data}), "expected a CERTIFICATE in PEM")

	data := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(data, authority.Folder), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(data, authority.Folder, "ca.crt"), file, 0o644))
	require.NoError(t, get(client.Trust{Data: data}), "on the orchestrator's own machine")

	require.ErrorContains(t, command("--fingerprint", strings.Repeat("0", 64)), "this is not the orchestrator that you mean")
	require.ErrorContains(t, command("--fingerprint", "x"), "expected 64 hex digits")
	require.Error(t, get(stranger), "nothing was kept")
	require.NoError(t, command("--fingerprint", shown))
	require.NoError(t, get(stranger))
	plain := newTrust(&setting.Settings{})
	plain.SilenceErrors, plain.SilenceUsage = true, true
	plain.SetArgs([]string{"http://127.0.0.1:1"})
	require.ErrorContains(t, plain.ExecuteContext(t.Context()), "begins with https://")
}

package access_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
)

const viaLocal = "root on the orchestrator's machine"

func (h *house) localToken() string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.data, access.LocalTokenFile))
	require.NoError(h.t, err)
	return strings.TrimSpace(string(b))
}

// Who can read the data folder does what takes an admin, before there is one and after.
func TestLocalToken(t *testing.T) {
	h := build(t, nil)
	st, err := os.Stat(filepath.Join(h.data, access.LocalTokenFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	local := h.withToken(h.localToken())
	_, err = local.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{}))
	require.NoError(t, err)
	h.people()
	_, err = local.ListUsers(t.Context(), connect.NewRequest(&linktrialv1.ListUsersRequest{}))
	require.NoError(t, err)
	_, err = local.control.PauseRun(t.Context(), connect.NewRequest(&linktrialv1.PauseRunRequest{RunId: "r", By: "vera"}))
	require.ErrorContains(t, err, "by "+viaLocal)
	entries, err := local.ListAudit(t.Context(), connect.NewRequest(&linktrialv1.ListAuditRequest{Limit: 1}))
	require.NoError(t, err)
	require.Equal(t, viaLocal, entries.Msg.Entries[0].Via)
	require.Equal(t, "ControlService.PauseRun", entries.Msg.Entries[0].Action)

	_, err = local.CreateToken(t.Context(), connect.NewRequest(&linktrialv1.CreateTokenRequest{Name: "x"}))
	fails(t, err, connect.CodePermissionDenied, "the account of whoever calls", viaLocal)
	_, err = local.ChangePassword(t.Context(), connect.NewRequest(&linktrialv1.ChangePasswordRequest{Current: "a", Password: password}))
	fails(t, err, connect.CodePermissionDenied, "the account of whoever calls")
	_, err = local.Logout(t.Context(), connect.NewRequest(&linktrialv1.LogoutRequest{}))
	fails(t, err, connect.CodePermissionDenied, "the account of whoever calls")
}

// A token of another start is refused, and the file is gone when the orchestrator has ended.
func TestLocalTokenIsOfOneStart(t *testing.T) {
	h := build(t, nil)
	before := h.localToken()
	again, err := access.New(t.Context(), access.Config{Store: h.store, Required: true, DataDir: h.data, Cost: cheap})
	require.NoError(t, err)
	require.NotEqual(t, before, h.localToken())
	_, err = h.withToken(h.localToken()).operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{}))
	fails(t, err, connect.CodeUnauthenticated, "not the local token of the running orchestrator", access.LocalTokenFile)
	require.NoError(t, again.Close())
	require.NoFileExists(t, filepath.Join(h.data, access.LocalTokenFile))

	open, err := access.New(t.Context(), access.Config{Store: h.store, DataDir: h.data})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(h.data, access.LocalTokenFile), "nobody logs in")
	require.NoError(t, open.Close())
}

// The token is good for connections of the machine with itself alone.
func TestLocalTokenFromElsewhere(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct {
		remote, local string
		passes        bool
	}{
		{"127.0.0.1:5000", "127.0.0.1:7700", true},
		{"[::1]:5000", "[::1]:7700", true},
		{"192.0.2.1:5000", "192.0.2.1:7700", true},
		{"192.0.2.9:5000", "192.0.2.1:7700", false},
		{"[2001:db8::9]:5000", "[2001:db8::1]:7700", false},
		{"nonsense", "192.0.2.1:7700", false},
	} {
		reached := false
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { reached = true })
		local, err := net.ResolveTCPAddr("tcp", c.local)
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local)), http.MethodPost, "/linktrial.v1.NodeService/CreateNodeToken", strings.NewReader("{}"))
		r.RemoteAddr = c.remote
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+h.localToken())
		w := httptest.NewRecorder()
		h.a.Guard(mux).ServeHTTP(w, r)
		require.Equal(t, c.passes, reached, "%s: %s", c.remote, w.Body)
		if !c.passes {
			require.Equal(t, http.StatusUnauthorized, w.Code)
			require.Contains(t, w.Body.String(), "on the orchestrator's own machine")
		}
	}
}

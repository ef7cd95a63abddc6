package access_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/security/access"
)

// Where nobody logs in though other machines reach the orchestrator, what takes an
// admin elsewhere is done on its own machine.
func TestAdminsActsWithoutALogin(t *testing.T) {
	for name, x := range map[string]struct {
		open                bool
		remote, local, path string
		passes              bool
	}{
		"rotation from another machine":          {true, "192.0.2.9:5000", "192.0.2.1:7700", "/linktrial.v1.TrustService/RotateSigningKey", false},
		"approval from another machine":          {true, "192.0.2.9:5000", "192.0.2.1:7700", "/linktrial.v1.TrustService/ApproveDriver", false},
		"approval over IPv6":                     {true, "[2001:db8::9]:5000", "[2001:db8::1]:7700", "/linktrial.v1.TrustService/ApproveDriver", false},
		"procedure that nobody knows":            {true, "192.0.2.9:5000", "192.0.2.1:7700", "/linktrial.v1.TrustService/New", false},
		"plan from another machine":              {true, "192.0.2.9:5000", "192.0.2.1:7700", "/linktrial.v1.OperatorService/StartPlan", true},
		"node":                                   {true, "192.0.2.9:5000", "192.0.2.1:7700", "/linktrial.v1.AgentService/Register", true},
		"page":                                   {true, "192.0.2.9:5000", "192.0.2.1:7700", "/approvals", true},
		"rotation from the loopback":             {true, "127.0.0.1:5000", "127.0.0.1:7700", "/linktrial.v1.TrustService/RotateSigningKey", true},
		"rotation from the loopback, IPv6":       {true, "[::1]:5000", "[::1]:7700", "/linktrial.v1.TrustService/RotateSigningKey", true},
		"rotation from the machine's address":    {true, "192.0.2.1:5000", "192.0.2.1:7700", "/linktrial.v1.TrustService/RotateSigningKey", true},
		"rotation from its address, mapped":      {true, "[::ffff:192.0.2.1]:5000", "192.0.2.1:7700", "/linktrial.v1.TrustService/RotateSigningKey", true},
		"orchestrator on the loopback, any call": {false, "127.0.0.1:5000", "127.0.0.1:7700", "/linktrial.v1.TrustService/RotateSigningKey", true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := access.New(t.Context(), access.Config{OpenToNetwork: x.open})
			require.NoError(t, err)
			reached := false
			mux := http.NewServeMux()
			mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { reached = true })
			local, err := net.ResolveTCPAddr("tcp", x.local)
			require.NoError(t, err)
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local)), http.MethodPost, x.path, strings.NewReader("{}"))
			r.RemoteAddr = x.remote
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			a.Guard(mux).ServeHTTP(w, r)
			require.Equal(t, x.passes, reached, w.Body)
			if !x.passes {
				require.Equal(t, http.StatusForbidden, w.Code)
				require.Contains(t, w.Body.String(), "on the orchestrator's own machine")
			}
		})
	}
}

package machines

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/security/access"
)

// A node renews its certificate twenty times a day at most. What is refused is counted, and
// the node goes on with the certificate that it has.
func TestRenewalsOfADay(t *testing.T) {
	o := serve(t, nil)
	n, id := enrolled(t, o, "client")
	s, err := session.New(session.Config{URL: o.URL(), Name: "client", Version: "v-agent", Identity: id, Incarnation: "one"})
	require.NoError(t, err)
	defer s.Close()
	for range 19 { // the enrolment's certificate is the first
		o.clock.move(time.Minute)
		require.NoError(t, s.Renew(t.Context()))
	}
	kept := id.Expires()
	o.clock.move(time.Minute)
	says(t, s.Renew(t.Context()), connect.CodeInvalidArgument, "client has had 20 certificates within 24h0m0s")
	require.Equal(t, kept, id.Expires())
	require.Equal(t, kept, mustLoad(t, n).Expires())
	_, err = caller(t, o, id).Register(t.Context(), registration("client"))
	require.NoError(t, err, "the certificate stays good")
	require.Contains(t, metrics(t, o), `linktrial_over_bound_total{bound="certificates"} 1`)
	o.clock.move(day)
	require.NoError(t, s.Renew(t.Context()), "another day")
}

// metrics returns the orchestrator's metrics, as somebody gets them who is logged in.
func metrics(t *testing.T, o *orchestrator) string {
	t.Helper()
	setup, err := os.ReadFile(filepath.Join(o.cfg.DataDir, access.SetupFile))
	require.NoError(t, err)
	// Whose certificate it is does not matter here.
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer h.CloseIdleConnections()
	const password = "correct horse battery"
	people := linktrialv1connect.NewAccessServiceClient(h, o.URL())
	first := connect.NewRequest(&linktrialv1.AddUserRequest{Name: "anna", Role: linktrialv1.Role_ROLE_ADMIN, Password: password})
	first.Header().Set("Authorization", "Bearer "+strings.TrimSpace(string(setup)))
	_, err = people.AddUser(t.Context(), first)
	require.NoError(t, err)
	in, err := people.Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: "anna", Password: password, TokenName: "test"}))
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL()+"/metrics", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+in.Msg.Token)
	res, err := h.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, string(text))
	return string(text)
}

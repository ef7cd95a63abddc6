package server_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/signature"
	"linktrial/orchestrator/backup"
	"linktrial/orchestrator/report/audit"
	"linktrial/orchestrator/rpc/day"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// A day with a campaign is audited and exported, with a backup that can be restored; a
// director gets one without it, and a viewer none.
func TestDayIsClosed(t *testing.T) {
	url, data := storetest.URL(t), t.TempDir()
	s := serveAll(t, url, data, nil)
	g := newGround(t, s.clients)
	stop(t, s.server)
	s = serveAll(t, url, data, func(c *server.Config) { c.Login = true })
	tokens := withPeople(t, s)

	days := linktrialv1connect.NewDayServiceClient(s.http, s.base, connect.WithGRPC())
	closed := func(user string, backup bool) (last *linktrialv1.DayProgress, err error) {
		if backup {
			ask := connect.NewRequest(&linktrialv1.CloseDayWithBackupRequest{})
			ask.Header().Set("Authorization", "Bearer "+tokens[user])
			stream, err := days.CloseDayWithBackup(t.Context(), ask)
			require.NoError(t, err)
			for stream.Receive() {
				last = stream.Msg().Progress
			}
			return last, stream.Err()
		}
		ask := connect.NewRequest(&linktrialv1.CloseDayRequest{})
		ask.Header().Set("Authorization", "Bearer "+tokens[user])
		stream, err := days.CloseDay(t.Context(), ask)
		require.NoError(t, err)
		for stream.Receive() {
			last = stream.Msg().Progress
		}
		return last, stream.Err()
	}
	_, err := closed("vera", false)
	fails(t, err, connect.CodePermissionDenied, "vera is a viewer, and this takes a director")
	_, err = closed("dora", true)
	fails(t, err, connect.CodePermissionDenied, "dora is a director, and this takes an admin")
	m, err := closed("dora", false)
	require.NoError(t, err)
	require.Nil(t, m.Summary.Backup)
	m, err = closed("anna", true)
	require.NoError(t, err)
	require.Empty(t, m.Summary.Incomplete)
	require.Empty(t, m.Summary.Backup.Failure)
	require.Len(t, m.Summary.Campaigns, 1)
	require.Equal(t, g.campaign, m.Summary.Campaigns[0].Id)
	run := m.Summary.Campaigns[0].Runs[0]
	require.Empty(t, run.Failure)
	require.Positive(t, run.Passed)
	require.Equal(t, "completed", run.State)

	fetch := func(user string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+day.DownloadPath+"?key="+m.Key, http.NoBody)
		require.NoError(t, err)
		if user != "" {
			r.Header.Set("Authorization", "Bearer "+tokens[user])
		}
		res, err := s.http.Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, b
	}
	status, _ := fetch("")
	require.Equal(t, http.StatusUnauthorized, status)
	status, content := fetch("anna")
	require.Equal(t, http.StatusOK, status)
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	open := func(name string) []byte {
		in, err := z.Open("linktrial-day-" + m.Summary.Date + "/" + name)
		require.NoError(t, err)
		b, err := io.ReadAll(in)
		require.NoError(t, err)
		return b
	}
	// The audit in the archive has looked at the archive's own files.
	var reports []*audit.Report
	require.NoError(t, json.Unmarshal(open(g.campaign+"/audit.json"), &reports))
	require.Len(t, reports, 1)
	require.Equal(t, int(run.Findings), reports[0].Findings())
	exports := reports[0].Check(audit.Exports)
	require.Positive(t, exports.Objects)

	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	require.NoError(t, os.WriteFile(file, open("backup/linktrial-backup-"+m.Summary.Date+".tar.gz"), 0o600))
	to := t.TempDir()
	manifest, err := backup.Restore(t.Context(), file, backup.Source{DataDir: to, DatabaseURL: storetest.EmptyURL(t)}, backup.AcceptKeys(signature.NewKeys(), m.Summary.Backup.Fingerprint))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), manifest.Taken, time.Hour)

	log := connect.NewRequest(&linktrialv1.ListAuditRequest{Limit: 100})
	log.Header().Set("Authorization", "Bearer "+tokens["anna"])
	entries, err := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC()).ListAudit(t.Context(), log)
	require.NoError(t, err)
	var outcomes []string
	for _, e := range entries.Msg.Entries {
		if strings.HasPrefix(e.Action, "DayService.") {
			outcomes = append(outcomes, e.User+" "+strings.TrimPrefix(e.Action, "DayService.")+" "+e.Outcome)
		}
	}
	require.ElementsMatch(t, []string{"vera CloseDay refused", "dora CloseDayWithBackup refused", "dora CloseDay done", "anna CloseDayWithBackup done"}, outcomes)
}

// withPeople makes an admin, a director and a viewer, and logs them in.
func withPeople(t *testing.T, s *services) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	c := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC())
	const password = "correct horse battery"
	tokens := map[string]string{}
	by := strings.TrimSpace(string(b))
	for _, u := range []struct {
		name string
		role linktrialv1.Role
	}{{"anna", linktrialv1.Role_ROLE_ADMIN}, {"dora", linktrialv1.Role_ROLE_DIRECTOR}, {"vera", linktrialv1.Role_ROLE_VIEWER}} {
		add := connect.NewRequest(&linktrialv1.AddUserRequest{Name: u.name, Role: u.role, Password: password})
		add.Header().Set("Authorization", "Bearer "+by)
		_, err := c.AddUser(t.Context(), add)
		require.NoError(t, err)
		in, err := c.Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: u.name, Password: password, TokenName: "test"}))
		require.NoError(t, err)
		if tokens[u.name] = in.Msg.Token; by == strings.TrimSpace(string(b)) {
			by = in.Msg.Token
		}
	}
	return tokens
}

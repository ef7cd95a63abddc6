package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// post is a call as a program makes it, over HTTP/1.1.
func post(t *testing.T, base, path, token, kind string, body []byte) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	res, err := h.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

// An orchestrator on which people log in: without a login only agents may call,
// and the audit log has every call of an admin, to any service.
func TestCallsNeedALogin(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.Login = true })
	b, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	ctx := t.Context()
	people := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC())
	first := connect.NewRequest(&linktrialv1.AddUserRequest{Name: "anna", Role: linktrialv1.Role_ROLE_ADMIN, Password: "correct horse battery"})
	first.Header().Set("Authorization", "Bearer "+strings.TrimSpace(string(b)))
	_, err = people.AddUser(ctx, first)
	require.NoError(t, err)
	in, err := people.Login(ctx, connect.NewRequest(&linktrialv1.LoginRequest{User: "anna", Password: "correct horse battery", TokenName: "test"}))
	require.NoError(t, err)
	token := in.Msg.Token

	_, err = s.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	fails(t, err, connect.CodeUnauthenticated, "log in first")
	_, err = s.agent.Register(ctx, connect.NewRequest(&linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: "client", Role: "client", Emulated: true, Incarnation: "1"}))
	require.NoError(t, err, "agents do not log in")
	status, _ := post(t, s.base, "/linktrial.v1.OperatorService/ListNodes", token, "application/json", []byte("{}"))
	require.Equal(t, http.StatusOK, status)

	for token, want := range map[string]int{"": http.StatusUnauthorized, token: http.StatusNotFound} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/download?id=nosuch", http.NoBody)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := s.http.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, res.StatusCode)
	}

	called := map[string]bool{}
	protoregistry.GlobalFiles.RangeFilesByPackage("linktrial.v1", func(d protoreflect.FileDescriptor) bool {
		for i := range d.Services().Len() {
			svc := d.Services().Get(i)
			for j := range svc.Methods().Len() {
				m := svc.Methods().Get(j)
				action := string(svc.Name()) + "." + string(m.Name())
				if action == "AccessService.Logout" || m.IsStreamingServer() && m.Name() != "CheckProtocol" && m.Name() != "Results" && svc.Name() != "DayService" && svc.Name() != "EvidenceService" {
					continue // ends what the walk walks with; streams that go on
				}
				kind, body := "application/json", []byte("{}")
				if m.IsStreamingServer() {
					kind, body = "application/connect+json", append(binary.BigEndian.AppendUint32([]byte{0}, 2), body...)
				}
				path := "/" + string(svc.FullName()) + "/" + string(m.Name())
				status, text := post(t, s.base, path, "", kind, body)
				if status == http.StatusOK && strings.Contains(text, "log in first") {
					status = http.StatusUnauthorized // in a stream
				}
				status2, text2 := post(t, s.base, path, token, kind, body)
				require.NotContains(t, text2, "log in first", action)
				require.False(t, status2 == http.StatusNotFound && !strings.Contains(text2, `"code"`), "%s is not served: %s", action, text2)
				if status == http.StatusUnauthorized && strings.Contains(text, "log in first") {
					called[action] = true
				}
			}
		}
		return true
	})
	require.Greater(t, len(called), 50)
	for _, open := range []string{"AgentService.Poll", "AccessService.WhoAmI", "EnrolmentService.Enrol"} {
		require.False(t, called[open], open)
	}

	ask := connect.NewRequest(&linktrialv1.ListAuditRequest{Limit: 1000})
	ask.Header().Set("Authorization", "Bearer "+token)
	log, err := people.ListAudit(ctx, ask)
	require.NoError(t, err)
	logged := map[string]bool{}
	for _, e := range log.Msg.Entries {
		logged[e.Action] = true
		require.NotContains(t, e.Message, "was not reported", "%s: its service is mounted without the interceptor", e.Action)
	}
	for _, action := range []string{
		"OperatorService.StartPlan", "OperatorService.AbortCampaign", "ControlService.PauseRun", "ControlService.ExcludeAttempt", "ControlService.IncludeAttempt", "LibraryService.SavePlan", "LibraryService.DeletePlan",
		"DayService.CloseDay", "EvidenceService.Pack", "DayService.CloseDayWithBackup", "CatalogService.SaveTopology", "CatalogService.SaveProfile", "CatalogService.CheckProtocol", "FleetService.StartPreflight", "LabService.LabUp", "NodeService.CreateNodeToken", "NodeService.RevokeNode",
		"TrustService.ApproveDriver", "TrustService.RotateSigningKey", "AccessService.AddUser", "AccessService.Login", "AccessService.CreateToken",
	} {
		require.True(t, logged[action], "the log has no %s", action)
	}
	require.False(t, logged["OperatorService.ListRuns"], "what is only read is not logged")
}

// A command carries the name of the user who is logged in, whatever the message says.
func TestCommandsCarryTheUsersName(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.Login = true })
	b, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	status, text := post(t, s.base, "/linktrial.v1.AccessService/AddUser", strings.TrimSpace(string(b)), "application/json", []byte(`{"name":"anna","role":"ROLE_ADMIN","password":"correct horse battery"}`))
	require.Equal(t, http.StatusOK, status, text)
	people := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC())
	in, err := people.Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: "anna", Password: "correct horse battery", TokenName: "test"}))
	require.NoError(t, err)
	status, text = post(t, s.base, "/linktrial.v1.LibraryService/Schedule", in.Msg.Token, "application/json", fmt.Appendf(nil, `{"plan":"demo","at":%q,"by":"somebody else"}`, time.Now().Add(24*time.Hour).Format(time.RFC3339)))
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"by":"anna"`)
}

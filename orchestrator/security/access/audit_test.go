package access_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/auditlog"
)

func (h *house) audit(c *caller, ask *linktrialv1.ListAuditRequest) *linktrialv1.ListAuditResponse {
	h.t.Helper()
	res, err := c.ListAudit(h.t.Context(), connect.NewRequest(ask))
	require.NoError(h.t, err)
	return res.Msg
}

// line is an entry as a test reads it.
func line(e *linktrialv1.AuditEntry) string {
	return e.User + "|" + e.Via + "|" + e.Action + "|" + e.Detail + "|" + e.Outcome + "|" + e.Message
}

func TestAudit(t *testing.T) {
	h := build(t, nil)
	h.people()
	ctx := t.Context()
	anna, dirk, vera := h.login("anna"), h.login("dirk"), h.login("vera")
	from := h.audit(anna, &linktrialv1.ListAuditRequest{}).Entries[0].Id

	start := func(c *caller, file string) {
		_, _ = c.operator.StartPlan(ctx, connect.NewRequest(&linktrialv1.StartPlanRequest{File: file, Text: []byte("name: x\n"), Name: "the \"big\" one"}))
	}
	start(dirk, "quick.yaml")
	start(dirk, "wrong.yaml")
	start(vera, "quick.yaml")
	_, err := dirk.control.PauseRun(ctx, connect.NewRequest(&linktrialv1.PauseRunRequest{RunId: "c1-1", By: "the pope"}))
	fails(t, err, connect.CodeNotFound, "by dirk")
	_, err = h.as().try("vera", "not her password")
	require.Error(t, err)
	_, err = h.as().try("not her password", "vera")
	require.Error(t, err)
	_, err = anna.SetUserPassword(ctx, connect.NewRequest(&linktrialv1.SetUserPasswordRequest{Name: "vera", Password: "harbour violin seven"}))
	require.NoError(t, err)
	program := h.withToken(h.token(dirk, "night", 0).Text)
	start(program, "late.yaml")
	require.NoError(t, dirk.ask())
	_, err = dirk.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{}))
	fails(t, err, connect.CodeUnimplemented)
	_, err = dirk.Logout(ctx, connect.NewRequest(&linktrialv1.LogoutRequest{}))
	require.NoError(t, err)

	var got []string
	for _, e := range h.audit(anna, &linktrialv1.ListAuditRequest{}).Entries {
		if e.Id > from {
			require.Equal(t, "127.0.0.1", e.Address)
			got = append([]string{line(e)}, got...)
		}
	}
	require.Equal(t, []string{
		`dirk|session|OperatorService.StartPlan|file=quick.yaml text=8 B name="the 'big' one" campaign=c7|done|`,
		`dirk|session|OperatorService.StartPlan|file=wrong.yaml text=8 B name="the 'big' one"|refused|2 problems`,
		`vera|session|OperatorService.StartPlan||refused|vera is a viewer, and this takes a director`,
		`dirk|session|ControlService.PauseRun|run_id=c1-1|refused|by dirk`,
		`vera|password|AccessService.Login||refused|the name or the password is wrong`,
		`|password|AccessService.Login||refused|the name or the password is wrong`,
		`anna|session|AccessService.SetUserPassword|name=vera|done|`,
		`dirk|session|AccessService.CreateToken|name=night|done|`,
		`dirk|token night|OperatorService.StartPlan|file=late.yaml text=8 B name="the 'big' one" campaign=c7|done|`,
		`dirk|session|AccessService.Logout||done|`,
	}, got)
}

func TestAuditIsAsked(t *testing.T) {
	h := build(t, nil)
	h.people()
	anna := h.login("anna")
	h.clock.step(time.Hour)
	later := h.clock.now()
	h.login("vera")
	h.login("dirk")
	all := h.audit(anna, &linktrialv1.ListAuditRequest{})
	require.False(t, all.More)
	require.Len(t, all.Entries, 7)
	require.Greater(t, all.Entries[0].Id, all.Entries[1].Id, "newest first")
	require.Len(t, h.audit(anna, &linktrialv1.ListAuditRequest{Since: timestamppb.New(later)}).Entries, 2)
	require.Len(t, h.audit(anna, &linktrialv1.ListAuditRequest{User: "vera"}).Entries, 1)
	require.Len(t, h.audit(anna, &linktrialv1.ListAuditRequest{Action: "adduser"}).Entries, 3)
	require.Empty(t, h.audit(anna, &linktrialv1.ListAuditRequest{Outcome: "refused"}).Entries)
	page := h.audit(anna, &linktrialv1.ListAuditRequest{Limit: 4})
	require.True(t, page.More)
	rest := h.audit(anna, &linktrialv1.ListAuditRequest{Limit: 4, Before: page.Entries[3].Id})
	require.False(t, rest.More)
	require.Len(t, rest.Entries, 3)
	for _, bad := range []*linktrialv1.ListAuditRequest{{Limit: -1}, {Limit: 1001}, {Outcome: "great"}, {Since: &timestamppb.Timestamp{Nanos: -1}}} {
		_, err := anna.ListAudit(t.Context(), connect.NewRequest(bad))
		fails(t, err, connect.CodeInvalidArgument)
	}
}

// A flood of attempts is refused, and has an entry once a minute at most; the sum of the
// rest is written at the latest when the orchestrator stops.
func TestAuditOfGuessing(t *testing.T) {
	h := build(t, nil)
	h.people()
	anna := h.login("anna")
	before := len(h.audit(anna, &linktrialv1.ListAuditRequest{}).Entries)
	for range 50 {
		_, err := h.as().try("vera", "wrong password")
		require.Error(t, err)
	}
	got := h.audit(anna, &linktrialv1.ListAuditRequest{}).Entries
	require.Len(t, got, before+access.UserBurst+1)
	require.Contains(t, got[0].Message, "too many attempts")
	h.a.Start(t.Context())
	require.NoError(t, h.a.Close())
	got = h.audit(anna, &linktrialv1.ListAuditRequest{}).Entries
	require.Len(t, got, before+access.UserBurst+2)
	require.Equal(t, fmt.Sprintf("||AccessService.Login||refused|%d further calls without a login from 1 address, 2026-05-01 08:00:00 UTC", 50-access.UserBurst-1), line(got[0]))
}

// Calls that no login understands leave a bounded number of entries, and logins of people
// all of theirs.
func TestAuditOfAnonymousFlood(t *testing.T) {
	h := build(t, nil)
	h.people()
	anna := h.login("anna")
	before := len(h.audit(anna, &linktrialv1.ListAuditRequest{Limit: 1000}).Entries)
	for range 3 * auditlog.AnonymousOfAddress {
		res, err := http.Post(h.url+access.APIPrefix+"AccessService/Login", "application/json", strings.NewReader("{not JSON"))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	h.login("vera")
	got := h.audit(anna, &linktrialv1.ListAuditRequest{Limit: 1000}).Entries
	require.Len(t, got, before+auditlog.AnonymousOfAddress+1)
	require.Equal(t, "vera|password|AccessService.Login||done|", line(got[0]))
	require.Equal(t, "||AccessService.Login||refused|the request was not understood", line(got[1]))
	page, err := anna.ExportAudit(t.Context(), connect.NewRequest(&linktrialv1.ExportAuditRequest{Limit: 2}))
	require.NoError(t, err)
	require.True(t, page.Msg.More)
	require.EqualValues(t, 1, page.Msg.Entries[0].Id, "oldest first")
	require.Len(t, page.Msg.Entries[0].Hash, 32)
	for _, bad := range []*linktrialv1.ExportAuditRequest{{Limit: -1}, {Limit: 1001}, {After: -1}} {
		_, err := anna.ExportAudit(t.Context(), connect.NewRequest(bad))
		fails(t, err, connect.CodeInvalidArgument)
	}
	_, err = h.login("dirk").ExportAudit(t.Context(), connect.NewRequest(&linktrialv1.ExportAuditRequest{}))
	fails(t, err, connect.CodePermissionDenied)
}

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/access"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// admins is an orchestrator on which changes of trust take a second admin. Anna and otto are
// admins, dirk is a director.
type admins struct {
	*services
	t      *testing.T
	url    string
	access linktrialv1connect.AccessServiceClient
	trust  linktrialv1connect.TrustServiceClient
	tokens map[string]string
}

const adminPassword = "correct horse battery"

func newAdmins(t *testing.T) *admins {
	url := storetest.URL(t)
	s := serveAll(t, url, t.TempDir(), func(c *server.Config) { c.Login, c.SecondApproval = true, 24*time.Hour })
	a := &admins{services: s, t: t, url: url, tokens: map[string]string{},
		access: linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC()), trust: linktrialv1connect.NewTrustServiceClient(s.http, s.base, connect.WithGRPC())}
	setup, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	a.tokens[""] = strings.TrimSpace(string(setup))
	a.add("", "anna", linktrialv1.Role_ROLE_ADMIN)
	a.add("anna", "otto", linktrialv1.Role_ROLE_ADMIN)
	a.add("anna", "dirk", linktrialv1.Role_ROLE_DIRECTOR)
	return a
}

func (a *admins) add(by, name string, role linktrialv1.Role) {
	a.t.Helper()
	_, err := a.access.AddUser(a.t.Context(), as(a, by, &linktrialv1.AddUserRequest{Name: name, Role: role, Password: adminPassword}))
	require.NoError(a.t, err)
	in, err := a.access.Login(a.t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: name, Password: adminPassword, TokenName: "test"}))
	require.NoError(a.t, err)
	a.tokens[name] = in.Msg.Token
}

// as is a request of a user, or with another token of the map.
func as[T any](a *admins, user string, m *T) *connect.Request[T] {
	r := connect.NewRequest(m)
	r.Header().Set("Authorization", "Bearer "+a.tokens[user])
	return r
}

func (a *admins) rotate(user string) (*linktrialv1.RotateSigningKeyResponse, error) {
	res, err := a.trust.RotateSigningKey(a.t.Context(), as(a, user, &linktrialv1.RotateSigningKeyRequest{}))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

func (a *admins) approve(user, digest string) *linktrialv1.ChangeRequest {
	a.t.Helper()
	res, err := a.trust.ApproveDriver(a.t.Context(), as(a, user, &linktrialv1.ApproveDriverRequest{Protocol: "alpha", Digest: digest, Reason: "the vendor's build"}))
	require.NoError(a.t, err)
	return res.Msg.Requested
}

func (a *admins) confirm(user string, r *linktrialv1.ChangeRequest) error {
	_, err := a.trust.ConfirmChange(a.t.Context(), as(a, user, &linktrialv1.ConfirmChangeRequest{Id: r.Id, Hash: r.Hash, By: "somebody else"}))
	return err
}

func (a *admins) refuse(user string, r *linktrialv1.ChangeRequest) error {
	_, err := a.trust.RefuseChange(a.t.Context(), as(a, user, &linktrialv1.RefuseChangeRequest{Id: r.Id}))
	return err
}

func (a *admins) keys() int {
	a.t.Helper()
	res, err := a.trust.ListSigningKeys(a.t.Context(), as(a, "dirk", &linktrialv1.ListSigningKeysRequest{}))
	require.NoError(a.t, err)
	return len(res.Msg.Keys)
}

// state is that of a request, as everybody sees it who is logged in.
func (a *admins) state(r *linktrialv1.ChangeRequest) string {
	a.t.Helper()
	res, err := a.trust.ListChangeRequests(a.t.Context(), as(a, "dirk", &linktrialv1.ListChangeRequestsRequest{}))
	require.NoError(a.t, err)
	require.EqualValues(a.t, 24*60*60, res.Msg.ValidSeconds)
	for _, x := range res.Msg.Requests {
		if x.Id == r.Id {
			return strings.TrimSpace(x.State + " " + x.DecidedBy)
		}
	}
	return "not there"
}

// accepted reports who approved a digest, or nothing.
func (a *admins) accepted(digest string) string {
	a.t.Helper()
	res, err := a.trust.ListApprovals(a.t.Context(), as(a, "dirk", &linktrialv1.ListApprovalsRequest{}))
	require.NoError(a.t, err)
	for _, x := range res.Msg.Accepted {
		if x.Digest == digest {
			return x.By
		}
	}
	return ""
}

func digest(of string) string { return "sha256:" + strings.Repeat(of, 64) }

// What takes a second admin is done when another one confirms it, and exactly as it was
// requested.
func TestSecondApproval(t *testing.T) {
	a := newAdmins(t)
	ctx := t.Context()
	again, err := a.access.CreateToken(ctx, as(a, "anna", &linktrialv1.CreateTokenRequest{Name: "another"}))
	require.NoError(t, err)
	a.tokens["anna's other token"] = again.Msg.Text

	asked, err := a.rotate("anna")
	require.NoError(t, err)
	r := asked.Requested
	require.Equal(t, "rotate-signing-key", r.Action)
	require.Equal(t, "anna", r.RequestedBy)
	require.Equal(t, 24*time.Hour, r.Expires.AsTime().Sub(r.RequestedAt.AsTime()))
	require.Len(t, asked.Keys, 1)
	require.Equal(t, 1, a.keys(), "nothing is rotated yet")
	require.Equal(t, "pending", a.state(r))
	same, err := a.rotate("anna")
	require.NoError(t, err)
	require.Equal(t, r.Id, same.Requested.Id)
	_, err = a.rotate("otto")
	fails(t, err, connect.CodeFailedPrecondition, "anna requested this already", r.Id)

	for _, user := range []string{"anna", "anna's other token"} {
		fails(t, a.confirm(user, r), connect.CodePermissionDenied, "anna requested it, and another admin has to confirm it")
	}
	fails(t, a.confirm("dirk", r), connect.CodePermissionDenied, "dirk is a director")
	fails(t, a.refuse("dirk", r), connect.CodePermissionDenied, "dirk is a director")
	fails(t, a.confirm("otto", &linktrialv1.ChangeRequest{Id: r.Id}), connect.CodeInvalidArgument, "is not what was confirmed")
	fails(t, a.confirm("otto", &linktrialv1.ChangeRequest{Id: "nosuch", Hash: r.Hash}), connect.CodeNotFound, "no change request")
	driver := a.approve("otto", digest("a"))
	fails(t, a.confirm("otto", &linktrialv1.ChangeRequest{Id: r.Id, Hash: driver.Hash}), connect.CodeInvalidArgument, "is not what was confirmed")
	require.Equal(t, 1, a.keys())
	require.NoError(t, a.confirm("otto", r))
	require.Equal(t, 2, a.keys())
	require.Equal(t, "confirmed otto", a.state(r))
	fails(t, a.confirm("otto", r), connect.CodeFailedPrecondition, "was confirmed by otto")
	fails(t, a.refuse("anna", r), connect.CodeFailedPrecondition, "was confirmed by otto")
	require.Equal(t, 2, a.keys())

	// A driver's digest, refused once, withdrawn once, and then confirmed.
	require.Empty(t, a.accepted(digest("a")))
	require.NoError(t, a.refuse("anna", driver))
	require.Equal(t, "refused anna", a.state(driver))
	fails(t, a.confirm("anna", driver), connect.CodeFailedPrecondition, "was refused by anna")
	withdrawn := a.approve("otto", digest("a"))
	require.NoError(t, a.refuse("otto", withdrawn))
	driver = a.approve("otto", digest("a"))
	other := a.approve("otto", digest("b"))
	require.NoError(t, a.confirm("anna", driver))
	require.Equal(t, "otto, confirmed by anna", a.accepted(digest("a")))
	require.Empty(t, a.accepted(digest("b")))
	require.Nil(t, a.approve("otto", digest("a")), "it is approved already")
	_, err = a.trust.UnapproveDriver(ctx, as(a, "otto", &linktrialv1.UnapproveDriverRequest{Protocol: "alpha", Digest: digest("a")}))
	require.NoError(t, err, "withdrawing takes nobody else")

	// What is in the database does not change; where somebody changes it past the guard, the
	// hash is another.
	conn, err := pgx.Connect(ctx, a.url)
	require.NoError(t, err)
	defer conn.Close(ctx)
	for _, sql := range []string{"UPDATE change_requests SET digest = 'x' WHERE id = $1", "UPDATE change_requests SET requested_by = 'dirk' WHERE id = $1", "DELETE FROM change_requests WHERE id = $1",
		"UPDATE change_requests SET confirmed = true, decided_by = requested_by, decided_at = now() WHERE id = $1"} {
		_, err := conn.Exec(ctx, sql, other.Id)
		require.Error(t, err, sql)
	}
	_, err = conn.Exec(ctx, "SET session_replication_role = replica")
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "UPDATE change_requests SET digest = $2 WHERE id = $1", other.Id, digest("c"))
	require.NoError(t, err)
	fails(t, a.confirm("anna", other), connect.CodeInvalidArgument, "is not what was confirmed")
	require.Empty(t, a.accepted(digest("c")))
	require.NoError(t, a.refuse("anna", other))

	// Who is no admin any more has requested nothing.
	asked, err = a.rotate("otto")
	require.NoError(t, err)
	_, err = a.access.SetUserRole(ctx, as(a, "anna", &linktrialv1.SetUserRoleRequest{Name: "otto", Role: linktrialv1.Role_ROLE_VIEWER}))
	require.NoError(t, err)
	fails(t, a.confirm("anna", asked.Requested), connect.CodeFailedPrecondition, "otto, who requested it, is no admin any more")
	require.Equal(t, 2, a.keys())

	log, err := a.access.ListAudit(ctx, as(a, "anna", &linktrialv1.ListAuditRequest{Action: "TrustService", Limit: 1000}))
	require.NoError(t, err)
	var lines []string
	for _, e := range log.Msg.Entries {
		lines = append(lines, e.User+" "+e.Action+" "+e.Outcome+" "+e.Detail)
	}
	text := strings.Join(lines, "\n")
	require.Contains(t, text, "anna TrustService.RotateSigningKey done requested: id="+r.Id)
	require.Regexp(t, `otto TrustService\.ConfirmChange done id=`+r.Id+` .*change: id=.*action=rotate-signing-key.*requested_by=anna`, text)
	require.Regexp(t, `anna TrustService\.ConfirmChange done .*action=approve-driver protocol=alpha digest=`+digest("a"), text)
	require.Contains(t, text, "anna TrustService.ConfirmChange refused id="+r.Id)
}

func TestSecondApprovalNeedsALogin(t *testing.T) {
	cat, err := catalog.Load(catalog.Config{})
	require.NoError(t, err)
	for _, c := range []struct {
		login  bool
		within time.Duration
		factor []string
		want   string
	}{
		{false, time.Hour, nil, "--second-approval takes people who log in"},
		{true, time.Minute, nil, "--second-approval 1m0s, expected between 5m0s and 168h0m0s"},
		{true, -time.Hour, nil, "--second-approval -1h0m0s, expected between"},
		{false, 0, []string{"admin"}, "--second-factor takes people who log in"},
		{true, 0, []string{"boss"}, `--second-factor: role "boss", expected viewer, director or admin`},
	} {
		_, err := server.Start(t.Context(), server.Config{Listen: "127.0.0.1:0", DatabaseURL: storetest.URL(t), DataDir: t.TempDir(), Catalog: cat, Login: c.login, SecondApproval: c.within, SecondFactor: c.factor})
		require.ErrorContains(t, err, c.want)
	}
}

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// One admin changes what nodes trust, at once; a director changes none of it. The audit log
// has who did, and who was refused.
func TestChangesOfTrust(t *testing.T) {
	ctx := t.Context()
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.Login = true })
	people := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC())
	trust := linktrialv1connect.NewTrustServiceClient(s.http, s.base, connect.WithGRPC())
	setup, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	tokens := map[string]string{"": strings.TrimSpace(string(setup))}
	add := func(by, name string, role linktrialv1.Role) {
		t.Helper()
		const password = "correct horse battery"
		_, err := people.AddUser(ctx, as(tokens[by], &linktrialv1.AddUserRequest{Name: name, Role: role, Password: password}))
		require.NoError(t, err)
		in, err := people.Login(ctx, connect.NewRequest(&linktrialv1.LoginRequest{User: name, Password: password, TokenName: "test"}))
		require.NoError(t, err)
		tokens[name] = in.Msg.Token
	}
	add("", "anna", linktrialv1.Role_ROLE_ADMIN)
	add("anna", "dirk", linktrialv1.Role_ROLE_DIRECTOR)
	anna, dirk := tokens["anna"], tokens["dirk"]
	keys := func() int {
		t.Helper()
		res, err := trust.ListSigningKeys(ctx, as(dirk, &linktrialv1.ListSigningKeysRequest{}))
		require.NoError(t, err)
		return len(res.Msg.Keys)
	}

	_, err = trust.RotateSigningKey(ctx, as(dirk, &linktrialv1.RotateSigningKeyRequest{}))
	fails(t, err, connect.CodePermissionDenied, "dirk is a director")
	require.Equal(t, 1, keys())
	rotated, err := trust.RotateSigningKey(ctx, as(anna, &linktrialv1.RotateSigningKeyRequest{}))
	require.NoError(t, err)
	require.Len(t, rotated.Msg.Keys, 2)
	require.Equal(t, 2, keys())

	driver := "sha256:" + strings.Repeat("a", 64)
	approve := &linktrialv1.ApproveDriverRequest{Protocol: "alpha", Digest: driver, Reason: "the vendor's build", By: "somebody else"}
	// approvedBy is who approved the driver, or nothing.
	approvedBy := func() string {
		t.Helper()
		res, err := trust.ListApprovals(ctx, as(dirk, &linktrialv1.ListApprovalsRequest{}))
		require.NoError(t, err)
		for _, d := range res.Msg.Accepted {
			if d.Digest == driver {
				return d.By
			}
		}
		return ""
	}
	_, err = trust.ApproveDriver(ctx, as(dirk, approve))
	fails(t, err, connect.CodePermissionDenied, "dirk is a director")
	require.Empty(t, approvedBy())
	_, err = trust.ApproveDriver(ctx, as(anna, approve))
	require.NoError(t, err)
	require.Equal(t, "anna", approvedBy(), "whoever the message names")
	_, err = trust.ApproveDriver(ctx, as(anna, approve))
	require.NoError(t, err, "it is approved already")
	withdraw := &linktrialv1.UnapproveDriverRequest{Protocol: "alpha", Digest: driver}
	_, err = trust.UnapproveDriver(ctx, as(anna, withdraw))
	require.NoError(t, err)
	require.Empty(t, approvedBy())
	_, err = trust.UnapproveDriver(ctx, as(anna, withdraw))
	fails(t, err, connect.CodeInvalidArgument, "is not approved")

	log, err := people.ListAudit(ctx, as(anna, &linktrialv1.ListAuditRequest{Action: "TrustService", Limit: 1000}))
	require.NoError(t, err)
	var lines []string
	for _, e := range log.Msg.Entries {
		lines = append(lines, strings.TrimSpace(e.User+" "+e.Action+" "+e.Outcome+" "+e.Detail))
	}
	require.Contains(t, lines, "dirk TrustService.RotateSigningKey refused")
	require.Contains(t, lines, "anna TrustService.RotateSigningKey done")
	require.Contains(t, lines, "anna TrustService.ApproveDriver done protocol=alpha digest="+driver+` reason="the vendor's build"`)
	require.Contains(t, lines, "anna TrustService.UnapproveDriver done protocol=alpha digest="+driver)
}

// as is a request with a token.
func as[T any](token string, m *T) *connect.Request[T] {
	r := connect.NewRequest(m)
	r.Header().Set("Authorization", "Bearer "+token)
	return r
}

func TestSecondFactorNeedsALogin(t *testing.T) {
	cat, err := catalog.Load(catalog.Config{})
	require.NoError(t, err)
	for _, c := range []struct {
		login  bool
		factor string
		want   string
	}{
		{false, "admin", "--second-factor takes people who log in"},
		{true, "boss", `--second-factor: role "boss", expected viewer, director or admin`},
	} {
		_, err := server.Start(t.Context(), server.Config{Listen: "127.0.0.1:0", DatabaseURL: storetest.URL(t), DataDir: t.TempDir(), Catalog: cat, Login: c.login, SecondFactor: []string{c.factor}})
		require.ErrorContains(t, err, c.want)
	}
}

package access

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestAuditIsAppendOnly(t *testing.T) {
	url := storetest.URL(t)
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer s.Close()
	a, err := New(t.Context(), Config{Store: s, Cost: Cost{Passes: 1, MemoryKiB: 64, Lanes: 1}})
	require.NoError(t, err)
	a.keep(t.Context(), &entry{action: "A.B", outcome: outcomeDone, detail: "a\x00b\nc\xff"})
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, sql := range []string{"DELETE FROM audit", "UPDATE audit SET user_name = 'x'", "TRUNCATE audit", "DELETE FROM audit WHERE false"} {
		_, err := conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "only added to", sql)
	}
	var detail string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT detail FROM audit").Scan(&detail))
	require.Equal(t, "a b c ", detail)
}

func TestDescribe(t *testing.T) {
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'x'
	}
	require.Equal(t, "name=vera role=admin", describe(&linktrialv1.AddUserRequest{Name: "vera", Role: linktrialv1.Role_ROLE_ADMIN, Password: "hidden hidden"}))
	require.Equal(t, "user=vera token_name=x", describe(&linktrialv1.LoginRequest{User: "vera", Password: "hidden hidden", TokenName: "x"}))
	require.Equal(t, "since=2026-05-01T08:00:00Z", describe(&linktrialv1.ListAuditRequest{Since: timestamppb.New(time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC))}))
	require.Equal(t, `name="two  lines" text=300 B`, describe(&linktrialv1.SavePlanRequest{Name: "two\r\nlines", Text: long}))
	require.Len(t, []rune(describe(&linktrialv1.SavePlanRequest{Name: string(long)})), len("name=")+maxValue+1)
}

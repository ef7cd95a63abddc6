package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"linktrial/internal/auditchain"
	"linktrial/migrations"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// Entries of before the chain are chained by the migration, as Go chains those after it.
func TestAuditIsChainedByMigration(t *testing.T) {
	ctx := t.Context()
	url := storetest.EmptyURL(t)
	cfg, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	db := stdlib.OpenDB(*cfg)
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = p.UpTo(ctx, 28)
	require.NoError(t, err)
	for _, sql := range []string{
		`INSERT INTO audit (at, user_name, via, address, action, detail, outcome, message) VALUES
			('2026-05-01 08:00:00.123456Z', 'anna', 'session', '::1', 'A.B', 'größe="1 KB"', 'done', ''),
			('1969-12-31 23:59:59.999999Z', '', '', '', 'A.C', '', 'refused', '…')`,
		`SELECT nextval('audit_id_seq')`, // of an entry that was rolled back
		`INSERT INTO audit (at, user_name, via, address, action, detail, outcome, message) VALUES (now(), 'dirk', '', '', 'A.D', '', 'failed', 'x')`,
	} {
		_, err = db.ExecContext(ctx, sql)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	s, err := store.Open(ctx, url, nil)
	require.NoError(t, err)
	defer s.Close()
	e, before, err := s.AppendAudit(ctx, auditchain.Entry{At: time.Now(), User: "vera", Action: "A.E", Outcome: "done"})
	require.NoError(t, err)
	require.EqualValues(t, 4, before.ID)
	require.EqualValues(t, 5, e.ID)
	c := auditchain.NewCheck(nil)
	require.NoError(t, s.CheckAudit(ctx, c))
	require.EqualValues(t, 4, c.Entries)
	require.Equal(t, e, c.Last)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "UPDATE audit SET message = ''")
	require.ErrorContains(t, err, "only added to", "the guard is there again")
}

package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// The role that an orchestrator works as is no superuser and owns nothing: it adds to the
// audit log, and can neither change nor remove a row of it, nor the table, nor what guards it.
func TestWorkerRole(t *testing.T) {
	ctx := t.Context()
	url := storetest.URL(t)
	s, err := store.OpenAs(ctx, url, postgres.Worker, nil)
	require.NoError(t, err)
	defer s.Close()
	again, err := store.OpenAs(ctx, url, postgres.Worker, nil) // a second start
	require.NoError(t, err)
	again.Close()

	cfg, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	cfg.User = postgres.Worker
	conn, err := pgx.ConnectConfig(ctx, cfg)
	require.NoError(t, err)
	defer conn.Close(ctx)
	var super bool
	require.NoError(t, conn.QueryRow(ctx, "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = current_user").Scan(&super))
	require.False(t, super)
	_, err = conn.Exec(ctx, "INSERT INTO audit (id, at, user_name, via, address, action, detail, outcome, message, hash) VALUES (1, now(), 'anna', '', '', 'x', '', 'done', '', sha256(''))")
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "INSERT INTO audit_heads (entry, hash, signed_at, key_id, signature) VALUES (1, sha256(''), now(), '', '')")
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "GRANT ALL ON audit TO current_user") // grants nothing, with a warning
	require.NoError(t, err)
	for _, sql := range []string{
		"UPDATE audit SET user_name = 'dirk'", "DELETE FROM audit", "TRUNCATE audit", "DROP TABLE audit", "ALTER TABLE audit DISABLE TRIGGER ALL",
		"UPDATE audit_heads SET entry = 2", "DELETE FROM audit_heads", "TRUNCATE audit_heads", "DROP TABLE audit_heads", "DROP TRIGGER audit_heads_append_only ON audit_heads",
		"ALTER TABLE audit ADD COLUMN x int", "DROP TRIGGER audit_append_only ON audit", "CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
		"ALTER TABLE audit OWNER TO current_user", "SET session_replication_role = replica",
		"SET ROLE linktrial", "ALTER ROLE linktrial_worker SUPERUSER", "CREATE TABLE t (x int)", "CREATE RULE r AS ON INSERT TO audit DO INSTEAD NOTHING",
		"COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_read_file('/etc/passwd')", "DELETE FROM goose_db_version", "CREATE EXTENSION plperlu",
	} {
		if _, err := conn.Exec(ctx, sql); err == nil {
			t.Errorf("%s: succeeded", sql)
		}
	}
	var rows int
	require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) FROM audit WHERE user_name = 'anna'").Scan(&rows))
	require.Equal(t, 1, rows)
}

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"linktrial/executor/runsheet"
	"linktrial/migrations"
	"linktrial/orchestrator/store/storedb"
)

// minVersion is the oldest PostgreSQL the schema is written for, as server_version_num.
const minVersion = 150000

// maxConns leaves room for people beside the orchestrator.
const maxConns = 12

// Store is the database. Any number of goroutines may use it.
type Store struct {
	Conn
	pool *pgxpool.Pool
	// appendSamples is the statement of [Store.AppendSamples].
	appendSamples string
	decoded       *costCache[*runsheet.Sheet]
	ended         *costCache[keptRun] // runs that have ended, by what their values follow from
	writes        *writes
}

// Open connects, brings the schema up to date and returns the store. It blocks
// while another orchestrator migrates the same database, or until ctx ends.
func Open(ctx context.Context, url string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s, err := connect(ctx, url, "")
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx, log); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// OpenAs is [Open] for a store that works as another role than the one that the URL
// names, which owns the schema and migrates it. The role may read and write what an
// orchestrator does, and nothing else: it is not the owner of a table, and of the audit
// log it reads and adds rows alone.
func OpenAs(ctx context.Context, url, role string, log *slog.Logger) (*Store, error) {
	owner, err := Open(ctx, url, log)
	if err != nil {
		return nil, err
	}
	defer owner.Close()
	if err := owner.grant(ctx, role); err != nil {
		return nil, err
	}
	return connect(ctx, url, role)
}

// grants are of the schema that a connection has. %[1]s is the role, %[2]s the schema.
const grants = `
GRANT USAGE ON SCHEMA %[2]s TO %[1]s;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[2]s TO %[1]s;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %[2]s TO %[1]s;
REVOKE UPDATE, DELETE, TRUNCATE ON audit, audit_heads FROM %[1]s;
REVOKE INSERT, UPDATE, DELETE ON goose_db_version FROM %[1]s;`

// dropChunks lets a role that does not own a hypertable drop its days, which takes the
// owner's rights.
const dropChunks = `
CREATE OR REPLACE FUNCTION drop_sample_chunks(before timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = %[2]s, public, pg_temp
AS $$ SELECT count(*) FROM drop_chunks('samples', older_than => before) $$;
REVOKE EXECUTE ON FUNCTION drop_sample_chunks(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_sample_chunks(timestamptz) TO %[1]s;`

// grant gives a role what an orchestrator's work takes.
func (s *Store) grant(ctx context.Context, role string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var schema string
		var hypertable bool
		// Of several that start at a time on copies of one schema, one changes the role's rights.
		err := tx.QueryRow(ctx, `SELECT current_schema(), to_regproc('drop_chunks') IS NOT NULL FROM pg_advisory_xact_lock(hashtext('linktrial grants'))`).Scan(&schema, &hypertable)
		if err != nil {
			return fmt.Errorf("rights of the role %s: %w", role, err)
		}
		text := grants
		if hypertable {
			text += dropChunks
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf(text, pgx.Identifier{role}.Sanitize(), pgx.Identifier{schema}.Sanitize())); err != nil {
			return fmt.Errorf("rights of the role %s: %w", role, err)
		}
		return nil
	})
}

// connect connects to a database; as a role of its own where one is named.
func connect(ctx context.Context, url, role string) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if role != "" {
		cfg.ConnConfig.User = role
	}
	cfg.MaxConns = maxConns
	cfg.ConnConfig.RuntimeParams["application_name"] = "linktrial"
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	w := newWrites()
	cfg.ConnConfig.Tracer = w
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return &Store{Conn: NewConn(pool), pool: pool, appendSamples: appendSQL(), decoded: newSheetCache(), ended: newRunCache(), writes: w}, nil
}

func (s *Store) migrate(ctx context.Context, log *slog.Logger) error {
	var version int
	if err := s.pool.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	if version < minVersion {
		return fmt.Errorf("the database is PostgreSQL %d, version %d or newer is needed", version/10000, minVersion/10000)
	}
	db := stdlib.OpenDBFromPool(s.pool)
	defer func() { _ = db.Close() }() // the pool stays open
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	sources := p.ListSources()
	if migrations.Retired(have) {
		return fmt.Errorf("the database was made by an earlier build of Linktrial, and this one cannot bring it up to date: its schema is version %d, expected %d; nothing was changed. Keep it, and start with a new data folder (--data) or an empty database (--database). To take results along, save each campaign with the earlier build ('linktrial results CAMPAIGN --format json'), and import the files here ('linktrial import FILE')", have, sources[len(sources)-1].Version)
	}
	if newest := sources[len(sources)-1].Version; have > newest {
		return fmt.Errorf("the database is of a newer Linktrial: its schema is version %d, this one knows %d", have, newest)
	}
	done, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if len(done) > 0 {
		log.Info("database schema brought up to date", "migrations", len(done), "version", done[len(done)-1].Source.Version)
	}
	return nil
}

// Close waits for the connections in use and closes them all.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	return nil
}

// InTx runs f in one transaction: all of it is stored, or nothing.
func (s *Store) InTx(ctx context.Context, f func(Conn) error) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return f(NewConn(tx)) })
	if err != nil && errors.Is(err, pgx.ErrTxCommitRollback) {
		return fmt.Errorf("the transaction was rolled back: %w", err)
	}
	return err
}

// Snapshot runs f on one unchanging state of the database, for reading.
func (s *Store) Snapshot(ctx context.Context, f func(Conn) error) error {
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.pool, opts, func(tx pgx.Tx) error { return f(NewConn(tx)) })
}

// ErrNotFound reports that no run or campaign has the name.
var ErrNotFound = errors.New("not found")

// ErrAmbiguous reports that more than one has it as a prefix.
var ErrAmbiguous = errors.New("more than one")

// FindRun resolves a run's identity or a unique prefix; empty is the newest.
func (s *Store) FindRun(ctx context.Context, name string) (run, campaign string, err error) {
	if name == "" {
		if name, err = s.q.NewestRun(ctx); errors.Is(err, pgx.ErrNoRows) {
			return "", "", fmt.Errorf("there are no runs yet: %w", ErrNotFound)
		} else if err != nil {
			return "", "", fmt.Errorf("find the newest run: %w", err)
		}
	}
	rows, err := s.q.RunsLike(ctx, name)
	if err != nil {
		return "", "", fmt.Errorf("find run: %w", err)
	}
	for _, r := range rows {
		if r.ID == name {
			return r.ID, r.CampaignID, nil
		}
	}
	switch len(rows) {
	case 0:
		if scope, found, err := findImported(ctx, s.q, name); err != nil {
			return "", "", err
		} else if found {
			return "", "", fmt.Errorf("campaign %s %w", scope.Campaign, ErrImported)
		}
		return "", "", fmt.Errorf("run %q: %w", name, ErrNotFound)
	case 1:
		return rows[0].ID, rows[0].CampaignID, nil
	}
	return "", "", fmt.Errorf("run %q: %w begin so, give more of its name", name, ErrAmbiguous)
}

// Scope is what results are asked of: one run, or all of a campaign where Run is empty.
type Scope struct {
	Campaign, Run string
	Imported      bool // of another orchestrator
}

// CampaignsOfPlans lists the campaigns of plans of these names whose text has a given one in
// it, the newest first and at most so many.
func (s *Store) CampaignsOfPlans(ctx context.Context, plans []string, containing string, most int32) ([]string, error) {
	return s.q.CampaignsOfPlans(ctx, storedb.CampaignsOfPlansParams{Plans: plans, Containing: []byte(containing), Count: most})
}

// FindScope resolves a run's or a campaign's identity or unique prefix; empty is the newest
// campaign that was measured here. A campaign's identity begins those of its runs, and then
// the campaign is meant. Those of imported campaigns come last.
func (s *Store) FindScope(ctx context.Context, name string) (Scope, error) {
	if name == "" {
		id, err := s.q.NewestCampaign(ctx)
		if errors.Is(err, pgx.ErrNoRows) {
			return Scope{}, fmt.Errorf("there are no campaigns yet: %w", ErrNotFound)
		}
		return Scope{Campaign: id}, err
	}
	if strings.Contains(name, "-") {
		run, campaign, err := s.FindRun(ctx, name)
		if errors.Is(err, ErrImported) {
			scope, _, err := findImported(ctx, s.q, name)
			return scope, err
		}
		return Scope{Campaign: campaign, Run: run}, err
	}
	ids, err := s.q.CampaignsLike(ctx, name)
	switch {
	case err != nil:
		return Scope{}, fmt.Errorf("find campaign: %w", err)
	case len(ids) == 0:
		if scope, found, err := findImported(ctx, s.q, name); found || err != nil {
			return scope, err
		}
		return Scope{}, fmt.Errorf("run or campaign %q: %w", name, ErrNotFound)
	case len(ids) == 1 || ids[0] == name || ids[1] == name:
		if len(ids) == 2 && ids[1] == name {
			ids[0] = name
		}
		return Scope{Campaign: ids[0]}, nil
	}
	return Scope{}, fmt.Errorf("campaign %q: %w begin so, give more of its name", name, ErrAmbiguous)
}

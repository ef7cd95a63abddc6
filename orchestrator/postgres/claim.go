package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"linktrial/internal/backoff"
	"linktrial/internal/service"
	"linktrial/internal/unit"
)

// Claim is one user's sole right to a database, for as long as its connection
// lives. It is an advisory lock of PostgreSQL (its documentation, section
// 13.3.5), so it costs nothing but that connection and bars nobody who only reads.
type Claim struct {
	url   string
	name  string
	log   *slog.Logger
	stop  func()
	lost  atomic.Pointer[time.Time] // when its connection was lost; nil: it has it
	taken chan struct{}             // closed when another has it
	by    error                     // who that is; set before taken is closed
}

const (
	// claimClass is the first half of the lock's key, "ltrl"; the second is the
	// schema, because two orchestrators may share a database by schemas.
	claimClass = 0x6c74726c
	// claimPatience outlasts the connection of an orchestrator on this machine
	// that was killed a moment ago.
	claimPatience = 3 * time.Second
	claimAgain    = 200 * time.Millisecond
	claimAgainMax = 2 * time.Second
	claimSilence  = 15 * time.Second // after which the connection is asked whether it lives
	claimLimit    = 10 * time.Second // for one question to the database
)

// A server lets go of a client whose machine has failed after 10 s + 3 × 5 s.
// Sockets of this machine need none of it, and pass it over.
const claimSession = `SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
	set_config('tcp_keepalives_count', '3', false), set_config('idle_session_timeout', '0', false)`

const claimKey = `hashtext(coalesce(current_schema(), ''))`

// TakeClaim claims a database for an orchestrator or a restore; [ErrInUse]
// where another has it, in one sentence that says who and what to do. It blocks
// for a few seconds at most, besides what connecting takes. A claim whose
// connection is lost is taken again, until Release, or until another has it
// ([Claim.Taken]).
func TakeClaim(ctx context.Context, url string, as User, log *slog.Logger) (*Claim, error) {
	return takeClaim(ctx, url, as, log, claimPatience)
}

func takeClaim(ctx context.Context, url string, as User, log *slog.Logger, patience time.Duration) (*Claim, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	c := &Claim{url: url, name: fmt.Sprintf("linktrial %s, process %d on %s", as, os.Getpid(), host), log: log, taken: make(chan struct{})}
	if len(c.name) > 63 { // where PostgreSQL cuts it (NAMEDATALEN)
		c.name = c.name[:63]
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; {
		if err = c.try(ctx, conn); err == nil {
			break
		}
		if !errors.Is(err, ErrInUse) || time.Now().After(end) || !backoff.Sleep(ctx, claimAgain) {
			closeConn(conn)
			return nil, err
		}
	}
	// The claim lasts beyond the call that took it.
	c.stop = service.Go(context.WithoutCancel(ctx), func(ctx context.Context) { c.keep(ctx, conn) })
	return c, nil
}

// Lost returns since when the claim has had no connection to the database; zero: it has
// one.
func (c *Claim) Lost() time.Time {
	if t := c.lost.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Taken returns a channel that is closed when another program has claimed the database
// while this one was cut off from it; TakenBy then says who. Whoever has lost the
// database so must leave it alone: two would overwrite each other's rows.
func (c *Claim) Taken() <-chan struct{} { return c.taken }

// TakenBy returns who has claimed the database meanwhile; nil: nobody.
func (c *Claim) TakenBy() error {
	select {
	case <-c.taken:
		return c.by
	default:
		return nil
	}
}

// Release gives the database up and waits until that is done.
func (c *Claim) Release() { c.stop() }

func (c *Claim) connect(ctx context.Context) (*pgx.Conn, error) {
	// As the store reads it: settings of a pool may be in it.
	cfg, err := pgxpool.ParseConfig(c.url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = c.name
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err == nil {
		if _, err = conn.Exec(ctx, claimSession); err == nil {
			return conn, nil
		}
		closeConn(conn)
	}
	return nil, fmt.Errorf("the database does not answer: %w", err)
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), claimLimit)
	defer cancel()
	_ = conn.Close(ctx) // the server lets go of what is closed, however it went
}

// try asks once.
func (c *Claim) try(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	var got bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, "+claimKey+")", claimClass).Scan(&got); err != nil {
		return fmt.Errorf("claim the database: %w", err)
	}
	if got {
		return nil
	}
	name, at := "", ""
	var since *time.Time // not told to every user
	// Advisory locks with two keys have objsubid 2 (pg_locks).
	err := conn.QueryRow(ctx, `SELECT coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), a.backend_start
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid::bigint = $1
		  AND l.objid::bigint = (`+claimKey+`::bigint & 4294967295) AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
		int64(claimClass)).Scan(&name, &at, &since)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // gone meanwhile
		return fmt.Errorf("claim the database: %w", err)
	}
	if name == "" {
		name = "one without a name"
	}
	if at != "" {
		at = " from " + at
	}
	when := ""
	if since != nil {
		when = " since " + unit.Moment(*since)
	}
	return &takenError{name, fmt.Sprintf("the database is in use by another program (%s%s%s): stop that one, or name another database with --database; a machine that has just failed lets go of it within half a minute", name, at, when)}
}

// takenError says who has a database.
type takenError struct{ name, text string }

func (e *takenError) Error() string        { return e.text }
func (e *takenError) Is(target error) bool { return target == ErrInUse }

// keep watches the connection and takes the claim again where it was lost.
func (c *Claim) keep(ctx context.Context, conn *pgx.Conn) {
	for {
		err := watchConn(ctx, conn)
		closeConn(conn)
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		c.lost.Store(&now)
		c.log.Warn("the claim on the database was lost with its connection and is taken again", "error", err)
		if conn = c.again(ctx); conn == nil {
			return
		}
		c.lost.Store(nil)
		c.log.Info("the claim on the database is held again")
	}
}

// again takes the claim until it has it; nil when ctx ended first, or another has it.
func (c *Claim) again(ctx context.Context) *pgx.Conn {
	for retry := (backoff.Backoff{Min: claimAgain, Max: claimAgainMax}); retry.Wait(ctx); {
		limited, cancel := context.WithTimeout(ctx, claimLimit)
		conn, err := c.connect(limited)
		if err == nil {
			if err = c.try(limited, conn); err == nil {
				cancel()
				return conn
			}
			closeConn(conn)
		}
		cancel()
		var taken *takenError
		switch {
		case !errors.As(err, &taken):
			c.log.Debug("the claim on the database could not be taken yet", "error", err)
		case taken.name != c.name: // our own: a connection that the server does not know to be lost
			c.by = fmt.Errorf("another program has claimed the database while this one was cut off from it: %w", err)
			close(c.taken)
			return nil
		}
	}
	return nil
}

// watchConn returns when the connection is lost or ctx ends.
func watchConn(ctx context.Context, conn *pgx.Conn) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, claimSilence)
		_, err := conn.WaitForNotification(quiet) // none comes: what comes is the end
		ended := quiet.Err() == nil
		cancel()
		if err == nil {
			continue
		}
		if ended || ctx.Err() != nil || conn.IsClosed() {
			return err
		}
		asked, cancel := context.WithTimeout(ctx, claimLimit)
		err = conn.Ping(asked)
		cancel()
		if err != nil {
			return err
		}
	}
}

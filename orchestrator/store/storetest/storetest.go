// Package storetest gives tests a real PostgreSQL: one private server a test
// binary, one database a test. Comes in: a testing.M, then testing.T's. Goes out:
// connection URLs and open stores.
package storetest

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/store"
)

var (
	server *postgres.Server
	number atomic.Int64
)

const template = "linktrial_template"

// Main runs the tests of a package with a PostgreSQL beside them, and fails
// them where goroutines are left behind. It does not return.
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "linktrial-storetest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	// The user postgres must reach what MkdirTemp made for us alone.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if server, err = postgres.Start(ctx, postgres.Config{DataDir: dir}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := server.Stop(stop); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := makeTemplate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	running := goleak.IgnoreCurrent()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(running); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// makeTemplate migrates one database, of which every test gets a copy.
func makeTemplate(ctx context.Context) error {
	if err := admin(ctx, "CREATE DATABASE "+template); err != nil {
		return err
	}
	s, err := store.Open(ctx, server.DatabaseURL(template), nil)
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

func admin(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, server.DatabaseURL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// URL makes a database for the test, with the schema in place, and returns how
// to connect. It is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	return database(t, " TEMPLATE "+template)
}

// EmptyURL is [URL] for a database with nothing in it.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return database(t, " TEMPLATE template0")
}

func database(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", number.Add(1))
	if err := admin(t.Context(), "CREATE DATABASE "+name+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := admin(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return server.DatabaseURL(name)
}

// Open is a store on a database of the test's own.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.OpenAs(t.Context(), URL(t), postgres.Worker, nil) // as an orchestrator has it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Package storetest gives tests a real PostgreSQL: one private server a test
// binary, one database a test. Comes in: a testing.M, then testing.T's. Goes out:
// connection URLs and open stores.
package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/store"
)

var (
	urlOf  func(database string) string
	number atomic.Int64
)

// sharedVariable has the URL of the server that the processes of a fuzz target
// share. They are killed where they do not end within a second, which is too soon to
// stop a server of their own.
const sharedVariable = "LINKTRIAL_STORETEST_SERVER"

// fuzzing reports whether this process fuzzes, and whether another one has started it
// for that.
func fuzzing() (any, worker bool) {
	worker = slices.Contains(os.Args, "-test.fuzzworker")
	return worker || slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzz=") }), worker
}

// useShared uses the server of the process that has started this one.
func useShared(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", sharedVariable, err)
	}
	urlOf = func(database string) string {
		of := *u
		of.Path = "/" + database
		return of.String()
	}
	return nil
}

const template = "linktrial_template"

// Main runs the tests of a package with a PostgreSQL beside them, and fails
// them where goroutines are left behind. It does not return.
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	fuzzes, worker := fuzzing()
	if worker {
		if err := useShared(os.Getenv(sharedVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "linktrial-storetest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// A busy machine has needed more than 90 s.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	// The user postgres must reach what MkdirTemp made for us alone.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server, err := postgres.Start(ctx, postgres.Config{DataDir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, "PostgreSQL for the tests does not start:", err)
		return 1
	}
	urlOf = server.DatabaseURL
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := server.Stop(stop); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := makeTemplate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the database that the tests copy cannot be made:", err)
		return 1
	}
	if fuzzes {
		if err := os.Setenv(sharedVariable, urlOf("postgres")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	running := goleak.IgnoreCurrent()
	code := m.Run()
	if code == 0 && !fuzzes { // the fuzzer leaves its own
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
	s, err := store.Open(ctx, urlOf(template), nil)
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

func admin(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, urlOf("postgres"))
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
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), number.Add(1))
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
	return urlOf(name)
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

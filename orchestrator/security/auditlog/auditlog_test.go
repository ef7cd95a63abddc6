package auditlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/internal/auditchain"
	"linktrial/internal/signature"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bench is a log over a real database, with an owner of it who rewrites what they like.
type bench struct {
	t     *testing.T
	url   string
	store *store.Store
	keys  *signing.Keyring
	data  string
	*Log

	mu  sync.Mutex // of now, which a started log reads
	now time.Time
}

func build(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, url: storetest.URL(t), data: t.TempDir(), now: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)}
	var err error
	b.store, err = store.Open(t.Context(), b.url, nil)
	require.NoError(t, err)
	t.Cleanup(b.store.Close)
	b.keys, err = signing.Ephemeral()
	require.NoError(t, err)
	b.start()
	return b
}

// start is another start of the orchestrator: it knows what is in its data folder.
func (b *bench) start() {
	b.Log = New(Config{Store: b.store, Signer: b.keys, DataDir: b.data, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.now
	}})
}

func (b *bench) write(n int) {
	b.t.Helper()
	for i := range n {
		b.mu.Lock()
		b.now = b.now.Add(time.Minute)
		b.mu.Unlock()
		require.NoError(b.t, b.Keep(b.t.Context(), auditchain.Entry{At: b.now, User: "anna", Via: "session", Address: "::1", Action: "A.B", Detail: fmt.Sprint("i=", i), Outcome: "done"}))
	}
}

// own does as the database's owner, who takes the guard away.
func (b *bench) own(sql string) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	require.NoError(b.t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(b.t.Context(), "ALTER TABLE audit DISABLE TRIGGER ALL; ALTER TABLE audit_heads DISABLE TRIGGER ALL; "+sql)
	require.NoError(b.t, err)
}

// rechain makes the chain again, as somebody does who has read how.
func (b *bench) rechain() {
	b.t.Helper()
	page, err := b.store.AuditPageAfter(b.t.Context(), 0, 1000)
	require.NoError(b.t, err)
	var before auditchain.Hash
	for _, e := range page.Entries {
		before = e.Over(before)
		b.own(fmt.Sprintf(`UPDATE audit SET hash = '\x%x' WHERE id = %d`, before[:], e.ID))
	}
}

// exported checks what the API gives, with the keys of the orchestrator.
func (b *bench) exported() string {
	b.t.Helper()
	c := auditchain.NewCheck(auditchain.Trusting(nil, b.keys.Keys()))
	for after, more := int64(0), true; more; {
		page, err := b.Export(b.t.Context(), after, 4)
		require.NoError(b.t, err)
		if err := auditchain.Merge(page.Entries, page.Heads, c.Line); err != nil {
			return err.Error()
		}
		if more = page.More; more {
			after = page.Entries[len(page.Entries)-1].ID
		}
	}
	if err := c.Complete(); err != nil {
		return err.Error()
	}
	return ""
}

// What the owner of the database does to the log is found, by the orchestrator that runs,
// by its next start, and by who exports the log from either.
func TestRewritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(*bench)
		want string
	}{
		"nothing":                   {func(*bench) {}, ""},
		"a row is changed":          {func(b *bench) { b.own("UPDATE audit SET user_name = 'dirk' WHERE id = 3") }, "entry 3 of 2026-05-01 08:03:00 UTC was changed"},
		"a time is changed":         {func(b *bench) { b.own("UPDATE audit SET at = at + interval '1 microsecond' WHERE id = 3") }, "entry 3 of"},
		"a row is removed":          {func(b *bench) { b.own("DELETE FROM audit WHERE id = 3") }, "entry 3 is missing before entry 4 of 2026-05-01 08:04:00 UTC"},
		"the end is removed":        {func(b *bench) { b.own("DELETE FROM audit WHERE id > 6") }, "entries 7 to 9 are missing at the end"},
		"the end and its heads":     {func(b *bench) { b.own("DELETE FROM audit WHERE id > 6; DELETE FROM audit_heads WHERE entry > 6") }, "entries 7 to 9 are missing at the end"},
		"everything":                {func(b *bench) { b.own("DELETE FROM audit; DELETE FROM audit_heads") }, "entries 1 to 9 are missing at the end: the log is empty"},
		"a row, and chained again":  {func(b *bench) { b.own("UPDATE audit SET user_name = 'dirk' WHERE id = 3"); b.rechain() }, "was changed and the chain made again"},
		"a row, chain and no heads": {func(b *bench) { b.own("DELETE FROM audit WHERE id = 3; DELETE FROM audit_heads"); b.rechain() }, "was changed and the chain made again"},
		"a head": {func(b *bench) {
			b.own("UPDATE audit_heads SET signed_at = signed_at + interval '1 day' WHERE entry = 5")
		}, "the signed head of entry 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := build(t)
			ctx := t.Context()
			require.Empty(t, b.Check(ctx).Problem)
			b.write(5)
			b.sign(ctx)
			b.write(4)
			b.sign(ctx)
			require.Equal(t, Checked{At: b.now, Entries: 9}, b.Check(ctx))
			require.Empty(t, b.exported())

			c.do(b)
			found := func(text string) {
				t.Helper()
				if c.want == "" {
					require.Empty(t, text)
				} else {
					require.Contains(t, text, c.want)
				}
			}
			found(b.Check(ctx).Problem)
			b.start()
			found(b.Check(ctx).Problem)
			found(b.LastCheck().Problem)
			found(b.exported())
			if c.want == "" {
				return
			}
			// It goes on as a log that is not whole, and stays one.
			b.write(4)
			b.sign(ctx)
			require.NotEmpty(t, b.Check(ctx).Problem)
			require.NotEmpty(t, b.exported())
			b.start()
			require.NotEmpty(t, b.Check(ctx).Problem)
		})
	}
}

// Between two checks the next entry shows it.
func TestWritingNotices(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(*bench){
		"entries after entry 3 were removed":                   func(b *bench) { b.own("DELETE FROM audit WHERE id > 3") },
		"entry 5, or one before it, was changed and the chain": func(b *bench) { b.own("UPDATE audit SET detail = '' WHERE id = 2"); b.rechain() },
		"another program than this orchestrator wrote entries": func(b *bench) {
			_, _, err := b.store.AppendAudit(b.t.Context(), auditchain.Entry{At: b.now, User: "dirk", Action: "A.B", Outcome: "done"})
			require.NoError(b.t, err)
		},
	} {
		b := build(t)
		b.Check(t.Context())
		b.write(5)
		do(b)
		b.write(1)
		require.Contains(t, b.LastCheck().Problem, want)
		require.Contains(t, b.Check(t.Context()).Problem, " ", "it stays")
		b.sign(t.Context())
		require.NoFileExists(t, filepath.Join(b.data, HeadFile), "no head is kept of a log that is not whole")
	}
}

// The file's head is not the database's: one that was damaged is told.
func TestHeadFile(t *testing.T) {
	b := build(t)
	ctx := t.Context()
	b.write(2)
	b.sign(ctx)
	require.NoFileExists(t, filepath.Join(b.data, HeadFile), "before the first check")
	b.Check(ctx)
	b.write(1)
	b.sign(ctx)
	text, err := os.ReadFile(filepath.Join(b.data, HeadFile))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), `{"head":3,`), string(text))
	require.NoError(t, os.WriteFile(filepath.Join(b.data, HeadFile), text[:20], 0o600))
	b.start()
	require.Contains(t, b.Check(ctx).Problem, "cannot be read")
	// Heads stay good after a rotation of the key.
	require.NoError(t, os.Remove(filepath.Join(b.data, HeadFile)))
	require.NoError(t, b.keys.Rotate())
	b.start()
	require.Empty(t, b.Check(ctx).Problem)
	require.Empty(t, b.exported())
	first := signature.NewKeys(b.keys.Keys()[0].Key)
	require.Len(t, auditchain.Trusting(first, b.keys.Keys()), 2)
}

// Writers at the same time, each with a connection of its own, make one chain.
func TestConcurrentWriters(t *testing.T) {
	b := build(t)
	const writers, each = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			s, err := store.Open(b.t.Context(), b.url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for i := range each {
				if _, _, err := s.AppendAudit(t.Context(), auditchain.Entry{At: b.now, User: fmt.Sprint("w", w), Action: "A.B", Detail: fmt.Sprint(i), Outcome: "done"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := b.Check(t.Context())
	require.Empty(t, got.Problem)
	require.EqualValues(t, writers*each, got.Entries)
	page, err := b.store.AuditPageAfter(t.Context(), 0, 1000)
	require.NoError(t, err)
	require.EqualValues(t, writers*each, page.Entries[len(page.Entries)-1].ID, "numbers have no gaps")
}

// A writer who keeps to no lock cannot continue the chain at the same place.
func TestForkIsRefused(t *testing.T) {
	b := build(t)
	b.write(1)
	conn, err := pgx.Connect(t.Context(), b.url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "INSERT INTO audit SELECT * FROM audit WHERE id = 1")
	require.ErrorContains(t, err, "duplicate key")
}

// A flood of anonymous calls, from many addresses, leaves a bounded number of entries; the
// rest is in the sums; entries of people are all there.
func TestFlood(t *testing.T) {
	b := build(t)
	ctx := t.Context()
	entry := func(address string) auditchain.Entry {
		return auditchain.Entry{At: b.now, Via: "password", Address: address, Action: "AccessService.Login", Outcome: "refused", Message: "wrong"}
	}
	const calls = 20_000
	for i := range calls {
		address := "10.0.0.1"
		if i%2 == 1 {
			address = fmt.Sprintf("10.1.%d.%d", i/200%100, i%200)
		}
		require.NoError(t, b.KeepAnonymous(ctx, entry(address)))
		if i%1000 == 0 {
			b.write(1)
			b.now = b.now.Add(-time.Minute)
		}
	}
	require.LessOrEqual(t, len(b.bounds.of), AnonymousAnHour)
	require.Len(t, b.bounds.rest.addresses, maxAddresses)
	b.now = b.now.Add(window)
	b.sumUp(ctx, false)
	for range 5 {
		b.Count(ctx, "AccessService.Login", "2001:db8::1")
	}
	b.sumUp(ctx, false)
	b.sumUp(ctx, true)
	b.sumUp(ctx, true)

	page, err := b.store.AuditPageAfter(ctx, 0, 1000)
	require.NoError(t, err)
	var people, anonymous, first int
	var sums []string
	for _, e := range page.Entries {
		switch {
		case e.User == "anna":
			people++
		case strings.Contains(e.Message, "further"):
			sums = append(sums, e.Address+"|"+e.Message)
		default:
			anonymous++
			if e.Address == "10.0.0.1" {
				first++
			}
		}
	}
	require.Equal(t, calls/1000, people)
	require.Equal(t, AnonymousAnHour, anonymous)
	require.Equal(t, AnonymousOfAddress, first)
	require.Equal(t, []string{
		fmt.Sprintf("|%d further calls without a login from more than 1000 addresses, 2026-05-01 08:00:00 UTC", calls-AnonymousAnHour),
		"2001:db8::1|5 further calls without a login from 1 address, 2026-05-01 09:00:00 UTC",
	}, sums)
	require.Empty(t, b.Check(ctx).Problem)
}

func TestSum(t *testing.T) {
	var b bounds
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	b.count(at, "X.Login", "10.0.0.1")
	b.count(at.Add(59*time.Minute), "X.Login", "10.0.0.2")
	_, ok := b.over(at.Add(59 * time.Minute))
	require.False(t, ok)
	s, ok := b.over(at.Add(time.Hour))
	require.True(t, ok)
	require.Equal(t, auditchain.Entry{At: at, Action: "X.Login", Outcome: "refused", Message: "2 further calls without a login from 2 addresses, 2026-05-01 08:00:00 to 2026-05-01 08:59:00 UTC"}, s.entry(at))
	require.True(t, b.began.IsZero())
	b.count(at, "X.Login", "10.0.0.1")
	s, _ = b.take()
	require.Contains(t, s.entry(at).Message, "1 further call without a login from 1 address")
}

// Start and stop, with the sum that was open and a head of the last entry.
func TestStop(t *testing.T) {
	b := build(t)
	b.Start(t.Context())
	b.write(1)
	b.Count(t.Context(), "X.Login", "10.0.0.1")
	b.Stop()
	b.Stop()
	page, err := b.store.AuditPageAfter(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, page.Entries, 2)
	require.EqualValues(t, 2, page.Heads[len(page.Heads)-1].Entry)
}

// Where the store does not answer, entries are errors and nothing is claimed.
func TestAway(t *testing.T) {
	b := build(t)
	b.write(1)
	before := b.Check(t.Context())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, errors.Is(b.Keep(gone, auditchain.Entry{At: b.now, Action: "A.B", Outcome: "done"}), context.Canceled))
	require.Equal(t, before, b.Check(gone))
	b.write(1)
	require.Empty(t, b.Check(t.Context()).Problem)
}

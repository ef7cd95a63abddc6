package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func batch(j *storetest.Journal, first, last int) []ingest.Record {
	var out []ingest.Record
	for seq := first; seq <= last; seq++ {
		out = append(out, ingest.Record{Seq: int64(seq), JSON: j.Records[seq-1]})
	}
	return out
}

// tables is everything that a run's journals led to, comparable across databases.
func tables(t *testing.T, url string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	out := map[string]string{}
	for _, table := range []string{"journal", "trials", "attempts", "flows", "receptions", "listeners", "clock_offsets", "samples", "run_nodes"} {
		rows, err := conn.Query(t.Context(), "SELECT (to_jsonb(x) - 'delivered_at' - 'received_at')::text FROM "+table+" x ORDER BY 1")
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		out[table] = strings.Join(lines, "\n")
	}
	return out
}

func open(t *testing.T) (*store.Store, string) {
	t.Helper()
	url := storetest.URL(t)
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, url
}

// Any sequence of duplicated, overlapping, reordered and cancelled deliveries,
// from all nodes at once, leaves the tables of one plain delivery.
func TestExactlyOnce(t *testing.T) {
	sheet := storetest.Sheet(7)
	reference, referenceURL := open(t)
	run := storetest.AddRun(t, reference, "same", sheet)
	journals := []*storetest.Journal{storetest.Lead(run, sheet, 12), storetest.Serve(run, sheet)}
	for _, j := range journals {
		j.Stepped(len(j.Records)/3, 365*24*time.Hour)
		j.Stepped(len(j.Records)/2, -2*365*24*time.Hour)
	}
	in := ingest.New(ingest.Config{Store: reference})
	for _, j := range journals {
		committed, err := in.Deliver(t.Context(), run, string(j.Role), batch(j, 1, len(j.Records)))
		require.NoError(t, err)
		require.Equal(t, int64(len(j.Records)), committed)
	}
	want := tables(t, referenceURL)
	require.Equal(t, 7*12, strings.Count(want["samples"], "\n")+1)

	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s, url := open(t)
			require.Equal(t, run, storetest.AddRun(t, s, "same", sheet))
			var mu sync.Mutex
			stored := map[string]int{}
			in := ingest.New(ingest.Config{Store: s, Stored: func(d ingest.Delta) {
				mu.Lock()
				defer mu.Unlock()
				stored[d.Node] += d.Records
			}})
			var g errgroup.Group
			for k, j := range journals {
				for worker := range 2 { // two at once: a delivery is tried again while the first still runs
					g.Go(func() error {
						rng := rand.New(rand.NewPCG(seed, uint64(10*k+worker)))
						return deliverSomehow(rng, in, run, j)
					})
				}
			}
			require.NoError(t, g.Wait())
			for _, j := range journals {
				require.Equal(t, len(j.Records), stored[string(j.Role)], "records reported as new")
			}
			if diff := cmp.Diff(want, tables(t, url)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func deliverSomehow(rng *rand.Rand, in *ingest.Ingester, run string, j *storetest.Journal) error {
	n := len(j.Records)
	var last int64
	for last < int64(n) {
		first := 1 + rng.IntN(n) // anywhere: a gap, a repetition, or both
		if rng.IntN(2) == 0 {
			first = int(last) + 1
		}
		ctx, cancel := context.WithCancel(context.Background())
		if rng.IntN(4) == 0 { // cut off in the middle, with no answer
			time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, cancel)
		}
		committed, err := in.Deliver(ctx, run, string(j.Role), batch(j, first, min(n, first+rng.IntN(12))))
		cut := ctx.Err() != nil
		cancel()
		if err != nil && !cut {
			return err
		}
		if err == nil {
			if committed < last {
				return fmt.Errorf("committed went back from %d to %d", last, committed)
			}
			last = committed
		}
	}
	return nil
}

func TestGapStoresNothing(t *testing.T) {
	s, _ := open(t)
	sheet := storetest.Sheet(2)
	run := storetest.AddRun(t, s, "gaps", sheet)
	j := storetest.Lead(run, sheet, 2)
	in := ingest.New(ingest.Config{Store: s})
	committed, err := in.Deliver(t.Context(), run, "client", batch(j, 1, 3))
	require.NoError(t, err)
	require.Equal(t, int64(3), committed)
	committed, err = in.Deliver(t.Context(), run, "client", batch(j, 6, 9))
	require.NoError(t, err)
	require.Equal(t, int64(3), committed, "a gap answers where to go back to")
	committed, err = in.Deliver(t.Context(), run, "client", nil)
	require.NoError(t, err)
	require.Equal(t, int64(3), committed)
	committed, err = in.Deliver(t.Context(), run, "server", nil)
	require.NoError(t, err)
	require.Zero(t, committed)
}

// A record that cannot be stored leaves its place to the reason; what was written of it
// is undone. A journal that is another one is refused and leaves nothing behind.
func TestRefused(t *testing.T) {
	s, _ := open(t)
	sheet := storetest.Sheet(2)
	run := storetest.AddRun(t, s, "refu", sheet)
	in := ingest.New(ingest.Config{Store: s})
	good := storetest.NewJournal(run, radio.RoleClient)
	good.Begin(sheet)
	_, err := in.Deliver(t.Context(), run, "client", batch(good, 1, 3))
	require.NoError(t, err)
	foreign := map[string]bool{"other number": true, "other run": true, "other node": true, "other role": true, "another sheet": true, "gap within": true}
	at := func(when string) []ingest.Record {
		return []ingest.Record{{Seq: 4, JSON: fmt.Appendf(nil, `{"seq":4,"run":%q,"node":"client","role":"client","at":%q,"type":"driver-misbehaved","body":{"treatment":"one"}}`, run, when)}}
	}

	one := func(change func(*storetest.Journal)) []ingest.Record {
		j := storetest.NewJournal(run, radio.RoleClient)
		j.Records = append(j.Records, good.Records...)
		change(j)
		return batch(j, 4, len(j.Records))
	}
	raw := func(s string) []ingest.Record { return []ingest.Record{{Seq: 4, JSON: []byte(s)}} }
	record := func(seq int64, run, node, typ, body string) []ingest.Record {
		return []ingest.Record{{Seq: 4, JSON: fmt.Appendf(nil, `{"seq":%d,"run":%q,"node":%q,"role":"client","at":"2026-03-01T00:00:00Z","type":%q,"body":%s}`, seq, run, node, typ, body)}}
	}
	for name, c := range map[string]struct {
		records []ingest.Record
		want    string
	}{
		"no JSON":           {raw("garbage"), "not a journal record"},
		"too long":          {raw(`"` + strings.Repeat("x", ingest.MaxRecordBytes) + `"`), "bytes long"},
		"other number":      {record(5, run, "client", "command", "{}"), "its own number is 5"},
		"other run":         {record(4, "refu-2", "client", "command", "{}"), `it is of run "refu-2"`},
		"other node":        {record(4, run, "server", "command", "{}"), `it is of node "server"`},
		"unknown type":      {record(4, run, "client", "gossip", "{}"), `unknown type "gossip"`},
		"body of no shape":  {record(4, run, "client", "samples", "[]"), "cannot unmarshal array"},
		"no body":           {raw(`{"seq":4,"run":"refu-1","node":"client","role":"client","at":"2026-03-01T00:00:00Z","type":"command"}`), "without a body"},
		"no time":           {raw(`{"seq":4,"run":"refu-1","node":"client","role":"client","type":"command","body":{}}`), "it has no time"},
		"other role":        {raw(`{"seq":4,"run":"refu-1","node":"client","role":"relay","at":"2026-03-01T00:00:00Z","type":"command","body":{}}`), "the node is the run's client"},
		"server's business": {record(4, run, "client", "received", `{"transfer":"","code":"reset"}`), "only a server may write it"},
		"unknown verdict":   {record(4, run, "client", "trial-ended", `{"trial":0,"attempts":1,"verdict":"fine"}`), `verdict "fine"`},
		"unknown trial":     {record(4, run, "client", "trial-ended", `{"trial":2,"attempts":1,"verdict":"failed"}`), "the run has no such trial"},
		"sample of no trial": {record(4, run, "client", "samples", `{"trial":2,"attempt":1,"side":"client","samples":[{"elapsed_ns":1,"sent_bytes":1}]}`),
			"trial 2, the run has 2"},
		"negative sample":     {record(4, run, "client", "samples", `{"trial":1,"attempt":1,"side":"client","samples":[{"elapsed_ns":-1,"sent_bytes":1}]}`), "elapsed_ns -1, expected 0 to"},
		"end without a start": {one(func(j *storetest.Journal) { j.End(sheet, 0, 1, journal.Failed) }), "has not started, or has ended already"},
		"attempt twice":       {one(func(j *storetest.Journal) { j.Start(sheet, 0, 1); j.Start(sheet, 0, 1) }), "it contradicts what is stored"},
		"another sheet": {record(4, run, "client", "run-resumed", `{"sheet_hash":"ffff","version":"x","trials":2}`),
			"the node runs the sheet ffff"},
		"repeat of no trial":       {record(4, run, "client", "command", `{"id":"a","kind":"repeat"}`), "repeat of no trial"},
		"repeat of a trial to be":  {record(4, run, "client", "command", `{"id":"a","kind":"repeat","trial":1}`), "trial 1 is to be repeated and has not ended"},
		"repeat of unknown trial":  {record(4, run, "client", "command", `{"id":"a","kind":"repeat","trial":4294967296}`), "the run has 2"},
		"skip of a negative trial": {record(4, run, "client", "command", `{"id":"a","kind":"skip","trial":-1}`), "trial -1"},
		"pause by another": {[]ingest.Record{{Seq: 4, JSON: fmt.Appendf(nil, `{"seq":4,"run":%q,"node":"client","role":"server","at":"2026-03-01T00:00:00Z","type":"command","body":{"id":"a","kind":"pause"}}`, run)}},
			"only a client may write it"},
		"gap within":         {[]ingest.Record{{Seq: 4, JSON: []byte("{}")}, {Seq: 6, JSON: []byte("{}")}}, "without gaps"},
		"year 0":             {at("0000-01-01T00:00:00Z"), "its time is 0000-01-01T00:00:00Z, expected one from 1970 to 2199"},
		"year 9999":          {at("9999-12-31T23:59:59Z"), "expected one from 1970 to 2199"},
		"an enormous name":   {record(4, run, "client", "telemetry", `{"source":"`+strings.Repeat("s", 5000)+`","values":[{"name":"a","value":1}]}`), "the name of a source has 5000 bytes, expected at most 500"},
		"an enormous text":   {record(4, run, "client", "driver-misbehaved", `{"treatment":"one","message":"`+strings.Repeat("m", 300<<10)+`"}`), "a text of it has 307200 bytes"},
		"a field of 3 KiB":   {record(4, run, "client", "provenance", `{"`+strings.Repeat("k", 3<<10)+`":1}`), "the name of a field has 3072 bytes"},
		"a number too large": {record(4, run, "client", "samples", `{"trial":1,"attempt":1,"side":"client","samples":[{"elapsed_ns":1,"sent_bytes":1e300}]}`), "samples"},
		"a long transfer":    {record(4, run, "client", "samples", `{"trial":1,"attempt":1,"side":"client","samples":[{"elapsed_ns":9e18,"sent_bytes":1}]}`), "elapsed_ns"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := open(t)
			run := storetest.AddRun(t, s, "refu", sheet)
			in := ingest.New(ingest.Config{Store: s})
			_, err := in.Deliver(t.Context(), run, "client", batch(good, 1, 3))
			require.NoError(t, err)
			before := tables(t, url)
			last := c.records[len(c.records)-1].Seq
			committed, err := in.Deliver(t.Context(), run, "client", c.records)
			if foreign[name] {
				var refused *ingest.RefusedError
				require.ErrorAs(t, err, &refused)
				require.ErrorContains(t, err, c.want)
				if diff := cmp.Diff(before, tables(t, url)); diff != "" {
					t.Error("a refused delivery left something behind:", diff)
				}
				return
			}
			require.NoError(t, err)
			require.Equal(t, last, committed, "what follows is not kept waiting")
			after := tables(t, url)
			require.Contains(t, after["journal"], "refused")
			require.Contains(t, after["journal"], strings.ReplaceAll(c.want, `"`, `\"`))
			require.Equal(t, before["samples"], after["samples"])
			require.NotRegexp(t, "(?i)sqlstate|constraint|_check", after["journal"])
			// Delivered again, it is known; and the next one is taken.
			committed, err = in.Deliver(t.Context(), run, "client", c.records)
			require.NoError(t, err)
			require.Equal(t, last, committed)
			next := storetest.NewJournal(run, radio.RoleClient)
			next.Records = make([][]byte, last)
			next.Start(sheet, 1, 1)
			committed, err = in.Deliver(t.Context(), run, "client", batch(next, int(last)+1, int(last)+1))
			require.NoError(t, err)
			require.Equal(t, last+1, committed)
		})
	}

	_, err = in.Deliver(t.Context(), "none-1", "client", nil)
	require.ErrorIs(t, err, ingest.ErrNotFound)
	_, err = in.Deliver(t.Context(), run, "stranger", nil)
	require.ErrorIs(t, err, ingest.ErrNotFound)

	other := storetest.NewJournal(run, radio.RoleClient)
	other.Begin(sheet)
	other.Records[1] = []byte(strings.Replace(string(other.Records[1]), `"kernel"`, `"another"`, 1))
	_, err = in.Deliver(t.Context(), run, "client", batch(other, 1, 3))
	var conflict *ingest.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, int64(2), conflict.Seq)
}

// Strings that PostgreSQL cannot hold do not stop a journal.
func TestUnstorableText(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "text", sheet)
	in := ingest.New(ingest.Config{Store: s})
	rec := func(seq int, body string) ingest.Record {
		return ingest.Record{Seq: int64(seq), JSON: fmt.Appendf(nil, `{"seq":%d,"run":%q,"node":"client","role":"client","at":"2026-03-01T00:00:00Z","type":"driver-misbehaved","body":%s}`, seq, run, body)}
	}
	_, err := in.Deliver(t.Context(), run, "client", []ingest.Record{
		rec(1, `{"treatment":"one","message":"zero \u0000 byte","log":"\\u0000 \ud800 half"}`), rec(2, "{\"treatment\":\"one\",\"message\":\"\xff\xfe\"}")})
	require.NoError(t, err)
	require.Contains(t, tables(t, url)["journal"], "zero \uFFFD byte")
}

// A trial that is repeated has not ended until its terminal record comes again;
// an order that was passed over changes nothing.
func TestRepeatedTrial(t *testing.T) {
	s, _ := open(t)
	sheet := storetest.Sheet(2)
	run := storetest.AddRun(t, s, "again", sheet)
	in := ingest.New(ingest.Config{Store: s})
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	delivered := 0
	verdict := func() string {
		t.Helper()
		_, err := in.Deliver(t.Context(), run, "client", batch(j, delivered+1, len(j.Records)))
		require.NoError(t, err)
		delivered = len(j.Records)
		v, err := campaigndb.New(s).TrialVerdict(t.Context(), campaigndb.TrialVerdictParams{RunID: run, Trial: 0})
		require.NoError(t, err)
		if v.Verdict == nil {
			return ""
		}
		return *v.Verdict
	}
	trial := 0
	j.Start(sheet, 0, 1)
	j.End(sheet, 0, 1, journal.Failed)
	j.EndTrial(0, 1, journal.Failed)
	j.Add(journal.TypeCommand, journal.Command{ID: "a", Kind: journal.CommandRepeat, Trial: &trial, Rejected: "too late"})
	require.Equal(t, "failed", verdict())
	j.Add(journal.TypeCommand, journal.Command{ID: "b", Kind: journal.CommandRepeat, Trial: &trial})
	require.Empty(t, verdict())
	j.Start(sheet, 0, 2)
	j.End(sheet, 0, 2, journal.Succeeded)
	require.Empty(t, verdict())
	j.EndTrial(0, 2, journal.Succeeded)
	require.Equal(t, "succeeded", verdict())
}

func FuzzParse(f *testing.F) {
	sheet := storetest.Sheet(3)
	for _, j := range []*storetest.Journal{storetest.Lead("r-1", sheet, 2), storetest.Serve("r-1", sheet)} {
		for i, r := range j.Records {
			f.Add(r, string(j.Role), int64(i+1))
		}
	}
	f.Add([]byte(`{"seq":1,"run":"r-1","node":"client","role":"client","at":"2026-03-01T00:00:00Z","type":"driver-misbehaved","body":{"log":"\u0000\ud800"}}`), "client", int64(1))
	f.Add([]byte(`{"seq":1,"run":"r-1","node":"client","role":"client","at":"2026-03-01T00:00:00Z","type":"command","body":{"id":"a","kind":"repeat","trial":0,"passed_over":"x"}}`), "client", int64(1))
	f.Fuzz(func(t *testing.T, raw []byte, node string, seq int64) {
		stored, err := ingest.ParseForTest(raw, "r-1", node, seq)
		if err != nil {
			return
		}
		if !json.Valid(stored) {
			t.Fatalf("%q became %q, which is not JSON", raw, stored)
		}
		var v any
		if err := json.Unmarshal(stored, &v); err != nil {
			t.Fatal(err)
		}
		if hasZero(v) {
			t.Fatalf("%q became %q, which holds U+0000", raw, stored)
		}
	})
}

func hasZero(v any) bool {
	switch x := v.(type) {
	case string:
		return strings.ContainsRune(x, 0)
	case []any:
		for _, e := range x {
			if hasZero(e) {
				return true
			}
		}
	case map[string]any:
		for k, e := range x {
			if hasZero(k) || hasZero(e) {
				return true
			}
		}
	}
	return false
}

// Every type of record that nodes write is stored, or refused with a reason: a delivery that
// fails would hold up all that follows. Found on the real path with a new type.
func TestEveryTypeIsHandled(t *testing.T) {
	sources, err := filepath.Glob("../../executor/journal/*.go")
	require.NoError(t, err)
	kinds := map[journal.Type]bool{}
	for _, file := range sources {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:const )?Type\w+\s+(?:Type )?= "([a-z-]+)"`).FindAllSubmatch(b, -1) {
			kinds[journal.Type(m[1])] = true
		}
	}
	require.True(t, kinds[journal.TypeWaiting] && kinds[journal.TypeWatched] && kinds[journal.TypeTelemetry] && kinds[journal.TypeClockStepped], "%v", kinds)
	sheet := storetest.Sheet(2)
	s, _ := open(t)
	n := 0
	for kind := range kinds {
		n++
		run := storetest.AddRun(t, s, fmt.Sprintf("kind%d", n), sheet)
		j := storetest.NewJournal(run, radio.RoleClient)
		j.Begin(sheet)
		j.Add(kind, struct{}{})
		_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, string(radio.RoleClient), batch(j, 1, len(j.Records)))
		if kind != journal.TypeRunResumed && kind != journal.TypeRunStarted { // of another sheet, which ends the journal
			require.NoError(t, err, kind)
		}
	}
}

// The server's word can arrive before the client's; a delivery that is cut
// stores nothing.
func TestCancelled(t *testing.T) {
	s, _ := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "cut1", sheet)
	j := storetest.Lead(run, sheet, 2)
	in := ingest.New(ingest.Config{Store: s})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := in.Deliver(ctx, run, "client", batch(j, 1, 3))
	require.True(t, errors.Is(err, context.Canceled), err)
	committed, err := in.Deliver(t.Context(), run, "client", nil)
	require.NoError(t, err)
	require.Zero(t, committed)
}

// What the plan's rule to stop by leaves out is kept as such; a record that says so of a trial
// that has run is refused.
func TestTrialsThatAreNotNeeded(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(3)
	run := storetest.AddRun(t, s, "stop", sheet)
	in := ingest.New(ingest.Config{Store: s})
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 0, Verdict: journal.Aborted, Reason: journal.ReasonNotNeeded})
	j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 1, Verdict: journal.Aborted, Reason: journal.ReasonSkipped})
	j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 2, Verdict: journal.Failed, Reason: journal.ReasonNotNeeded})
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	all, err := s.Trials(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false}, []bool{all[0].NotNeeded, all[1].NotNeeded, all[2].NotNeeded})
	require.True(t, *all[0].Verdict == "aborted" && *all[1].Verdict == "aborted" && all[2].Verdict == nil)
	require.Contains(t, tables(t, url)["journal"], "trial 2 is not needed, and has 0 attempts and the verdict failed")
	o, err := s.RunOverview(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []int32{2, 1}, []int32{o.TrialsEnded, o.TrialsNotNeeded})
}

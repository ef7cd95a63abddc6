package whole

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/trial"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report/audit"
)

const audited = `
name: audited
radio: prc-117g-anw2c
topology: vip-lot
size: 32 KiB
treatments:
  - {name: good, label: Good, protocol: plain, options: {pace: 120ms}}
  - {name: bad, protocol: plain, options: {fault: crash}}
iterations: 4
order: fixed
seed: 1
sample_interval: 10ms
limits: {connect: 10s, transfer: 60s, attempts: 2}
`

// evidence is all that a run is audited by, in memory, so that a test can change it.
type evidence struct {
	run      audit.Run
	journals map[string][]journal.Record // of the nodes' files
	stored   map[string][]journal.Record // what they delivered
	tail     map[string]string           // bytes after the last line of a file
	spoil    map[string]func([]byte) []byte
	refused  map[string]int64 // a record that the store could not take
	exports  map[string]string
}

// gathered reads a run of a real campaign.
func gathered(t *testing.T, base string, req trial.AuditRequest) *evidence {
	t.Helper()
	e := &evidence{journals: map[string][]journal.Record{}, stored: map[string][]journal.Record{}, exports: map[string]string{}}
	require.NoError(t, trial.EachAudited(t.Context(), base, req, func(r *audit.Run) error {
		e.run = *r
		report, err := audit.Audit(r)
		require.NoError(t, err)
		require.Empty(t, failed(report), "the run as it is")
		for _, c := range report.Checks {
			if c.Code != audit.Faults {
				require.Equal(t, audit.Passed, c.State, c.Code)
			}
			t.Log(c.Code, c.Objects, c.Unit, c.Notes)
		}
		return nil
	}))
	for _, j := range e.run.Journals {
		b, err := os.ReadFile(j.Path)
		require.NoError(t, err)
		var all []journal.Record
		_, err = journal.Scan(bytes.NewReader(b), func(r journal.Record, _ int64) error { all = append(all, r); return nil })
		require.NoError(t, err)
		e.journals[all[0].Node], e.stored[all[0].Node] = all, slices.Clone(all)
	}
	for _, x := range e.run.Exports {
		f, err := x.Open()
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		f.Close()
		e.exports[x.Name] = string(b)
	}
	return e
}

// fresh is a copy that a test may change.
func (e *evidence) fresh() *evidence {
	c := &evidence{run: e.run, journals: map[string][]journal.Record{}, stored: map[string][]journal.Record{}, exports: maps.Clone(e.exports),
		tail: map[string]string{}, spoil: map[string]func([]byte) []byte{}, refused: map[string]int64{}}
	for node, all := range e.journals {
		c.journals[node] = slices.Clone(all)
	}
	for node, all := range e.stored {
		c.stored[node] = slices.Clone(all)
	}
	c.run.Parts = slices.Clone(e.run.Parts)
	c.run.Trials = slices.Clone(e.run.Trials)
	for i := range c.run.Trials {
		c.run.Trials[i].Attempts = slices.Clone(c.run.Trials[i].Attempts)
	}
	s := *e.run.Summary
	s.Treatments, s.Points = slices.Clone(s.Treatments), slices.Clone(s.Points)
	c.run.Summary = &s
	c.run.Faults = nil
	return c
}

// audit makes journals, the store and exports of the evidence, and audits them.
func (e *evidence) audit(t *testing.T) *audit.Report {
	t.Helper()
	run := e.run
	run.Journals, run.Exports = nil, nil
	for _, node := range slices.Sorted(maps.Keys(e.journals)) {
		var file bytes.Buffer
		for i := range e.journals[node] {
			b := encoded(t, &e.journals[node][i])
			fmt.Fprintf(&file, "%08x %s\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)), b)
		}
		file.WriteString(e.tail[node])
		content := file.Bytes()
		if f := e.spoil[node]; f != nil {
			content = f(content)
		}
		run.Journals = append(run.Journals, audit.Journal{Path: node + "/journal.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }})
	}
	for _, name := range slices.Sorted(maps.Keys(e.exports)) {
		content := e.exports[name]
		run.Exports = append(run.Exports, audit.Export{Name: name, From: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }})
	}
	run.Records = func(node string, bodies bool) iter.Seq2[audit.StoredRecord, error] {
		return func(yield func(audit.StoredRecord, error) bool) {
			for i := range e.stored[node] {
				r := &e.stored[node][i]
				x := audit.StoredRecord{Seq: r.Seq, Type: string(r.Type), At: r.At.Round(time.Microsecond), SHA256: sha256.Sum256(encoded(t, r)), Body: r.Body}
				if e.refused[node] == r.Seq {
					x.Type = "refused"
				}
				if !yield(x, nil) {
					return
				}
			}
		}
	}
	report, err := audit.Audit(&run)
	require.NoError(t, err)
	return report
}

func encoded(t *testing.T, r *journal.Record) []byte {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	return b
}

// failed are the checks with findings.
func failed(r *audit.Report) []string {
	var out []string
	for _, c := range r.Checks {
		if len(c.Findings) > 0 {
			out = append(out, c.Code)
		}
	}
	return out
}

// both changes a node's journal and, in step with it, what the store has of it.
func (e *evidence) both(node string, f func([]journal.Record) []journal.Record) {
	all := slices.Clone(f(e.journals[node]))
	for i := range all {
		all[i].Seq = int64(i + 1)
	}
	e.journals[node], e.stored[node] = all, slices.Clone(all)
	for i := range e.run.Parts {
		if e.run.Parts[i].Node == node {
			e.run.Parts[i].Committed = int64(len(all))
		}
	}
}

// is reports whether a record is of a type, a trial and an attempt; -1 is any.
func is(r *journal.Record, kind journal.Type, trial, attempt int) bool {
	var b struct{ Trial, Attempt int }
	_ = json.Unmarshal(r.Body, &b)
	return r.Type == kind && (trial < 0 || b.Trial == trial) && (attempt < 0 || b.Attempt == attempt)
}

// edit changes the body of the first record that is meant.
func edit(t *testing.T, all []journal.Record, kind journal.Type, trial, attempt int, f func(map[string]any)) []journal.Record {
	t.Helper()
	i := slices.IndexFunc(all, func(r journal.Record) bool { return is(&r, kind, trial, attempt) })
	require.GreaterOrEqual(t, i, 0, "%s of trial %d, attempt %d", kind, trial, attempt)
	dec := json.NewDecoder(bytes.NewReader(all[i].Body))
	dec.UseNumber()
	var body map[string]any
	require.NoError(t, dec.Decode(&body))
	f(body)
	b, err := json.Marshal(body)
	require.NoError(t, err)
	all = slices.Clone(all)
	all[i].Body = b
	return all
}

// A real campaign with failures, an interrupted attempt, a repetition, a skipped trial
// and a mark passes its audit. One thing is then changed at a time, and the audit finds
// it by the checks that are about it, and by no others.
func TestAudit(t *testing.T) {
	b := newBench(t)
	f := newFleet(b)
	res, err := b.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "audited.yaml", Text: []byte(audited)}))
	require.NoError(t, err)
	require.Empty(t, res.Msg.Problems)
	run := res.Msg.RunIds[0]
	control := linktrialv1connect.NewControlServiceClient(client.HTTP(), b.base, connect.WithGRPC())
	require.Eventually(t, func() bool { // a trial is under way
		res, err := b.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
		require.NoError(t, err)
		last := res.Msg.Trials[2].Attempts
		return len(last) > 0 && last[0].Verdict == ""
	}, time.Minute, 5*time.Millisecond)
	f.stops[radio.RoleClient]()
	_, err = control.RepeatTrial(t.Context(), connect.NewRequest(&linktrialv1.RepeatTrialRequest{RunId: run, Trial: 0, By: "ada"}))
	require.NoError(t, err)
	_, err = control.SkipTrial(t.Context(), connect.NewRequest(&linktrialv1.SkipTrialRequest{RunId: run, Trial: 7, By: "ada"}))
	require.NoError(t, err)
	f.start(radio.RoleClient)
	ended := b.end(res.Msg)
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, ended.State, ended.Message)
	_, err = control.ExcludeAttempt(t.Context(), connect.NewRequest(&linktrialv1.ExcludeAttemptRequest{RunId: run, Trial: 6, Attempt: 1, Reason: "a truck", By: "ada"}))
	require.NoError(t, err)

	out := t.TempDir()
	_, err = trial.Export(t.Context(), b.base, b.operator, &linktrialv1.ResultsRequest{RunId: run}, out, []string{"csv", "trials-csv", "json", "markdown", "samples-csv"})
	require.NoError(t, err)
	req := trial.AuditRequest{ID: run, Exports: out}
	for _, dir := range f.state {
		req.Journals = append(req.Journals, dir)
	}
	whole := gathered(t, b.base, req)
	for name, c := range corruptions(t, whole) {
		t.Run(name, func(t *testing.T) {
			e := whole.fresh()
			c.spoil(e)
			report := e.audit(t)
			if got := failed(report); !slices.Equal(got, c.want) {
				var b strings.Builder
				require.NoError(t, trial.PrintAudit(&b, []*audit.Report{report}))
				t.Errorf("findings of %q, expected of %q\n%s", got, c.want, b.String())
			}
		})
	}
	// What was not given is not checked, and the same is found without it.
	alone, err := trial.Audit(t.Context(), b.base, trial.AuditRequest{ID: res.Msg.CampaignId[:6]})
	require.NoError(t, err)
	require.Len(t, alone, 1)
	require.Empty(t, failed(alone[0]))
	require.Equal(t, audit.NotChecked, alone[0].Check(audit.Stored).State)
	require.Equal(t, audit.Passed, alone[0].Check(audit.Samples).State)
	_, err = trial.Audit(t.Context(), b.base, trial.AuditRequest{ID: run, Journals: []string{out}})
	require.ErrorContains(t, err, "no journal of "+run+" is below it, expected "+filepath.Join(run, "journal.jsonl"))
}

// corruption changes one thing; want are the checks that find it, in their order.
type corruption struct {
	want  []string
	spoil func(*evidence)
}

// counts reports whether the value of an attempt of the campaign counts. That of trial
// 0 is repeated.
func counts(a *audit.Attempt) bool {
	return a.Verdict == "succeeded" && a.Mark == nil && a.Attempt == 2
}

// attemptOf is the first attempt of the evidence that a function means.
func attemptOf(t *testing.T, e *evidence, means func(*audit.Attempt) bool) (int, *audit.Attempt) {
	t.Helper()
	for i := range e.run.Trials {
		for j := range e.run.Trials[i].Attempts {
			if a := &e.run.Trials[i].Attempts[j]; means(a) {
				return e.run.Trials[i].Trial, a
			}
		}
	}
	t.Fatal("the run has no such attempt")
	return 0, nil
}

func corruptions(t *testing.T, whole *evidence) map[string]corruption {
	out := map[string]corruption{}
	maps.Copy(out, journalCorruptions(t))
	maps.Copy(out, storeCorruptions(t))
	maps.Copy(out, exportCorruptions(t))
	maps.Copy(out, faultCorruptions(t, whole))
	return out
}

func journalCorruptions(t *testing.T) map[string]corruption {
	client := func(kind journal.Type, trial, attempt int, f func(map[string]any)) func(*evidence) {
		return func(e *evidence) {
			e.both("client", func(all []journal.Record) []journal.Record { return edit(t, all, kind, trial, attempt, f) })
		}
	}
	without := func(node string, means func(*journal.Record) bool) func(*evidence) {
		return func(e *evidence) {
			e.both(node, func(all []journal.Record) []journal.Record {
				return slices.DeleteFunc(slices.Clone(all), func(r journal.Record) bool { return means(&r) })
			})
		}
	}
	return map[string]corruption{
		"a flipped bit": {[]string{audit.Integrity, audit.Stored}, func(e *evidence) {
			e.spoil["relay"] = func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"type":"provenance"`), []byte(`"type":"provenancf"`), 1)
			}
		}},
		"a torn end":       {[]string{audit.Integrity}, func(e *evidence) { e.tail["server"] = "0123" }},
		"zeros at the end": {[]string{audit.Integrity}, func(e *evidence) { e.tail["server"] = "\x00\x00\x00" }},
		"no end of a node": {[]string{audit.Integrity}, without("relay", func(r *journal.Record) bool { return r.Type == journal.TypeRunEnded })},
		"another sheet": {[]string{audit.Integrity}, func(e *evidence) {
			e.both("server", func(all []journal.Record) []journal.Record {
				return edit(t, all, journal.TypeRunStarted, -1, -1, func(b map[string]any) { b["sheet_hash"] = strings.Repeat("0", 64) })
			})
		}},
		"a record of another": {[]string{audit.Integrity}, func(e *evidence) {
			e.both("server", func(all []journal.Record) []journal.Record {
				all = slices.Clone(all)
				all[1].Run = "other-1"
				return all
			})
		}},
		"a trial in another order": {[]string{audit.Order, audit.Clocks}, func(e *evidence) {
			e.both("client", func(all []journal.Record) []journal.Record {
				// Trial 0 at first, before it is repeated: to the place after trial 1.
				first := func(kind journal.Type, trial int) int {
					return slices.IndexFunc(all, func(r journal.Record) bool { return is(&r, kind, trial, -1) })
				}
				from, mid, to := first(journal.TypeAttemptStarted, 0), first(journal.TypeAttemptStarted, 1), first(journal.TypeTrialEnded, 1)+1
				return slices.Concat(all[:from], all[mid:to], all[from:mid], all[to:])
			})
		}},
		"as another treatment": {[]string{audit.Order}, client(journal.TypeAttemptStarted, 4, -1, func(b map[string]any) { b["iteration"] = 1 })},
		"a gap in the numbers": {[]string{audit.Attempts, audit.Numbering, audit.Digests, audit.Samples, audit.Live, audit.Exports}, func(e *evidence) {
			e.both("client", func(all []journal.Record) []journal.Record {
				all = edit(t, all, journal.TypeAttemptStarted, 4, 1, func(b map[string]any) { b["attempt"] = 2 })
				all = edit(t, all, journal.TypeAttemptEnded, 4, 1, func(b map[string]any) { b["attempt"] = 2 })
				return edit(t, all, journal.TypeTrialEnded, 4, -1, func(b map[string]any) { b["attempts"] = 2 })
			})
		}},
		"a trial that ends twice": {[]string{audit.Numbering}, func(e *evidence) {
			e.both("client", func(all []journal.Record) []journal.Record {
				i := slices.IndexFunc(all, func(r journal.Record) bool { return is(&r, journal.TypeTrialEnded, 4, -1) })
				return slices.Insert(slices.Clone(all), i, all[i])
			})
		}},
		"an attempt that ends twice": {[]string{audit.Numbering}, func(e *evidence) {
			e.both("client", func(all []journal.Record) []journal.Record {
				i := slices.IndexFunc(all, func(r journal.Record) bool { return is(&r, journal.TypeAttemptEnded, 4, -1) })
				return slices.Insert(slices.Clone(all), i, all[i])
			})
		}},
		"a trial without an end":      {[]string{audit.Attempts, audit.Trials, audit.Live}, without("client", func(r *journal.Record) bool { return is(r, journal.TypeTrialEnded, 6, -1) })},
		"a trial that ends too early": {[]string{audit.Trials, audit.Samples}, func(e *evidence) { lastOfTwo(t, e, 1) }},
		"a skip by nobody":            {[]string{audit.Trials}, without("client", func(r *journal.Record) bool { return bytes.Contains(r.Body, []byte(`"kind":"skip"`)) })},
		"a repetition by nobody":      {[]string{audit.Numbering}, without("client", func(r *journal.Record) bool { return bytes.Contains(r.Body, []byte(`"kind":"repeat"`)) })},
		"another digest at the server": {[]string{audit.Digests, audit.Live, audit.Exports}, func(e *evidence) {
			trial, a := attemptOf(t, e, counts)
			id := runsheet.TransferID(e.run.ID, trial, a.Attempt, 0).String()
			e.both("server", func(all []journal.Record) []journal.Record {
				i := slices.IndexFunc(all, func(r journal.Record) bool {
					return r.Type == journal.TypeReceived && bytes.Contains(r.Body, []byte(id))
				})
				return slices.Concat(all[:i], edit(t, all[i:], journal.TypeReceived, -1, -1, func(b map[string]any) {
					b["result"].(map[string]any)["digest"] = strings.Repeat("ab", 32)
				}))
			})
		}},
		"a sample that goes back": {[]string{audit.Samples, audit.Exports}, client(journal.TypeSamples, 4, 1, func(b map[string]any) { lastSample(b)["sent_bytes"] = 1 })},
		"a sample earlier than the one before": {[]string{audit.Samples}, client(journal.TypeSamples, 4, 1, func(b map[string]any) {
			s := b["samples"].([]any)
			before, _ := s[len(s)-2].(map[string]any)["elapsed_ns"].(json.Number).Int64()
			lastSample(b)["elapsed_ns"] = before - 1
		})},
		"samples of the other end": {[]string{audit.Samples, audit.Exports}, client(journal.TypeSamples, 4, 1, func(b map[string]any) { b["side"] = "server" })},
		"more samples than the file": {[]string{audit.Exports}, client(journal.TypeSamples, 4, 1, func(b map[string]any) {
			s := b["samples"].([]any)
			b["samples"] = s[:len(s)-1]
		})},
	}
}

// lastOfTwo takes the second attempt of a trial that failed twice out of all evidence
// but the server's samples.
func lastOfTwo(t *testing.T, e *evidence, trial int) {
	t.Helper()
	e.both("client", func(all []journal.Record) []journal.Record {
		all = slices.DeleteFunc(slices.Clone(all), func(r journal.Record) bool {
			return r.Type != journal.TypeTrialEnded && is(&r, r.Type, trial, 2)
		})
		return edit(t, all, journal.TypeTrialEnded, trial, -1, func(b map[string]any) { b["attempts"] = 1 })
	})
	e.run.Trials[trial].Attempts = e.run.Trials[trial].Attempts[:1]
	e.run.AttemptsFailed--
	e.run.Summary.Points = slices.DeleteFunc(e.run.Summary.Points, func(p audit.Point) bool { return p.Trial == trial && p.Attempt == 2 })
	e.exports = nil
}

func lastSample(b map[string]any) map[string]any {
	s := b["samples"].([]any)
	return s[len(s)-1].(map[string]any)
}

func storeCorruptions(t *testing.T) map[string]corruption {
	return map[string]corruption{
		"a record that is not stored": {[]string{audit.Stored}, func(e *evidence) {
			all := e.stored["server"]
			e.stored["server"] = all[:len(all)-1]
			for i := range e.run.Parts {
				if e.run.Parts[i].Node == "server" {
					e.run.Parts[i].Committed--
				}
			}
		}},
		"a record that nobody wrote": {[]string{audit.Stored}, func(e *evidence) {
			last := e.stored["server"][len(e.stored["server"])-1]
			last.Seq++
			e.stored["server"] = append(e.stored["server"], last)
		}},
		"a record with another content": {[]string{audit.Stored}, func(e *evidence) { e.stored["relay"][1].At = e.stored["relay"][1].At.Add(time.Second) }},
		"a record that was refused":     {[]string{audit.Stored}, func(e *evidence) { e.refused["server"] = 2 }},
		"an attempt that is not in the table": {[]string{audit.Attempts, audit.Live, audit.Exports}, func(e *evidence) {
			e.run.Trials[4].Attempts = nil
		}},
		"an attempt that nobody made": {[]string{audit.Attempts}, func(e *evidence) {
			a := e.run.Trials[4].Attempts[0]
			a.Attempt = 9
			e.run.Trials[4].Attempts = append(e.run.Trials[4].Attempts, a)
		}},
		"another verdict": {[]string{audit.Attempts, audit.Exports}, func(e *evidence) {
			i, a := attemptOf(t, e, func(a *audit.Attempt) bool { return a.Verdict == "failed" })
			e.run.Trials[i].Attempts[a.Attempt-1].Verdict = "timed-out"
		}},
		"a mark that nobody set": {[]string{audit.Attempts}, func(e *evidence) {
			i, a := attemptOf(t, e, func(a *audit.Attempt) bool { return a.Mark != nil })
			e.run.Trials[i].Attempts[a.Attempt-1].Mark = &audit.Mark{By: a.Mark.By, Verdict: a.Mark.Verdict}
		}},
		"another progress":           {[]string{audit.Live}, func(e *evidence) { e.run.TrialsEnded-- }},
		"another number of failures": {[]string{audit.Live}, func(e *evidence) { e.run.AttemptsFailed++ }},
		"another average on a page":  {[]string{audit.Live}, func(e *evidence) { e.run.Summary.Treatments[0].Average *= 1.0001 }},
		"another deviation":          {[]string{audit.Live}, func(e *evidence) { t := &e.run.Summary.Treatments[0]; t.SD += t.Average / 1000 }},
		"a point that counts":        {[]string{audit.Live}, func(e *evidence) { p := &e.run.Summary.Points[0]; p.Counts = !p.Counts }},
	}
}

func exportCorruptions(t *testing.T) map[string]corruption {
	table := func(name string, f func(rows [][]string) [][]string) func(*evidence) {
		return func(e *evidence) {
			rows, err := csv.NewReader(strings.NewReader(e.exports[name])).ReadAll()
			require.NoError(t, err)
			var b strings.Builder
			require.NoError(t, csv.NewWriter(&b).WriteAll(f(rows)))
			e.exports[name] = b.String()
		}
	}
	// cell changes a column of the first row in which it has a value.
	cell := func(name, column string, f func(string) string) func(*evidence) {
		return table(name, func(rows [][]string) [][]string {
			at := slices.Index(rows[0], column)
			require.GreaterOrEqual(t, at, 0, column)
			i := slices.IndexFunc(rows[1:], func(r []string) bool { return r[at] != "" }) + 1
			require.Positive(t, i, "no row of %s has a value of %s", name, column)
			rows[i][at] = f(rows[i][at])
			return rows
		})
	}
	replaced := func(name, old, now string) func(*evidence) {
		return func(e *evidence) {
			require.Contains(t, e.exports[name], old)
			e.exports[name] = strings.Replace(e.exports[name], old, now, 1)
		}
	}
	digit := func(s string) string { // the first digit that is not 0
		i := strings.IndexAny(s, "123456789")
		return s[:i] + string('1'+(s[i]-'0')%9) + s[i+1:]
	}
	one := []string{audit.Exports}
	out := map[string]corruption{
		"trials.csv: a row twice":     {one, table("trials.csv", func(rows [][]string) [][]string { return append(rows, rows[1]) })},
		"trials.csv: a row too few":   {one, table("trials.csv", func(rows [][]string) [][]string { return slices.Delete(rows, 1, 2) })},
		"trials.csv: counted":         {one, cell("trials.csv", "counted", func(s string) string { return map[string]string{"true": "false", "false": "true"}[s] })},
		"trials.csv: verified":        {one, cell("trials.csv", "verified", func(s string) string { return map[string]string{"true": "false", "false": "true"}[s] })},
		"trials.csv: verdict":         {one, cell("trials.csv", "verdict", func(string) string { return "timed-out" })},
		"trials.csv: iteration":       {one, cell("trials.csv", "iteration", digit)},
		"trials.csv: no such column":  {one, replaced("trials.csv", "counted", "cuonted")},
		"trials.csv: empty":           {one, func(e *evidence) { e.exports["trials.csv"] = "" }},
		"results.csv: a row too few":  {one, table("results.csv", func(rows [][]string) [][]string { return slices.Delete(rows, 1, 2) })},
		"results.json: cut short":     {one, func(e *evidence) { e.exports["results.json"] = e.exports["results.json"][:1000] }},
		"results.json: a digest":      {one, replaced("results.json", `"verified": true`, `"verified": false`)},
		"results.md: another run":     {one, replaced("results.md", "\nRun ", "\nRan ")},
		"results.md: valid":           {one, replaced("results.md", "| Good | ", "| Good | 1")},
		"samples.csv: a sample twice": {one, table("samples.csv", func(rows [][]string) [][]string { return append(rows, rows[1]) })},
	}
	for _, column := range []string{"throughput_kb_per_s", "elapsed_s", "connect_s", "sha256", "started_utc"} {
		out["trials.csv: "+column] = corruption{one, cell("trials.csv", column, digit)}
	}
	for _, column := range []string{"trials", "valid", "extra_attempts", "average_kb_per_s", "max_kb_per_s", "min_kb_per_s", "sd_kb_per_s", "median_kb_per_s", "sheet_hash"} {
		out["results.csv: "+column] = corruption{one, cell("results.csv", column, digit)}
	}
	for _, name := range []string{"average", "max", "min", "sd", "median"} {
		key := `"` + name + `_kb_per_s": `
		out["results.json: "+name] = corruption{one, func(e *evidence) {
			i := strings.Index(e.exports["results.json"], key)
			require.GreaterOrEqual(t, i, 0)
			i += len(key)
			e.exports["results.json"] = e.exports["results.json"][:i] + digit(e.exports["results.json"][i:])
		}}
	}
	return out
}

func faultCorruptions(t *testing.T, whole *evidence) map[string]corruption {
	// over returns a fault in the middle of an attempt.
	over := func(touches bool, means func(*audit.Attempt) bool) func(*evidence) {
		return func(e *evidence) {
			trial, a := attemptOf(t, whole, means)
			i := slices.IndexFunc(e.journals["client"], func(r journal.Record) bool { return is(&r, journal.TypeAttemptEnded, trial, a.Attempt) })
			end := e.journals["client"][i].At
			e.run.Faults = []faultlog.Fault{{Number: 1, Kind: faultlog.Kill, Target: faultlog.Agent, Node: "server", Touches: touches, From: end.Add(-time.Millisecond), To: end.Add(-time.Millisecond / 2)}}
		}
	}
	verdict := func(v, reason string) func(*audit.Attempt) bool {
		return func(a *audit.Attempt) bool {
			return a.Verdict == v && (reason == "" || a.Reason == reason) && a.Mark == nil
		}
	}
	return map[string]corruption{
		"a fault over a failure":       {[]string{audit.Faults}, over(true, verdict("failed", ""))},
		"a fault that touches nothing": {nil, over(false, verdict("failed", ""))},
		"a fault over a success":       {nil, over(true, verdict("succeeded", ""))},
		"an interface down over a success": {[]string{audit.Faults}, func(e *evidence) {
			over(true, verdict("succeeded", ""))(e)
			f := &e.run.Faults[0]
			f.Kind, f.Target, f.From, f.To = faultlog.RadioDown, faultlog.Radio, f.From.Add(-2*time.Second), f.To.Add(2*time.Second)
		}},
		"a fault over an interrupted attempt": {nil, over(true, verdict("aborted", "interrupted"))},
		"a fault over a marked last attempt":  {nil, over(true, func(a *audit.Attempt) bool { return a.Mark != nil })},
		"a fault that could not be injected": {nil, func(e *evidence) {
			over(true, verdict("failed", ""))(e)
			e.run.Faults[0].Error = "there is no such process"
		}},
		"a fault without an end": {[]string{audit.Faults}, func(e *evidence) {
			e.run.Faults = []faultlog.Fault{{Number: 1, Kind: faultlog.Stop, Target: faultlog.Driver, Touches: true, From: e.journals["client"][0].At}}
		}},
	}
}

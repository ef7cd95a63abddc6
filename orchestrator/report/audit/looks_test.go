package audit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/executor/stoprule"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
)

// stopping is a made-up run whose rule to stop by looks after 10 and 12 iterations of three
// treatments; tests change its journals and its sheet.
type stopping struct {
	sheet          runsheet.Sheet
	client, server []string // records: type and body
	rows           []Trial
	failed         int // attempts
	notNeeded      int
}

// stopped is the run with the journal that a leading node would write. Those of fails fail in
// every trial, the others take times of which none is the shorter one again and again.
func stopped(t testing.TB, fails string) *stopping {
	t.Helper()
	x := &stopping{sheet: runsheet.Sheet{Limits: runsheet.Limits{Transfer: time.Minute, Attempts: 1},
		Stop: &runsheet.Stop{Looks: []int{10, 12}, Alpha: 0.05, Spending: stats.Pocock}}}
	for i := range 36 {
		name := "abc"[i%3 : i%3+1]
		if i < 3 {
			x.sheet.Treatments = append(x.sheet.Treatments, runsheet.Treatment{Name: name})
		}
		x.sheet.Trials = append(x.sheet.Trials, runsheet.Trial{Index: i, Iteration: i/3 + 1, Treatment: name,
			Flows: []runsheet.Flow{{Treatment: name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 2048}}})
		x.rows = append(x.rows, Trial{Trial: i, Iteration: i/3 + 1, Treatment: name})
	}
	times, looks := stoprule.Times{}, []journal.Look(nil)
	for i := range x.sheet.Trials {
		tr := &x.sheet.Trials[i]
		if !stoprule.NotNeeded(tr, looks) {
			times.Set(tr.Treatment, tr.Iteration, x.trial(t, i, strings.Contains(fails, tr.Treatment)))
		}
		if i%3 < 2 || !slices.Contains(x.sheet.Stop.Looks, tr.Iteration) || len(looks) > 0 && looks[0].Stop {
			continue
		}
		var beaten []string
		if len(looks) > 0 {
			beaten = looks[0].Beaten
		}
		looks = append(looks, stoprule.Judge(&x.sheet, times, tr.Iteration, beaten))
		x.client = append(x.client, record(t, journal.TypeLook, looks[len(looks)-1]))
		for k := i + 1; k < len(x.rows); k++ {
			if stoprule.NotNeeded(&x.sheet.Trials[k], looks) && x.rows[k].Verdict == "" {
				x.client = append(x.client, record(t, journal.TypeTrialEnded, journal.TrialEnded{Trial: k, Verdict: journal.Aborted, Reason: journal.ReasonNotNeeded}))
				x.rows[k].Verdict, x.rows[k].NotNeeded = "aborted", true
				x.notNeeded++
			}
		}
	}
	return x
}

// trial adds a trial to the journals, and returns its time to delivery in seconds.
func (x *stopping) trial(t testing.TB, i int, fails bool) float64 {
	t.Helper()
	tr := &x.sheet.Trials[i]
	id, digest := transferID("s-1", i, 1, 0), strings.Repeat("ab", 32)
	took := time.Second + time.Duration((7*tr.Iteration+3*i)%11)*time.Millisecond
	end := journal.AttemptEnded{Trial: i, Attempt: 1, Iteration: tr.Iteration, Treatment: tr.Treatment, Verdict: journal.Failed, Reason: "reset", Duration: time.Second}
	row := Attempt{Attempt: 1, Verdict: "failed", Reason: "reset", Started: startOfRun}
	x.failed++
	if !fails {
		x.failed--
		end.Verdict, end.Reason = journal.Succeeded, ""
		row.Verdict, row.Reason, row.Rate = "succeeded", "", 2048/took.Seconds()
	}
	encoded := record(t, journal.TypeAttemptEnded, end)
	if !fails {
		result := fmt.Sprintf(`"result":{"size_bytes":2048,"elapsed_ns":%d,"digest":"%s"}`, took.Nanoseconds(), digest)
		var with map[string]any
		_, body, _ := strings.Cut(encoded, " ")
		must(t, json.Unmarshal([]byte(body), &with))
		with["flows"] = []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"flow":0,"treatment":"%s","transfer":"%s","verdict":"succeeded","connect_ns":1000000,%s}`, tr.Treatment, id, result))}
		encoded = record(t, journal.TypeAttemptEnded, with)
		x.server = append(x.server, fmt.Sprintf(`received {"treatment":"%s","transfer":"%s",%s}`, tr.Treatment, id, result))
	}
	x.client = append(x.client, record(t, journal.TypeAttemptStarted, journal.AttemptStarted{Trial: i, Attempt: 1, Iteration: tr.Iteration, Treatment: tr.Treatment, Transfers: []string{id}}),
		encoded, record(t, journal.TypeTrialEnded, journal.TrialEnded{Trial: i, Attempts: 1, Verdict: end.Verdict}))
	x.rows[i].Verdict, x.rows[i].Attempts = string(end.Verdict), []Attempt{row}
	if fails {
		return 60
	}
	return (took + time.Millisecond).Seconds()
}

var startOfRun = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func record(t testing.TB, kind journal.Type, body any) string {
	t.Helper()
	b, err := json.Marshal(body)
	must(t, err)
	return string(kind) + " " + string(b)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// findings are those of the run's audit, as people read them, with the check's code.
func (x *stopping) findings(t testing.TB) (out []string) {
	t.Helper()
	sheet, err := json.Marshal(x.sheet)
	must(t, err)
	hash := fmt.Sprintf("%x", sha256.Sum256(sheet))
	whole := func(records []string) []string {
		started := fmt.Sprintf(`run-started {"sheet_hash":"%s","trials":%d}`, hash, len(x.sheet.Trials))
		return slices.Concat([]string{started}, records, []string{`run-ended {"end":"completed"}`})
	}
	records := map[string][]string{"client": whole(x.client), "server": whole(x.server)}
	run := &Run{ID: "s-1", State: "completed", TrialsEnded: len(x.rows), TrialsNotNeeded: x.notNeeded, AttemptsFailed: x.failed, Sheet: sheet, SheetHash: hash, Trials: x.rows,
		Records: func(node string, _ bool) iter.Seq2[StoredRecord, error] {
			return func(yield func(StoredRecord, error) bool) {
				for i, r := range records[node] {
					kind, body, _ := strings.Cut(r, " ")
					if !yield(StoredRecord{Seq: int64(i + 1), Type: kind, At: startOfRun, Body: []byte(body)}, nil) {
						return
					}
				}
			}
		}}
	for node, r := range records {
		run.Parts = append(run.Parts, Part{Node: node, Role: node, Committed: int64(len(r)), Ended: "completed"})
	}
	report, err := Audit(run)
	must(t, err)
	for _, c := range report.Checks {
		for _, f := range c.Findings {
			out = append(out, c.Code+": "+f.String())
		}
	}
	return out
}

// index is the place of the first record that begins so.
func (x *stopping) index(t testing.TB, begin string) int {
	t.Helper()
	i := slices.IndexFunc(x.client, func(r string) bool { return strings.HasPrefix(r, begin) })
	if i < 0 {
		t.Fatalf("no record begins with %s", begin)
	}
	return i
}

// change replaces a text in the first record that begins so.
func (x *stopping) change(t testing.TB, begin, from, to string) {
	t.Helper()
	i := x.index(t, begin)
	now := strings.Replace(x.client[i], from, to, 1)
	if now == x.client[i] {
		t.Fatalf("%s has no %s", x.client[i], from)
	}
	x.client[i] = now
}

// What the executor's own rule writes has no findings: where nothing is beaten, where one
// treatment is and the run goes on, and where the run stops.
func TestRunsThatStop(t *testing.T) {
	for fails, want := range map[string]int{"": 0, "b": 2, "bc": 6} {
		x := stopped(t, fails)
		if found := x.findings(t); len(found) > 0 || x.notNeeded != want {
			t.Errorf("%q fail: %d trials were not needed, expected %d; %q", fails, x.notNeeded, want, found)
		}
	}
}

const lookAt10, lookAt12, endOfB11 = `look {"iteration":10`, `look {"iteration":12`, `trial-ended {"trial":31,`

// Each fault of a run with a rule to stop by is found, named by record and trial.
func TestLooksThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *stopping)
		want   string
	}{
		"no rule": {func(x *stopping) { x.sheet.Stop = nil },
			"looks: node client, record 92: there is a look after iteration 10, and the run sheet has no rule to stop by"},
		"not stated": {func(x *stopping) { x.change(t, lookAt10, "10", "9") },
			"looks: node client, record 92: there is a look after iteration 9; the run sheet states looks after iterations 10, 12"},
		"twice": {func(x *stopping) {
			i := x.index(t, lookAt10)
			x.client = slices.Insert(x.client, i, x.client[i])
		}, "looks: node client, record 93: there is a second look after iteration 10"},
		"none at the end": {func(x *stopping) { i := x.index(t, lookAt12); x.client = slices.Delete(x.client, i, i+1) },
			"looks: the run is completed, and there is no look after iteration 12"},
		"none between": {func(x *stopping) { i := x.index(t, lookAt10); x.client = slices.Delete(x.client, i, i+1) },
			"looks: node client, record 94, trial 30, attempt 1: it starts, in iteration 11, before there is a look after iteration 10"},
		"another order": {func(x *stopping) {
			i, k := x.index(t, lookAt10), x.index(t, lookAt12)
			x.client[i], x.client[k] = x.client[k], x.client[i]
		}, "looks: node client, record 92: there is a look after iteration 12, and none after iteration 10 before it"},
		"too early": {func(x *stopping) {
			i := x.index(t, lookAt10)
			look := x.client[i]
			x.client = slices.Insert(slices.Delete(x.client, i, i+1), i-1, look)
		}, "looks: node client, record 91, trial 29: there is a look after iteration 10 before the trial, of iteration 10, has ended"},
		"another rank sum": {func(x *stopping) { x.change(t, lookAt10, `"rank_sum":0,`, `"rank_sum":1,`) },
			"looks: node client, record 92: the look after iteration 10 found b against a at iteration 10, 10 pairs, rank sum 1, boundary 4, level 0.0166666667, decided: true; by the records before it: b against a at iteration 10, 10 pairs, rank sum 0, boundary 4, level 0.0166666667, decided: true"},
		"another level": {func(x *stopping) { x.change(t, lookAt10, `"level":0.05`, `"level":0.06`) },
			"level 0.06, decided: false; by the records before it: c against a at iteration 10, 10 pairs, rank sum"},
		"a comparison too few": {func(x *stopping) {
			look := x.look(t)
			look.Comparisons = look.Comparisons[1:]
			x.client[x.index(t, lookAt10)] = record(t, journal.TypeLook, look)
		}, "looks: node client, record 92: the look has 2 comparisons, 3 treatments have 3"},
		"another is beaten": {func(x *stopping) { x.change(t, lookAt12, `["b"]`, `["c"]`) },
			"by the look after iteration 12 beaten are: c, and the run stops: false; by the records before it: b, false"},
		"a fault that is none": {func(x *stopping) { x.change(t, lookAt12, `"iteration":12,`, `"iteration":12,"fault":"no time",`) },
			`by the journal the rule could not be followed: "no time"; by the records before it: ""`},
		"a time that is another": {func(x *stopping) { x.change(t, `attempt-ended {"attempt":1`, `"elapsed_ns":100`, `"elapsed_ns":900`) },
			"looks: node client, record 92: the look after iteration 10 found c against a"},
		"one that is beaten runs": {func(x *stopping) {
			i := x.index(t, endOfB11)
			x.client = slices.Delete(x.client, i, i+1)
			before := len(x.client)
			x.trial(t, 31, true)
			ran := slices.Clone(x.client[before:])
			x.client = slices.Insert(x.client[:before], x.index(t, `attempt-started {"trial":32,`), ran...)
			x.rows[31].NotNeeded = false
		}, "trial 31, attempt 1: it starts, and by the look after iteration 10 (record 92) b is beaten"},
		"not needed without a look": {func(x *stopping) {
			i := x.index(t, `attempt-started {"trial":32,`)
			x.client = slices.Delete(x.client, i, i+2)
			x.change(t, `trial-ended {"trial":32,`, `"attempts":1,"verdict":"succeeded"`, `"attempts":0,"verdict":"aborted","reason":"not-needed"`)
		}, "trial 32: it ended as not needed, and no look says so"},
		"not needed after an attempt": {func(x *stopping) {
			x.change(t, `trial-ended {"trial":30,`, `"verdict":"succeeded"`, `"verdict":"succeeded","reason":"not-needed"`)
		},
			"trial 30: it ended as not needed, and no look says so"},
		"not needed with a verdict": {func(x *stopping) { x.change(t, endOfB11, "aborted", "failed") },
			"trial 31: it ended as not needed with the verdict failed after 0 attempts; what is not needed is aborted, without any"},
		"another reason": {func(x *stopping) { x.change(t, endOfB11, "not-needed", "skipped") },
			"trial 31: it ended as aborted skipped, expected as not needed: by the look after iteration 10 (record 92) b is beaten"},
		"not ended": {func(x *stopping) { i := x.index(t, endOfB11); x.client = slices.Delete(x.client, i, i+1) },
			"trials: trial 31: it has not ended, and the run is completed: no reason is stated"},
		"the store has another reason": {func(x *stopping) { x.rows[31].NotNeeded = false },
			"attempts: trial 31: the store has it as not needed: false, the journal: true"},
		"lists have another number": {func(x *stopping) { x.notNeeded++ },
			"live: lists and pages show 3 trials that were not needed, the journal has 2"},
		"of another node": {func(x *stopping) { x.server = append(x.server, x.client[x.index(t, lookAt10)]) },
			"look in the journal of a server; only the leading node, the client, writes it"},
	} {
		x := stopped(t, "b")
		c.change(x)
		if found := strings.Join(x.findings(t), "\n"); !strings.Contains(found, c.want) {
			t.Errorf("%s: expected %s, found\n%s", name, c.want, found)
		}
	}
}

// look is the first one of the journal.
func (x *stopping) look(t testing.TB) (l journal.Look) {
	t.Helper()
	_, body, _ := strings.Cut(x.client[x.index(t, lookAt10)], " ")
	must(t, json.Unmarshal([]byte(body), &l))
	return l
}

// After a look that stops the run nothing is looked at, and nothing runs.
func TestNothingAfterTheLastLook(t *testing.T) {
	x := stopped(t, "bc")
	l := x.look(t)
	l.Iteration = 12
	x.client = append(x.client, record(t, journal.TypeLook, l))
	if found := strings.Join(x.findings(t), "\n"); !strings.Contains(found, "there is a look after iteration 12, and the look after iteration 10 has stopped the run") {
		t.Error(found)
	}
	x = stopped(t, "bc")
	x.trial(t, 35, false)
	if found := strings.Join(x.findings(t), "\n"); !strings.Contains(found, "trial 35, attempt 1: it starts, and the look after iteration 10 (record 92) has stopped the run") {
		t.Error(found)
	}
}

// A trial's time is that with the attempts before that the protocol failed; what the apparatus
// or nothing explains is not part of it, and a trial that was skipped tells nothing.
func TestTimeToDeliveryAtALook(t *testing.T) {
	ended := func(v journal.Verdict, reason string) *attempt {
		return &attempt{ended: true, verdict: v, reason: reason, duration: 5 * time.Second}
	}
	fine := ended(journal.Succeeded, "")
	fine.flows = []journal.FlowResult{{ConnectNS: 1e9}, {ConnectNS: 2e9}}
	of := []runsheet.Flow{{Start: time.Second}, {Start: 3 * time.Second}} // from 1 s to 5 s
	for name, c := range map[string]struct {
		attempts []*attempt
		took     time.Duration
		tells    bool
	}{
		"at once":            {[]*attempt{fine}, 4 * time.Second, true},
		"after a failure":    {[]*attempt{ended(journal.Failed, "reset"), fine}, 9 * time.Second, true},
		"after a fault":      {[]*attempt{ended(journal.Invalid, "radio-down"), ended(journal.Aborted, "interrupted"), fine}, 4 * time.Second, true},
		"failed":             {[]*attempt{ended(journal.Failed, "reset"), ended(journal.TimedOut, "")}, -1, true},
		"two undetermined":   {[]*attempt{fine, ended(journal.Invalid, "undetermined"), ended(journal.Invalid, "undetermined")}, 4 * time.Second, true},
		"three undetermined": {[]*attempt{fine, ended(journal.Invalid, "undetermined"), ended(journal.Invalid, "undetermined"), ended(journal.Invalid, "undetermined")}, 4 * time.Second, false},
		"false values":       {[]*attempt{ended(journal.Invalid, "more-than-sent")}, 0, false},
		"skipped":            {[]*attempt{ended(journal.Aborted, "skipped")}, 0, false},
		"without an end":     {[]*attempt{{}}, 0, false},
	} {
		if took, tells := (&trial{attempts: c.attempts}).delivered(of); tells != c.tells || tells && took != c.took {
			t.Errorf("%s: %s, %t; expected %s, %t", name, took, tells, c.took, c.tells)
		}
	}
}

// A trial that was not needed is no trial of its treatment; one that was skipped is excluded.
func TestSummariesWithoutWhatWasNotNeeded(t *testing.T) {
	a := &auditor{run: &Run{Trials: []Trial{{Trial: 0, Verdict: "aborted"}, {Trial: 1, Verdict: "aborted"}}},
		sheet: &runsheet.Sheet{Trials: []runsheet.Trial{{Treatment: "a", Flows: make([]runsheet.Flow, 1)}, {Treatment: "a", Flows: make([]runsheet.Flow, 1)}}}}
	a.history.trials = map[int]*trial{0: {closed: true, ended: &journal.TrialEnded{Reason: journal.ReasonSkipped}}, 1: {closed: true, ended: &journal.TrialEnded{Reason: journal.ReasonNotNeeded}}}
	if _, by := a.summaries(nil); by["a"].trials != 1 || by["a"].excluded != 1 {
		t.Errorf("%+v", by["a"])
	}
}

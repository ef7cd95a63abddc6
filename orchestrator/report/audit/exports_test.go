package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is a run of one trial that succeeded, by the store's records alone.
func small(t testing.TB) *Run { return smallWith(t, "") }

// smallWith is it with a record more of the client, before the attempt's end.
func smallWith(t testing.TB, record string) *Run {
	t.Helper()
	sheet := `{"trials":[{"index":0,"iteration":1,"treatment":"one","channel_seed":"1","flows":[{"treatment":"one","from":"client","to":"server","size_bytes":2048,"payload_seed":"1"}]}],"limits":{"transfer_ns":300000000000,"attempts":1},"seed":"1"}`
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(sheet)))
	at := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	digest := strings.Repeat("ab", 32)
	id := transferID("c-1", 0, 1, 0)
	result := `"result":{"size_bytes":2048,"elapsed_ns":500000000,"digest":"` + digest + `"}`
	records := map[string][]string{
		"client": {
			`run-started {"sheet_hash":"` + hash + `","trials":1}`,
			`attempt-started {"trial":0,"attempt":1,"iteration":1,"treatment":"one","transfers":["` + id + `"]}`,
			`attempt-ended {"trial":0,"attempt":1,"iteration":1,"treatment":"one","verdict":"succeeded","flows":[{"flow":0,"treatment":"one","transfer":"` + id + `","verdict":"succeeded","connect_ns":1000000,` + result + `}]}`,
			`trial-ended {"trial":0,"attempts":1,"verdict":"succeeded"}`,
			`run-ended {"end":"completed"}`,
		},
		"server": {
			`run-started {"sheet_hash":"` + hash + `","trials":1}`,
			`received {"treatment":"one","transfer":"` + id + `",` + result + `}`,
			`run-ended {"end":"completed"}`,
		},
	}
	if record != "" {
		records["client"] = slices.Insert(records["client"], 2, record)
	}
	return &Run{ID: "c-1", State: "completed", TrialsEnded: 1, Sheet: []byte(sheet), SheetHash: hash,
		Parts: []Part{{Node: "client", Role: "client", Committed: int64(len(records["client"])), Ended: "completed"}, {Node: "server", Role: "server", Committed: 3, Ended: "completed"}},
		Trials: []Trial{{Trial: 0, Iteration: 1, Treatment: "one", Verdict: "succeeded", Attempts: []Attempt{
			{Attempt: 1, Verdict: "succeeded", Started: at, Rate: 4096}}}},
		Summary: &Summary{Treatments: []TreatmentSummary{{Name: "one", Planned: 1, Valid: 1, Average: 4096, Min: 4096, Max: 4096}}, Points: []Point{{Attempt: 1, Rate: 4096, Counts: true}}},
		Records: func(node string, _ bool) iter.Seq2[StoredRecord, error] {
			return func(yield func(StoredRecord, error) bool) {
				for i, r := range records[node] {
					kind, body, _ := strings.Cut(r, " ")
					if !yield(StoredRecord{Seq: int64(i + 1), Type: kind, At: at, Body: []byte(body)}, nil) {
						return
					}
				}
			}
		}}
}

// exports are the files of the small run.
func exportsOf(run *Run) map[string]string {
	return map[string]string{
		"trials.csv": "run,trial,iteration,treatment,attempt,counted,verdict,reason,started_utc,elapsed_s,connect_s,throughput_kb_per_s,verified,sha256\n" +
			"c-1,0,1,one,1,true,succeeded,,2026-11-23T00:00:00.000Z,0.500000,0.001000,4.0000,true," + strings.Repeat("ab", 32) + "\n",
		"results.csv": "run,treatment,trials,valid,failed,excluded,not_ended,extra_attempts,average_kb_per_s,max_kb_per_s,min_kb_per_s,sd_kb_per_s,median_kb_per_s,sheet_hash,delivery_horizon_s,delivered_share,delivery_mean_s\n" +
			"c-1,one,1,1,0,0,0,0,4.0000,4.0000,4.0000,,4.0000," + run.SheetHash + ",300,1,0.501\n",
		"delivery.csv": "run,treatment,trials,horizon_s,delivery_s,delivered,delivered_share\nc-1,one,1,300,0.501,1,1\n",
		"results.json": `{"dataset":{"runs":[{"id":"c-1","sheet_hash":"` + run.SheetHash + `","trials":[{"trial":0,"verdict":"succeeded","attempts":[{"attempt":1,"verdict":"succeeded","size_bytes":2048,"elapsed_ns":500000000,"connect_ns":1000000,"digest":"` + strings.Repeat("ab", 32) + `","verified":true}]}]}]},
			"tables":[{"run":"c-1","rows":[{"treatment":"one","trials":1,"valid":1,"failed":0,"excluded":0,"not_ended":0,"extra_attempts":0,"average_kb_per_s":4,"max_kb_per_s":4,"min_kb_per_s":4,"sd_kb_per_s":null,"median_kb_per_s":4,"delivery":{"horizon_s":300,"share":1,"mean_s":0.501}}]}]}`,
		"results.md":  "# Results\n\n## x\n\n| Treatment | Valid | Average | Max | Min | SD | Median |\n|---|\n| one | 1/1 | 4.00 | 4.00 | 4.00 | – | 4.00 |\n\nRun c-1, sheet x.\n",
		"samples.csv": "run,trial,attempt,flow,side,sent_bytes\n",
	}
}

func auditWith(t testing.TB, name, content string) *Report {
	t.Helper()
	run := small(t)
	run.Exports = []Export{{Name: name, From: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}}
	report, err := Audit(run)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestSmallRun(t *testing.T) {
	for name, content := range exportsOf(small(t)) {
		report := auditWith(t, name, content)
		for _, c := range report.Checks {
			if len(c.Findings) > 0 {
				t.Errorf("%s: %s: %v", name, c.Code, c.Findings)
			}
		}
	}
}

// FuzzExports: whatever is in an exported file, the audit ends, and what it says of it
// can be sent as JSON.
func FuzzExports(f *testing.F) {
	for name, content := range exportsOf(small(f)) {
		f.Add(name, content)
	}
	f.Add("trials.csv", "run,trial\nc-1\n")
	f.Add("results.json", `{"tables":[{"run":"c-1","rows":[null]}]}`)
	f.Fuzz(func(t *testing.T, name, content string) {
		report := auditWith(t, name, content)
		if _, err := json.Marshal(report); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzRecords: whatever a journal's records say, the audit ends.
func FuzzRecords(f *testing.F) {
	f.Add("attempt-started", `{"trial":0,"attempt":1}`)
	f.Add("attempt-ended", `{"trial":0,"attempt":1,"verdict":"succeeded","flows":[{},{}]}`)
	f.Add("trial-ended", `{"trial":0,"attempts":-1}`)
	f.Add("command", `{"kind":"repeat","trial":0}`)
	f.Add("command", `{"kind":"skip","trial":7}`)
	f.Add("samples", `{"trial":0,"attempt":1,"flow":0,"side":"client","samples":[{},{}]}`)
	f.Add("received", `{"transfer":"00"}`)
	f.Add("look", `{"iteration":1,"comparisons":[{}],"beaten":["one"],"stop":true}`)
	f.Add("trial-ended", `{"trial":0,"attempts":0,"verdict":"aborted","reason":"not-needed"}`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		run := small(t)
		whole := run.Records
		run.Records = func(node string, bodies bool) iter.Seq2[StoredRecord, error] {
			return func(yield func(StoredRecord, error) bool) {
				for r, err := range whole(node, bodies) {
					if !yield(r, err) || r.Seq == 2 && !yield(StoredRecord{Seq: 2, Type: kind, Body: []byte(body)}, nil) {
						return
					}
				}
			}
		}
		report, err := Audit(run)
		if err != nil || report.Findings() == 0 {
			t.Fatalf("a record twice is no finding: %v", err)
		}
	})
}

func TestTransferID(t *testing.T) {
	// printf RUN/4/1/0 | sha256sum | cut -c1-32
	sum := sha256.Sum256([]byte("RUN/4/1/0"))
	if got, want := transferID("RUN", 4, 1, 0), hex.EncodeToString(sum[:])[:32]; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}

// A file that was exported before an attempt was marked is one finding, whatever differs in it.
func TestMarkYoungerThanFile(t *testing.T) {
	for name, content := range exportsOf(small(t)) {
		run := small(t)
		row := &run.Trials[0].Attempts[0]
		row.Mark = &Mark{By: "ada", Reason: "truck in the way", Verdict: row.Verdict}
		row.Verdict, row.Reason, run.Trials[0].Verdict = "invalid", "marked: truck in the way", "invalid"
		run.Summary = nil
		run.Exports = []Export{{Name: name, From: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}}
		report, err := Audit(run)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, c := range report.Checks {
			if c.Code == Exports {
				for _, f := range c.Findings {
					found = append(found, f.Message)
				}
			}
		}
		want := 1
		if name == "samples.csv" { // no value of it depends on a mark
			want = 0
		}
		if len(found) != want || want == 1 && !strings.HasPrefix(found[0], "the mark is younger than the file") {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// Each file's times to delivery are held against the journals.
func TestTimesToDeliveryThatDiffer(t *testing.T) {
	files := exportsOf(small(t))
	for _, c := range []struct{ file, from, to, want string }{
		{"results.csv", ",300,1,0.501", ",60,1,0.501", "delivery_horizon_s is 60, by the journals 300"},
		{"results.csv", ",300,1,0.501", ",300,0.5,0.501", "delivered_share is 0.5, by the journals 1"},
		{"results.csv", ",300,1,0.501", ",300,1,0.5", "delivery_mean_s is 0.5, by the journals 0.501"},
		{"results.csv", ",300,1,0.501", ",,,", "delivery_mean_s is NaN, by the journals 0.501"},
		{"results.json", `"mean_s":0.501`, `"mean_s":null`, "delivery_mean_s is NaN, by the journals 0.501"},
		{"delivery.csv", "0.501", "0.6", "trial 1 of those that were delivered was there after 0.6 s, by the journals after 0.501 s"},
		{"delivery.csv", "c-1,one,1,300,0.501,1,1", "c-1,one,1,300,0.501,2,1", "2 trials were delivered by 0.501 s, by the journals 1 in all"},
		{"delivery.csv", "c-1,one,1,300,0.501,1,1", "c-1,one,1,300,,,", "0 trials were delivered, by the journals 1"},
		{"delivery.csv", "c-1,one", "c-1,two", "treatment two has a row, and no trials"},
	} {
		content := strings.Replace(files[c.file], c.from, c.to, 1)
		found := fmt.Sprint(auditWith(t, c.file, content).Check(Exports).Findings)
		if content == files[c.file] || !strings.Contains(found, c.want) {
			t.Errorf("%s with %q: %s, expected %q", c.file, c.to, found, c.want)
		}
	}
}

// A trial that failed is waited for up to the horizon; what it took before it succeeded counts.
func TestTimesToDeliveryOfFailures(t *testing.T) {
	values := []value{
		{trial: 0, verdict: "failed", duration: 60 * time.Second}, {trial: 0, verdict: "succeeded", counted: true, connect: time.Second, elapsed: 9 * time.Second},
		{trial: 1, verdict: "invalid", duration: 60 * time.Second}, {trial: 1, verdict: "succeeded", counted: true, elapsed: 10 * time.Second},
	}
	spent := spentBy(values)
	if spent[0] != 70*time.Second || spent[1] != 10*time.Second {
		t.Errorf("%v", spent)
	}
	s := &summary{}
	s.wait(65*time.Second, spent[0], true)
	s.wait(65*time.Second, spent[1], true)
	s.wait(65*time.Second, 0, false)
	s.wait(0, 0, false)
	if got := s.deliveryValue("delivery_mean_s"); !near(got, 140./3) || len(s.delivered) != 1 || s.outcomes != 3 {
		t.Errorf("%v: %+v", got, s)
	}
}

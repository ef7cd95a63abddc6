package document_test

import (
	"strconv"
	"strings"
	"testing"

	"linktrial/executor/journal"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/wording"
)

// Every trial is there once, with the throughput that counts.
func TestEveryTrialIsThereOnce(t *testing.T) {
	for name, v := range analyses() {
		rate := v.RateUnit()
		tables := tablesOf(sectionsOf(of(t, v), "appendix"))
		for i := range v.Dataset.Runs {
			r := &v.Dataset.Runs[i]
			if len(r.Trials) == 0 {
				continue
			}
			if len(tables) == 0 || len(tables[0].Rows) != len(r.Trials) {
				t.Fatalf("%s: run %s does not have its %d rows", name, r.ID, len(r.Trials))
			}
			for k, row := range tables[0].Rows {
				trial := &r.Trials[k]
				throughput := ""
				if a := trial.Counted(); a != nil {
					kbps := a.ThroughputBytesPerSecond() / unit.KB
					throughput = rate.Write(&kbps)
				}
				if row.Cells[0] != strconv.Itoa(trial.Index) || row.Cells[1] != strconv.Itoa(trial.Iteration) ||
					!strings.HasPrefix(row.Cells[2], wording.Clean(r.LabelOf(trial.Treatment))) || row.Cells[4] != strconv.Itoa(len(trial.Attempts)) || row.Cells[8] != throughput {
					t.Errorf("%s: run %s: trial %d has the row %q", name, r.ID, trial.Index, row.Cells)
				}
				if (row.Cells[10] == "") != (throughput != "" || len(trial.Attempts) == 0 || trial.Attempts[len(trial.Attempts)-1].Verdict == "" || r.ProbesAlone(trial)) {
					t.Errorf("%s: run %s: trial %d has the reason %q", name, r.ID, trial.Index, row.Cells[10])
				}
			}
			tables = tables[1:]
		}
		if len(tables) > 0 {
			t.Errorf("%s: %d tables too many", name, len(tables))
		}
	}
}

// A row says what a trial came to, when, and why it has no value.
func TestOutcomesOfTrials(t *testing.T) {
	ds := reporttest.Eventful()
	excluded := &ds.Runs[0].Trials[1]
	excluded.Attempts[0].Verdict, excluded.Attempts[0].Reason, excluded.Attempts[0].Message = journal.Invalid, "marked", "by ada: the antenna fell"
	ds.Runs = append(ds.Runs, reporttest.Stopped().Runs...)
	v := report.Analyse(ds, report.Options{})
	tables := tablesOf(sectionsOf(of(t, v), "appendix"))
	row := func(table, trial int) string { return strings.Join(tables[table].Rows[trial].Cells, "|") }
	for got, want := range map[string]string{
		row(0, 0): "0|1|TCP CUBIC|succeeded|1|2026-03-14 07:26:53|2097152|",
		row(0, 1): "|invalid|1|",
		row(0, 3): "|timed-out|1|",
		row(0, 7): "|UDT|succeeded|2|",
		row(2, 5): "|not ended|1|",
		row(2, 6): "|not ended|0|||||||",
	} {
		if !strings.Contains("|"+got+"|", want) {
			t.Errorf("%q does not have %q", got, want)
		}
	}
	for trial, want := range map[int]string{1: "marked: by ada: the antenna fell", 3: "transfer-timeout: no acknowledgement within 300 s", 9: "unverified"} {
		if cells := tables[0].Rows[trial].Cells; cells[10] != want {
			t.Errorf("trial %d: reason %q, expected %q", trial, cells[10], want)
		}
	}
	notNeeded := 0
	for _, r := range tables[3].Rows {
		if r.Cells[3] == "not needed" {
			notNeeded++
		}
	}
	want := 0
	for i := range ds.Runs[3].Trials {
		if ds.Runs[3].NotNeeded(&ds.Runs[3].Trials[i]) {
			want++
		}
	}
	if notNeeded != want || want == 0 {
		t.Errorf("%d trials were not needed, expected %d", notNeeded, want)
	}
}

// BenchmarkReport is the report of a campaign of 10 000 trials, as a page: of many runs, and
// of one.
func BenchmarkReport(b *testing.B) {
	one := reporttest.Campaign(reporttest.NewRun("r", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 2500, reporttest.Cubic, reporttest.BBR, reporttest.SCTP, reporttest.UDT))
	for name, ds := range map[string]*report.Dataset{"500 runs": reporttest.Big(500, 5), "one run": one} {
		v := report.Analyse(ds, report.Options{})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var size counter
				if err := document.HTML(&size, of(b, v)); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(size), "B/page")
			}
		})
	}
}

// counter counts what is written.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

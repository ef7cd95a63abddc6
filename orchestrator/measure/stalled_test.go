package measure_test

import (
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/report"
)

// transfer is a trial whose 8 s of transfer ended so, with what had been delivered after 20 s.
func transfer(treatment string, verdict journal.Verdict, reason string, delivered int64) report.Trial {
	return report.Trial{Iteration: 1, Treatment: treatment, Verdict: verdict, Attempts: []report.Attempt{{Attempt: 1, Verdict: verdict, Reason: reason,
		Flows: []report.Flow{{Treatment: treatment, Verdict: verdict, Bound: 8 * time.Second, LastBytes: delivered, LastAt: 20 * time.Second}}}}}
}

// Where time limits ended all transfers, what they delivered shows that pictures and files
// take too long, or leaves it open.
func TestTransfersThatTimeLimitsEnded(t *testing.T) {
	slow := func(name string, delivered int64) report.Trial {
		return transfer(name, journal.TimedOut, "transfer-timeout", delivered)
	}
	alone := func(name string) report.Trial { return transfer(name, journal.TimedOut, "connect-timeout", 0) }
	const noPicture = "no: time of 100 KiB, client → server: more than "
	for _, x := range []struct {
		name        string
		tcp, haul   report.Trial
		change      func(*report.RunTable, *report.Run)
		want        string // pictures, files
		says, never string // in the text of the page
	}{
		// 8 KiB in 8 s: 100 s of a picture, less a tenth.
		{"little was delivered", slow("tcp-cubic", 4<<10), slow("haul", 8<<10), nil, "no no",
			noPicture + "90 s, expected at most 60 s (ours); TCP CUBIC delivered at most 4 KiB in 8 s; Haul delivered at most 8 KiB in 8 s", "not measured: Transfer"},
		// 16 KiB in 8 s: 50 s of a picture, 5120 s of a file.
		{"pictures are left open", slow("tcp-cubic", 4<<10), slow("haul", 16<<10), nil, "undecided no", "no: time of 10 MiB, client → server: more than 4608 s", noPicture},
		{"the margin leaves pictures open", slow("tcp-cubic", 4<<10), slow("haul", 13<<10), nil, "undecided no", "Transfer of Haul: timed-out", noPicture},
		{"nothing was delivered", slow("tcp-cubic", 0), slow("haul", 0), nil, "no no", noPicture + "60 s, expected at most 60 s (ours); TCP CUBIC delivered nothing in 8 s", "Inf"},
		{"neither connected", alone("tcp-cubic"), alone("haul"), nil, "no no", "TCP CUBIC did not connect within 3 s; Haul did not connect within 3 s", "Inf"},
		{"one connected", alone("tcp-cubic"), slow("haul", 8<<10), nil, "no no", noPicture + "90 s", "Inf"},
		{"neither connected, and small packets arrived one way", alone("tcp-cubic"), alone("haul"), func(r *report.RunTable, _ *report.Run) {
			*row(r, "idle", radio.RoleServer) = probe("idle", radio.RoleServer, 160, 160, 0)
		}, "undecided undecided", "Transfer of Haul: timed-out", noPicture},
		{"a fault of the apparatus", slow("tcp-cubic", 0), transfer("haul", journal.Invalid, "radio-fault", 0), nil, "undecided undecided", "Transfer of Haul: invalid: radio-fault", noPicture},
		{"aborted", slow("tcp-cubic", 0), transfer("haul", journal.Aborted, "", 0), nil, "undecided undecided", "Transfer of Haul: aborted", noPicture},
		{"an error of the driver", transfer("tcp-cubic", journal.Failed, "reset", 0), slow("haul", 0), nil, "undecided undecided", "Transfer of TCP CUBIC: failed: reset", noPicture},
		{"no sample", slow("tcp-cubic", 0), slow("haul", 0), func(_ *report.RunTable, r *report.Run) {
			r.Trials[1].Attempts[0].Flows[0].LastAt = 0
		}, "undecided undecided", "Transfer of Haul: timed-out", noPicture},
		{"samples that ended before the time", slow("tcp-cubic", 0), slow("haul", 0), func(_ *report.RunTable, r *report.Run) {
			r.Trials[0].Attempts[0].Flows[0].LastAt = 7 * time.Second
		}, "undecided undecided", "Transfer of Haul: timed-out", noPicture},
		{"another trial of it is not over", slow("tcp-cubic", 0), slow("haul", 0), func(_ *report.RunTable, r *report.Run) {
			r.Trials = append(r.Trials, report.Trial{Iteration: 2, Treatment: "haul"})
		}, "undecided undecided", "Transfer of Haul: timed-out", noPicture},
		{"one was carried", slow("tcp-cubic", 0), transfer("haul", journal.Succeeded, "", 0), func(r *report.RunTable, _ *report.Run) {
			r.Rows[1] = report.Row{Treatment: "haul", Label: "Haul", Trials: 1, Valid: 1, AverageKBps: of(220)}
		}, "yes yes", "at the 220 KB/s of Haul", "more than"},
	} {
		t.Run(x.name, func(t *testing.T) {
			table := good()
			run := report.Run{Sheet: &runsheet.Sheet{Limits: runsheet.Limits{Connect: 3 * time.Second}}, Trials: []report.Trial{x.tcp, x.haul}}
			for i := range table.Rows {
				a := run.Trials[i].Attempts[0]
				table.Rows[i].Valid, table.Rows[i].AverageKBps, table.Rows[i].Failures = 0, nil, []report.Failure{{Verdict: a.Verdict, Reason: a.Reason, Attempts: 1}}
			}
			if x.change != nil {
				x.change(&table, &run)
			}
			v := measure.ValuesOf([]report.RunTable{table}, []report.Run{run})
			uses := measure.Judge(&v, measure.Whole, measure.Defaults)
			if got := string(uses[3].Outcome + " " + uses[4].Outcome); got != x.want {
				t.Errorf("%s, expected %s", got, x.want)
			}
			page := measure.Page{Campaign: "m4t7xk2p", Values: v, Uses: uses}
			text := page.Text() + string(page.CSV())
			if !strings.Contains(text, x.says) || strings.Contains(text, x.never) {
				t.Errorf("expected %q and no %q in\n%s", x.says, x.never, text)
			}
		})
	}
}

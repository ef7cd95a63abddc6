package render

import (
	"cmp"
	"io"
	"strconv"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/protocols/contract"
)

type attemptRow struct {
	ds    *report.Dataset
	run   *report.Run
	table *report.RunTable
	trial *report.Trial
	*report.Attempt
	radio *report.RadioReport
}

// trialColumns are those of trials.csv and trials.parquet.
func trialColumns() []typed[attemptRow] {
	hops := func(value func(*report.RadioReport) int64) func(attemptRow) *int64 {
		return func(r attemptRow) *int64 {
			if r.radio == nil {
				return nil
			}
			return new(value(r.radio))
		}
	}
	return []typed[attemptRow]{
		textColumn("campaign", func(r attemptRow) string { return r.ds.Campaign }),
		textColumn("plan", func(r attemptRow) string { return r.ds.Plan }),
		textColumn("run", func(r attemptRow) string { return r.run.ID }),
		textColumn("run_state", func(r attemptRow) string { return r.run.State }),
		textColumn("place", func(r attemptRow) string { return r.run.Place }),
		textColumn("radio", func(r attemptRow) string { return r.table.Radio }),
		textColumn("topology", func(r attemptRow) string { return r.table.Topology }),
		wholeColumn("trial", func(r attemptRow) *int64 { return new(int64(r.trial.Index)) }),
		wholeColumn("iteration", func(r attemptRow) *int64 { return new(int64(r.trial.Iteration)) }),
		textColumn("treatment", func(r attemptRow) string { return r.trial.Treatment }),
		textColumn("trial_verdict", func(r attemptRow) string { return string(r.trial.Verdict) }),
		wholeColumn("attempt", func(r attemptRow) *int64 { return new(int64(r.Attempt.Attempt)) }),
		flagColumn("counted", func(r attemptRow) bool { return r.trial.Counted() == r.Attempt }),
		textColumn("verdict", func(r attemptRow) string { return string(r.Verdict) }),
		textColumn("reason", func(r attemptRow) string { return r.Reason }),
		textColumn("message", func(r attemptRow) string { return r.Message }),
		instantColumn("started_utc", func(r attemptRow) time.Time { return r.Started }),
		wholeColumn("size_bytes", func(r attemptRow) *int64 { return &r.SizeBytes }),
		secondsColumn("elapsed_s", func(r attemptRow) time.Duration { return r.Elapsed }),
		secondsColumn("connect_s", func(r attemptRow) time.Duration { return r.Connect }),
		secondsColumn("duration_s", func(r attemptRow) time.Duration { return r.Duration }),
		numberColumn("throughput_kb_per_s", func(r attemptRow) *float64 {
			if rate := r.ThroughputBytesPerSecond() / unit.KB; rate > 0 {
				return &rate
			}
			return nil
		}),
		secondsColumn("ideal_s", func(r attemptRow) time.Duration { return r.Ideal }),
		numberColumn("share_of_ideal", shareOfBound(func(r attemptRow) time.Duration { return r.Ideal })),
		flagColumn("verified", func(r attemptRow) bool { return r.Verified }),
		textColumn("sha256", func(r attemptRow) string { return r.Digest }),
		wholeColumn("retransmits", func(r attemptRow) *int64 { return r.Retransmits }),
		wholeColumn("timeouts", func(r attemptRow) *int64 { return r.Timeouts }),
		wholeColumn("radio_sent_packets", hops(func(r *report.RadioReport) int64 { return r.SentPackets })),
		wholeColumn("radio_lost_packets", hops(func(r *report.RadioReport) int64 { return r.LostPackets })),
		wholeColumn("radio_dropped_packets", hops(func(r *report.RadioReport) int64 { return r.DroppedPackets })),
		numberColumn("radio_busy_share", func(r attemptRow) *float64 {
			if r.radio == nil {
				return nil
			}
			return &r.radio.BusyShare
		}),
		secondsColumn("coded_bound_s", func(r attemptRow) time.Duration { return r.CodedBound }),
		numberColumn("share_of_coded_bound", shareOfBound(func(r attemptRow) time.Duration { return r.CodedBound })),
		textColumn("throughput_of", func(r attemptRow) string {
			switch {
			case r.ThroughputBytesPerSecond() <= 0:
				return ""
			case r.Window != nil:
				return "window"
			case r.Estimated():
				return "estimate"
			}
			return "transfer"
		}),
		textColumn("path_devices", paths(func(p *contract.PathResult) string { return cmp.Or(p.Device, p.Address) })),
		textColumn("path_bytes", paths(func(p *contract.PathResult) string { return strconv.FormatInt(p.Bytes, 10) })),
		textColumn("path_shares", paths(func(p *contract.PathResult) string { return nine(&p.Share) })),
		textColumn("undecided_rules", func(r attemptRow) string { return strings.Join(r.Undecided, "; ") }),
		numberColumn("host_missed_s", host(func(h *journal.HostLoad) time.Duration { return h.Missed })),
		numberColumn("host_longest_s", host(func(h *journal.HostLoad) time.Duration { return h.Longest })),
		wholeColumn("control_packets_client", controlPackets(radio.RoleClient)),
		wholeColumn("control_packets_relay", controlPackets(radio.RoleRelay)),
		wholeColumn("control_packets_server", controlPackets(radio.RoleServer)),
		textColumn("imported", func(r attemptRow) string { return r.run.Imported.Text() }),
		numberColumn("radio_missed_s", radioLate(func(l *radiocontrol.Late) time.Duration { return l.Missed })),
		numberColumn("radio_longest_s", radioLate(func(l *radiocontrol.Late) time.Duration { return l.Longest })),
		wholeColumn("transmitted_bytes", func(r attemptRow) *int64 { return r.TransmittedBytes }),
		wholeColumn("retransmitted_bytes", func(r attemptRow) *int64 { return r.RetransmittedBytes }),
		numberColumn("rtt_mean_us", func(r attemptRow) *float64 { return r.RTTMeanUS }),
		wholeColumn("rtt_least_us", func(r attemptRow) *int64 { return r.RTTLeastUS }),
		numberColumn("tcp_transfer_time_ratio", overTCP(func(r attemptRow) *float64 { x, _ := r.table.TransferTimeRatio(r.Attempt); return x })),
		numberColumn("tcp_efficiency_percent", overTCP(func(r attemptRow) *float64 { return r.EfficiencyPercent() })),
		numberColumn("tcp_buffer_delay_percent", overTCP(func(r attemptRow) *float64 { return r.table.BufferDelayPercent(r.Attempt) })),
		numberColumn("tcp_baseline_rtt_us", overTCP(func(r attemptRow) *float64 { x, _ := r.table.BaselineRTT(r.Attempt); return x })),
		textColumn("tcp_baseline_from", func(r attemptRow) string {
			if !r.overTCP() {
				return ""
			}
			_, from := r.table.BaselineRTT(r.Attempt)
			return string(from)
		}),
	}
}

// overTCP is a metric of RFC 6349 of a valid attempt, where its treatment is over TCP.
func overTCP(of func(attemptRow) *float64) func(attemptRow) *float64 {
	return func(r attemptRow) *float64 {
		if !r.overTCP() {
			return nil
		}
		return of(r)
	}
}

// overTCP reports whether the attempt is valid and its treatment over TCP.
func (r attemptRow) overTCP() bool {
	return r.Valid() && r.table.Has(func(row *report.Row) bool { return row.Treatment == r.trial.Treatment && row.OverTCP() })
}

// radioLate is a time in seconds by which the emulated radio gave packets out late, where
// it was measured.
func radioLate(of func(*radiocontrol.Late) time.Duration) func(attemptRow) *float64 {
	return func(r attemptRow) *float64 {
		if r.Radio == nil || r.Radio.Late == nil {
			return nil
		}
		return new(of(r.Radio.Late).Seconds())
	}
}

// host is a time in seconds that the leading node's processors kept from the attempt's
// programs, where it was measured.
func host(of func(*journal.HostLoad) time.Duration) func(attemptRow) *float64 {
	return func(r attemptRow) *float64 {
		if r.Host == nil {
			return nil
		}
		return new(of(r.Host).Seconds())
	}
}

// controlPackets is how many packets passed between a node and the orchestrator during an
// attempt, where they were counted.
func controlPackets(role radio.Role) func(attemptRow) *int64 {
	return func(r attemptRow) *int64 {
		for _, c := range r.Control {
			if c.Role == role && c.Unknown == "" {
				return &c.Packets
			}
		}
		return nil
	}
}

// shareOfBound is a bound's time over that of a valid attempt.
func shareOfBound(bound func(attemptRow) time.Duration) func(attemptRow) *float64 {
	return func(r attemptRow) *float64 {
		if !r.Valid() {
			return nil
		}
		return report.Rounded(stats.ShareOfBound(bound(r).Seconds(), (r.Connect + r.Elapsed).Seconds()))
	}
}

var trialsFormat = &Format{Name: "trials-csv", Title: "CSV, a row an attempt", File: "trials.csv", MediaType: csvText,
	Holds: "a row for each attempt, none left out",
	write: renderTrialsCSV}

func renderTrialsCSV(w io.Writer, v *report.Analysis) error {
	return writeCSV(w, untyped(trialColumns()), attemptRows(v))
}

// paths lists a value of each path, separated by spaces.
func paths(value func(*contract.PathResult) string) func(attemptRow) string {
	return func(r attemptRow) string {
		out := make([]string, len(r.Paths))
		for i := range r.Paths {
			out[i] = value(&r.Paths[i])
		}
		return strings.Join(out, " ")
	}
}

// attemptRows are all attempts, in the order of the plan, the sheet and the attempts.
func attemptRows(v *report.Analysis) (rows []attemptRow) {
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		for j := range run.Trials {
			trial := &run.Trials[j]
			for k := range trial.Attempts {
				a := &trial.Attempts[k]
				rows = append(rows, attemptRow{ds: v.Dataset, run: run, table: &v.Tables[i], trial: trial, Attempt: a, radio: a.Radio})
			}
		}
	}
	return rows
}

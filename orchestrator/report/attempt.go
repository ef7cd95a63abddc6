package report

import (
	"math"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// ThroughputBytesPerSecond is the paper's metric, 0 where the attempt did not
// succeed. Where times bound all of several flows, it is what they delivered within
// their common window ([CommonWindow]): a flow that waits for its last
// acknowledgement long after that takes nothing from the others. Where that is not
// stored, it is estimated ([Attempt.Estimated]).
func (a *Attempt) ThroughputBytesPerSecond() float64 {
	if a.Verdict != journal.Succeeded {
		return 0
	}
	return a.MeasuredBytesPerSecond()
}

// MeasuredBytesPerSecond is the same value, also where a mark keeps it from
// counting; 0 where the journal has no success.
func (a *Attempt) MeasuredBytesPerSecond() float64 {
	verdict := a.Verdict
	if a.Mark != nil {
		verdict = a.Mark.Verdict
	}
	if verdict != journal.Succeeded || a.Elapsed <= 0 {
		return 0
	}
	if a.Window != nil {
		return a.Window.rate()
	}
	window := a.window()
	if window <= 0 {
		return float64(a.SizeBytes) / a.Elapsed.Seconds()
	}
	bytes := 0.0
	for i := range a.Flows {
		bytes += a.Flows[i].inTime()
	}
	return bytes / window.Seconds()
}

// Estimated reports whether the throughput is made of each flow's mean rate, because
// no common window is stored.
func (a *Attempt) Estimated() bool { return a.Window == nil && a.window() > 0 }

// window is from the first start of a flow's clock to the end of the last one's
// time; 0 where a time does not bound all of several flows. A flow whose handshake
// was lost sends when others have ended: without its connect time the sum could be
// more than the radio carries.
func (a *Attempt) window() time.Duration {
	if len(a.Flows) < 2 {
		return 0
	}
	first, last := time.Duration(math.MaxInt64), time.Duration(0)
	for i := range a.Flows {
		f := &a.Flows[i]
		if f.Bound <= 0 || f.Elapsed <= 0 {
			return 0
		}
		clock := f.Start + f.Connect
		first, last = min(first, clock), max(last, clock+f.Bound)
	}
	return last - first
}

// inTime is the bytes of a flow within the time that bounds it, estimated at its
// mean rate until its last acknowledgement: too few of a flow that waits long for it,
// whose bytes came at a higher rate before. Only where no common window is stored.
func (f *Flow) inTime() float64 {
	return float64(f.SizeBytes) * min(1, f.Bound.Seconds()/f.Elapsed.Seconds())
}

// shareOf is what a flow adds to the throughput of the attempt, B/s.
func (a *Attempt) shareOf(flow int) float64 {
	f := &a.Flows[flow]
	if a.Window != nil && flow < len(a.Window.Bytes) {
		return float64(a.Window.Bytes[flow]) / a.Window.Length.Seconds()
	}
	if window := a.window(); window > 0 {
		return f.inTime() / window.Seconds()
	}
	return float64(f.SizeBytes) / a.Elapsed.Seconds()
}

// rateOf is a flow's own throughput, over its own time, B/s.
func (a *Attempt) rateOf(flow int) float64 {
	f := &a.Flows[flow]
	switch {
	case a.Window != nil && flow < len(a.Window.Bytes):
		return float64(a.Window.Bytes[flow]) / f.Bound.Seconds()
	case f.Elapsed > 0:
		return float64(f.SizeBytes) / f.Elapsed.Seconds()
	}
	return 0
}

// Counted is the attempt whose value counts for the trial, or nil.
func (t *Trial) Counted() *Attempt {
	if a := t.last(); a != nil && a.Valid() {
		return a
	}
	return nil
}

// last is the trial's last attempt; nil: there is none.
func (t *Trial) last() *Attempt {
	if n := len(t.Attempts); n > 0 {
		return &t.Attempts[n-1]
	}
	return nil
}

// excluded reports whether an ended trial tells nothing of its protocol: what its last
// attempt came to does not count, because of a fault of the apparatus, a rule of validity, a
// mark or a value that cannot be true, or people ended it.
func (t *Trial) excluded() bool {
	v := t.Verdict
	if a := t.last(); a != nil {
		v = a.Verdict
	}
	return v == journal.Invalid || v == journal.Aborted
}

// hasOutcome reports whether the attempt tells of its protocol, for better or worse.
func (a *Attempt) hasOutcome() bool {
	return a.Verdict == journal.Succeeded || a.Verdict == journal.Failed || a.Verdict == journal.TimedOut
}

// ConnectTimedOut reports whether the limit of a connection ended the attempt, which is an
// outcome of its protocol.
func (a *Attempt) ConnectTimedOut() bool {
	return a.Verdict == journal.TimedOut && a.Reason == string(contract.CodeConnectTimeout)
}

// TransferTimedOut is [Attempt.ConnectTimedOut] of the limit of a transfer.
func (a *Attempt) TransferTimedOut() bool {
	return a.Verdict == journal.TimedOut && a.Reason == string(contract.CodeTransferTimeout)
}

// Valid reports whether the attempt succeeded, the server received every byte as it
// was sent, and there is a value.
func (a *Attempt) Valid() bool {
	return a.Verdict == journal.Succeeded && a.Verified && a.Elapsed > 0 && (a.Window == nil || a.Window.Unknown == "")
}

// Waits reports whether the server's report on a transfer may still arrive.
func (r *Run) Waits(a *Attempt) bool {
	return r.underWay() && a.Verdict == journal.Succeeded && !a.Verified
}

func (r *Run) underWay() bool { return !slices.Contains(ends, r.State) }

// ends are the states in which runs end.
var ends = []string{"completed", "aborted", "stopped"}

// Why is the attempt's reason, or what is wrong with a success.
func (a *Attempt) Why() string {
	switch {
	case a.Verdict != journal.Succeeded || a.Reason != "":
		return a.Reason
	case !a.Verified:
		return "unverified"
	default:
		return "no-elapsed-time"
	}
}

// Unloads reports whether probes that are named as beside a treatment's transfers ran beside
// nothing: the attempt ended, and no transfer of it ever connected.
func (a *Attempt) Unloads(beside string) bool {
	if beside == "" || a.Verdict == "" || a.Valid() || a.Connect > 0 {
		return false
	}
	return !slices.ContainsFunc(a.Flows, func(f Flow) bool { return f.Connect > 0 })
}

package audit

import (
	"encoding/json"

	"linktrial/executor/journal"
)

// reception is what a server reports of a transfer.
type reception struct {
	at        Finding
	treatment string
	result    bool
	size      int64
	digest    string
	code      string
}

// decode reads a record's body; false: a finding says why it cannot be read.
func decode[T any](a *auditor, s *source, e *entry, body *T) bool {
	if err := json.Unmarshal(e.body, body); err != nil {
		a.check(Integrity).find(s.where(e.seq), "its body is no %s: %s", e.kind, err)
		return false
	}
	return true
}

// addRecord takes one record of a node's journal.
func (a *auditor) addRecord(s *source, e entry) {
	if s.ended && e.kind != string(journal.TypeRunEnded) {
		a.check(Integrity).find(s.where(e.seq), "%s after the end of the node's journal; it counts nowhere", e.kind)
		return
	}
	a.takeTime(s, &e)
	leader := s.role == "client"
	switch t := journal.Type(e.kind); t {
	case journal.TypeRunStarted, journal.TypeRunResumed:
		a.takeStart(s, &e)
	case journal.TypeRunEnded:
		var b journal.RunEnded
		if decode(a, s, &e, &b) {
			a.takeEnd(s, &e, &b)
		}
	case journal.TypeAttemptStarted, journal.TypeAttemptEnded, journal.TypeTrialEnded:
		if !leader {
			a.check(Numbering).find(s.where(e.seq), "%s in the journal of a %s; only the leading node, the client, writes it", t, s.role)
			return
		}
		a.takeAttempt(s, &e)
	case journal.TypeLook:
		if !leader {
			a.check(Looks).find(s.where(e.seq), "%s in the journal of a %s; only the leading node, the client, writes it", t, s.role)
			return
		}
		var b journal.Look
		if decode(a, s, &e, &b) {
			a.takeLook(s.where(e.seq), &b)
		}
	case journal.TypeCommand:
		var b journal.Command
		if leader && decode(a, s, &e, &b) {
			a.history.command(s.where(e.seq), &b)
		}
	case journal.TypeReceived:
		var b journal.Received
		if decode(a, s, &e, &b) {
			a.takeReceived(s, &e, &b)
		}
	case journal.TypeControlCounted:
		var b journal.ControlCounted
		if decode(a, s, &e, &b) {
			a.controlled[s.role] += b.Packets
		}
	case journal.TypeSamples:
		var b journal.Samples
		if decode(a, s, &e, &b) {
			a.takeSamples(s, &e, &b)
		}
	case journal.TypeConnected:
		var b journal.Connected
		if leader && decode(a, s, &e, &b) {
			a.history.connected(e.at, &b)
		}
	case journal.TypeListenerFailed:
		var b journal.Listener
		if decode(a, s, &e, &b) && b.Crashed {
			a.crashed[b.Treatment] = true
		}
	default:
		if journal.KindOf(t) == nil {
			s.unknown[e.kind]++
		}
	}
}

func (a *auditor) takeStart(s *source, e *entry) {
	var b journal.RunStarted
	if !decode(a, s, e, &b) {
		return
	}
	c := a.check(Integrity)
	if first := journal.Type(e.kind) == journal.TypeRunStarted; first != (e.seq == 1) {
		c.find(s.where(e.seq), "%s as record %d; run-started is the first record, and no other", e.kind, e.seq)
	}
	if b.SheetHash != a.run.SheetHash {
		c.find(s.where(e.seq), "the node ran the sheet %s, the run's is %s", b.SheetHash, a.run.SheetHash)
	}
	if b.Trials != len(a.sheet.Trials) {
		c.find(s.where(e.seq), "the node ran a sheet of %d trials, the run's has %d", b.Trials, len(a.sheet.Trials))
	}
}

func (a *auditor) takeEnd(s *source, e *entry, b *journal.RunEnded) {
	if s.ended {
		a.check(Integrity).find(s.where(e.seq), "a second run-ended")
		return
	}
	s.ended = true
	if s.role == "client" {
		a.history.ended = b
	}
	if p := s.part; a.run.Ended() && (p.Ended != string(b.End) || p.EndReason != b.Reason) {
		a.check(Stored).find(s.where(e.seq), "the node's part ended as %s (%q), the store has %s (%q)", b.End, b.Reason, p.Ended, p.EndReason)
	}
}

func (a *auditor) takeReceived(s *source, e *entry, b *journal.Received) {
	if s.role != "server" {
		a.check(Digests).find(s.where(e.seq), "received in the journal of a %s; only the server writes it", s.role)
		return
	}
	if b.Transfer == "" || b.Result != nil && b.Result.Probe != nil {
		return
	}
	r := reception{at: s.where(e.seq), treatment: b.Treatment, code: string(b.Code)}
	if b.Result != nil {
		r.result, r.size, r.digest = true, b.Result.SizeBytes, b.Result.Digest
	}
	a.received[b.Transfer] = append(a.received[b.Transfer], r)
}

func (a *auditor) takeAttempt(s *source, e *entry) {
	at := s.where(e.seq)
	switch journal.Type(e.kind) {
	case journal.TypeAttemptStarted:
		var b journal.AttemptStarted
		if decode(a, s, e, &b) {
			a.history.start(at, e.at, &b)
		}
	case journal.TypeAttemptEnded:
		var b journal.AttemptEnded
		if decode(a, s, e, &b) {
			a.history.finish(at, e.at, &b)
		}
	default:
		var b journal.TrialEnded
		if decode(a, s, e, &b) {
			a.history.endTrial(at, &b)
		}
	}
}

// checkParts looks at the journals as a whole.
func (a *auditor) checkParts() {
	c := a.check(Integrity)
	for _, s := range a.sources {
		at := s.where(0)
		for kind, n := range s.unknown {
			c.note("node %s: %d records of type %s, which this audit does not know", s.node, n, kind)
		}
		if s.records == 0 {
			if a.run.State == "completed" {
				c.find(at, "the run is completed, and there is no record of the node")
			}
			continue
		}
		if a.run.State == "completed" && !s.ended {
			c.find(at, "the run is completed, and the node's journal has no run-ended")
		}
		if s.part.Committed != s.last && a.run.Ended() {
			a.check(Stored).find(at, "the store has the journal up to record %d, its last one is %d", s.part.Committed, s.last)
		}
	}
}

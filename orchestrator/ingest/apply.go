package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest/ingestdb"
	"linktrial/orchestrator/store"
)

// provenance stores the state of a node. That its radio is emulated counts where its lab
// has proved it: the signature of the lab in real time, and in virtual time the
// registration of the lab's guests. Elsewhere the run is one on a real, unnamed radio,
// whatever the record says.
func (d *delivery) provenance(ctx context.Context, r *parsed, p *journal.Provenance) error {
	stored, proven := r.stored, true
	switch p.Place {
	case journal.PlaceEmulated:
		_, err := p.Lab.Verify(d.run, d.part.SheetHash)
		proven = err == nil && string(p.Lab.Role) == d.part.Role
	case journal.PlaceVirtual:
		var err error
		if proven, err = d.q.NodeIsVirtual(ctx, d.node); err != nil {
			return err
		}
	}
	if !proven {
		var err error
		if stored, err = withPlace(stored, journal.PlaceUnnamed); err != nil {
			return err
		}
	}
	return d.q.SetProvenance(ctx, ingestdb.SetProvenanceParams{RunID: d.run, Node: d.node, Provenance: stored})
}

// withPlace replaces the place in a provenance, and nothing else.
func withPlace(provenance json.RawMessage, place string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(provenance, &fields); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	var err error
	if fields["place"], err = json.Marshal(place); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// trial refuses trials that the run's sheet does not have.
func (d *delivery) trial(n int) (int32, error) {
	if n >= int(d.part.Trials) {
		return 0, d.refuse("trial %d, the run has %d", n, d.part.Trials)
	}
	return int32(n), nil
}

func (d *delivery) apply(ctx context.Context, r *parsed) error {
	d.delta.Structure = d.delta.Structure || r.Type != journal.TypeSamples && r.Type != journal.TypeTelemetry
	switch b := r.body.(type) {
	case *journal.RunStarted:
		if b.SheetHash != d.part.SheetHash {
			return &RefusedError{Run: d.run, Node: d.node, Seq: d.at, Reason: fmt.Sprintf("the node runs the sheet %.12s…, the run's is %.12s…", b.SheetHash, d.part.SheetHash)}
		}
		return nil
	case *journal.RunEnded:
		return d.q.EndPart(ctx, ingestdb.EndPartParams{RunID: d.run, Node: d.node, Ended: string(b.End), EndReason: text(b.Reason)})
	case *journal.Provenance:
		return d.provenance(ctx, r, b)
	case *journal.ClockOffset:
		return d.tx.InsertClockOffset(ctx, store.InsertClockOffsetParams{RunID: d.run, Node: d.node, Seq: r.Seq, At: d.steady(r.At),
			Moment: text(b.When), OffsetNs: int64(b.Offset), ErrorNs: int64(b.Error), Unknown: text(b.Unknown)})
	case *journal.ClockStepped:
		d.stepped += b.By
		return d.tx.InsertClockOffset(ctx, store.ClockStep(d.run, d.node, r.Seq, d.steady(r.At), b.By))
	case *journal.Listener:
		info, err := optionalJSON(b.Info)
		if err != nil {
			return err
		}
		return d.q.UpsertListener(ctx, ingestdb.UpsertListenerParams{RunID: d.run, Node: d.node, Treatment: text(b.Treatment), AtRole: string(b.At),
			Ready: r.Type == journal.TypeListenerReady, Port: int32(b.Port), Info: info, Code: text(string(b.Code)),
			Message: text(b.Message), Restarts: int32(b.Restarts), At: d.steady(r.At)})
	case *journal.AttemptStarted:
		return d.attemptStarted(ctx, r, b)
	case *journal.Connected:
		n, err := d.q.ConnectFlow(ctx, ingestdb.ConnectFlowParams{RunID: d.run, Trial: int32(b.Trial), Attempt: int32(b.Attempt), Flow: int32(b.Flow), ConnectNs: &b.ConnectNS})
		if err == nil && n == 0 {
			n, err = d.q.ConnectProbe(ctx, ingestdb.ConnectProbeParams{RunID: d.run, Trial: int32(b.Trial), Attempt: int32(b.Attempt), Probe: int32(b.Flow), ConnectNs: &b.ConnectNS})
		}
		if err == nil && n == 0 {
			return d.refuse("attempt %d of trial %d, flow %d, has not started", b.Attempt, b.Trial, b.Flow)
		}
		return err
	case *journal.Samples:
		return d.addSamples(r, b)
	case *journal.Received:
		return d.received(ctx, r, b)
	case *journal.AttemptEnded:
		return d.attemptEnded(ctx, r, b)
	case *journal.TrialEnded:
		notNeeded := b.Reason == journal.ReasonNotNeeded
		if notNeeded && (b.Attempts > 0 || b.Verdict != journal.Aborted) {
			return d.refuse("trial %d is not needed, and has %d attempts and the verdict %s", b.Trial, b.Attempts, b.Verdict)
		}
		n, err := d.q.EndTrial(ctx, ingestdb.EndTrialParams{RunID: d.run, Trial: int32(b.Trial), Verdict: string(b.Verdict), NotNeeded: notNeeded})
		if err == nil && n == 0 {
			return d.refuse("trial %d has ended already, or the run has no such trial", b.Trial)
		}
		return err
	case *journal.Command:
		return d.command(ctx, b)
	case *journal.Telemetry:
		d.addTelemetry(r, b)
		return nil
	case *journal.Waiting:
		d.delta.Wait = &Wait{Trial: b.Trial, Fault: b.Fault, Since: r.At}
		return nil
	case *journal.Misbehaviour, *journal.Look, *journal.Watched, *journal.ControlCounted, *journal.AgentStopped, *journal.RadioInterface, *Refused:
		return nil // nothing is stored besides the record itself
	}
	return fmt.Errorf("record type %q is not handled", r.Type)
}

// command opens a trial again that is to be repeated. The records that follow show
// what other commands do.
func (d *delivery) command(ctx context.Context, b *journal.Command) error {
	if b.Kind != journal.CommandRepeat || b.Rejected != "" {
		return nil
	}
	trial, err := d.trial(*b.Trial)
	if err != nil {
		return err
	}
	n, err := d.q.ReopenTrial(ctx, ingestdb.ReopenTrialParams{RunID: d.run, Trial: trial})
	if err == nil && n == 0 {
		return d.refuse("trial %d is to be repeated and has not ended", *b.Trial)
	}
	return err
}

func (d *delivery) attemptStarted(ctx context.Context, r *parsed, b *journal.AttemptStarted) error {
	trial, err := d.trial(b.Trial)
	if err != nil {
		return err
	}
	if err := d.q.InsertAttempt(ctx, ingestdb.InsertAttemptParams{RunID: d.run, Trial: trial, Attempt: int32(b.Attempt), StartedSeq: r.Seq, StartedAt: d.steady(r.At)}); err != nil {
		return err
	}
	for i, transfer := range b.Transfers {
		if err := d.q.InsertFlow(ctx, ingestdb.InsertFlowParams{RunID: d.run, Trial: trial, Attempt: int32(b.Attempt), Flow: int32(i), Transfer: transfer}); err != nil {
			return err
		}
	}
	for i, transfer := range b.Probes {
		if err := d.q.InsertProbe(ctx, ingestdb.InsertProbeParams{RunID: d.run, Trial: trial, Attempt: int32(b.Attempt), Probe: int32(len(b.Transfers) + i), Transfer: transfer}); err != nil {
			return err
		}
	}
	return nil
}

func (d *delivery) attemptEnded(ctx context.Context, r *parsed, b *journal.AttemptEnded) error {
	report, err := optionalJSON(b.Radio)
	if err != nil {
		return err
	}
	host, err := optionalJSON(b.Host)
	if err != nil {
		return err
	}
	n, err := d.q.EndAttempt(ctx, ingestdb.EndAttemptParams{RunID: d.run, Trial: int32(b.Trial), Attempt: int32(b.Attempt), EndedSeq: r.Seq, EndedAt: d.steady(r.At),
		Verdict: string(b.Verdict), Reason: text(b.Reason), Message: text(b.Message), DurationNs: int64(b.Duration), DeadNs: int64(b.Dead),
		Radio: report, Log: text(b.Log), Host: host})
	if err != nil {
		return err
	}
	if n == 0 {
		return d.refuse("attempt %d of trial %d has not started, or has ended already", b.Attempt, b.Trial)
	}
	for _, f := range b.Flows {
		if err := d.flowEnded(ctx, b, &f); err != nil {
			return err
		}
	}
	for _, f := range b.Probes {
		if err := d.probeEnded(ctx, b, &f); err != nil {
			return err
		}
	}
	d.attemptsEnded = append(d.attemptsEnded, [2]int32{int32(b.Trial), int32(b.Attempt)})
	return nil
}

func (d *delivery) probeEnded(ctx context.Context, b *journal.AttemptEnded, f *journal.FlowResult) error {
	p := ingestdb.EndProbeParams{RunID: d.run, Trial: int32(b.Trial), Attempt: int32(b.Attempt), Probe: int32(f.Flow),
		Verdict: string(f.Verdict), Reason: text(f.Reason), Message: text(f.Message)}
	if f.ConnectNS > 0 {
		p.ConnectNs = &f.ConnectNS
	}
	if f.Result != nil {
		var err error
		if p.Metrics, err = optionalJSON(f.Result.Probe); err != nil {
			return err
		}
		p.ElapsedNs = &f.Result.ElapsedNS
	}
	n, err := d.q.EndProbe(ctx, p)
	if err == nil && n == 0 {
		return d.refuse("attempt %d of trial %d has no probe %d", b.Attempt, b.Trial, f.Flow)
	}
	return err
}

func (d *delivery) flowEnded(ctx context.Context, b *journal.AttemptEnded, f *journal.FlowResult) error {
	p := ingestdb.EndFlowParams{RunID: d.run, Trial: int32(b.Trial), Attempt: int32(b.Attempt), Flow: int32(f.Flow),
		Verdict: string(f.Verdict), Reason: text(f.Reason), Message: text(f.Message)}
	if f.ConnectNS > 0 {
		p.ConnectNs = &f.ConnectNS
	}
	last := f.LastSample
	if res := f.Result; res != nil {
		p.SizeBytes, p.ElapsedNs, p.Digest = &res.SizeBytes, &res.ElapsedNS, &res.Digest
		if res.Final != nil {
			last = res.Final
		}
		var err error
		if p.Info, err = optionalJSON(res.Info); err != nil {
			return err
		}
	}
	var err error
	if last != nil {
		state := store.LastState{Sample: *last, RTT: f.RTT}
		if f.Result != nil {
			state.Paths = f.Result.Paths
		}
		if p.LastSample, err = optionalJSON(&state); err != nil {
			return err
		}
	}
	n, err := d.q.EndFlow(ctx, p)
	if err == nil && n == 0 {
		return d.refuse("attempt %d of trial %d has no flow %d", b.Attempt, b.Trial, f.Flow)
	}
	return err
}

func (d *delivery) received(ctx context.Context, r *parsed, b *journal.Received) error {
	if b.Result != nil && b.Result.Probe != nil && b.Reason == "" {
		values, err := optionalJSON(b.Result.Probe)
		if err != nil {
			return err
		}
		return d.q.InsertProbeReception(ctx, ingestdb.InsertProbeReceptionParams{RunID: d.run, Node: d.node, Seq: r.Seq, Transfer: b.Transfer, At: d.steady(r.At), Metrics: values})
	}
	p := ingestdb.InsertReceptionParams{RunID: d.run, Node: d.node, Seq: r.Seq, Treatment: text(b.Treatment), At: d.steady(r.At), Code: text(string(b.Code)), Message: text(b.Message)}
	if b.Transfer != "" {
		p.Transfer = &b.Transfer
		d.transfersReceived = append(d.transfersReceived, b.Transfer)
	}
	switch {
	case b.Reason != "": // what cannot be true gives no value
		p.Code = text(b.Reason)
	case b.Result != nil:
		p.SizeBytes, p.ElapsedNs, p.Digest = &b.Result.SizeBytes, &b.Result.ElapsedNS, &b.Result.Digest
		p.Code = ""
	}
	if took := b.Packets.Nanoseconds(); took > 0 {
		p.PacketsNs = &took
	}
	return d.q.InsertReception(ctx, p)
}

// addSamples collects samples for the copy at the end. A sample's time is the
// record's, less how much older the sample is than the last one of its batch.
func (d *delivery) addSamples(r *parsed, b *journal.Samples) error {
	trial, err := d.trial(b.Trial)
	if err != nil {
		return err
	}
	if err := d.checkSide(r, b); err != nil || len(b.Samples) == 0 {
		return err
	}
	last := b.Samples[len(b.Samples)-1]
	for i := range b.Samples {
		s := &b.Samples[i]
		var more []byte
		if len(s.More) > 0 {
			if more, err = optionalJSON(&s.More); err != nil {
				return err
			}
		}
		d.samples = append(d.samples, store.Sample{At: d.steady(r.At).Add(-time.Duration(last.ElapsedNS - s.ElapsedNS)), RunID: d.run, Trial: trial,
			Attempt: int32(b.Attempt), Flow: int32(b.Flow), Side: b.Side, Metrics: *s, More: more})
	}
	if b.Side == "client" {
		d.delta.Fresh = append(d.delta.Fresh, Samples{Trial: b.Trial, Attempt: b.Attempt, Flow: b.Flow, Samples: b.Samples})
	}
	if radio.Role(d.part.Role) == radio.RoleClient && b.Side == "client" {
		p := Progress{Trial: b.Trial, Attempt: b.Attempt, Flow: b.Flow, Bytes: last.SentBytes, Elapsed: time.Duration(last.ElapsedNS)}
		if last.AckedBytes != nil {
			p.Bytes = *last.AckedBytes
		}
		d.delta.Progress = append(d.delta.Progress, p)
	}
	return nil
}

package ingest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// MaxRecordBytes is the longest record that is accepted.
const MaxRecordBytes = 4 << 20

// limits of what the tables can hold, far above anything a plan makes.
const (
	maxAttempts = 1 << 20
	maxFlows    = 1 << 12
)

// parsed is one record, checked as far as it can be on its own.
type parsed struct {
	journal.Record
	digest [sha256.Size]byte
	stored json.RawMessage // the body as jsonb can hold it
	body   any             // pointer to the struct that Type names
	raw    []byte          // as delivered
}

// errForeign reports a record that is not of the journal that it is delivered as.
var errForeign = errors.New("it is not of this journal")

// parse reads record seq of a node's journal of a run. The error wraps errForeign
// where the journal is another one; any other concerns this record alone.
func parse(raw []byte, run, node string, seq int64) (*parsed, error) {
	if len(raw) > MaxRecordBytes {
		return nil, fmt.Errorf("%d bytes long, at most %d are accepted", len(raw), MaxRecordBytes)
	}
	p := &parsed{digest: sha256.Sum256(raw), raw: raw}
	if err := json.Unmarshal(raw, &p.Record); err != nil {
		return nil, fmt.Errorf("not a journal record: %w", err)
	}
	switch {
	case p.Seq != seq:
		return nil, fmt.Errorf("%w: its own number is %d", errForeign, p.Seq)
	case p.Run != run:
		return nil, fmt.Errorf("%w: it is of run %.100q", errForeign, p.Run)
	case p.Node != node:
		return nil, fmt.Errorf("%w: it is of node %.100q", errForeign, p.Node)
	case p.At.IsZero():
		return nil, errors.New("it has no time")
	}
	p.body = bodyOf(p.Type)
	if p.body == nil {
		return nil, fmt.Errorf("unknown type %.100q", p.Type)
	}
	if len(p.Body) == 0 {
		return nil, fmt.Errorf("%s without a body", p.Type)
	}
	if err := json.Unmarshal(p.Body, p.body); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Type, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Type, err)
	}
	if err := p.checkBounds(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Type, err)
	}
	stored, err := storable(p.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Type, err)
	}
	p.stored = stored
	return p, nil
}

func bodyOf(t journal.Type) any {
	switch t {
	case journal.TypeRunStarted, journal.TypeRunResumed:
		return new(journal.RunStarted)
	case journal.TypeRunEnded:
		return new(journal.RunEnded)
	case journal.TypeProvenance:
		return new(journal.Provenance)
	case journal.TypeClockOffset:
		return new(journal.ClockOffset)
	case journal.TypeListenerReady, journal.TypeListenerFailed:
		return new(journal.Listener)
	case journal.TypeAgentStopped:
		return new(journal.AgentStopped)
	case journal.TypeInterfaceFailed, journal.TypeInterfaceReady:
		return new(journal.RadioInterface)
	case journal.TypeWaiting:
		return new(journal.Waiting)
	case journal.TypeAttemptStarted:
		return new(journal.AttemptStarted)
	case journal.TypeConnected:
		return new(journal.Connected)
	case journal.TypeSamples:
		return new(journal.Samples)
	case journal.TypeReceived:
		return new(journal.Received)
	case journal.TypeAttemptEnded:
		return new(journal.AttemptEnded)
	case journal.TypeTrialEnded:
		return new(journal.TrialEnded)
	case journal.TypeCommand:
		return new(journal.Command)
	case journal.TypeDriverMisbehaved:
		return new(journal.Misbehaviour)
	case journal.TypeTelemetry, journal.TypeTelemetryFailed:
		return new(journal.Telemetry)
	case journal.TypeWatched:
		return new(journal.Watched)
	case journal.TypeClockStepped:
		return new(journal.ClockStepped)
	case journal.TypeControlCounted:
		return new(journal.ControlCounted)
	}
	return nil
}

// check refuses a body that the tables cannot hold, and one that only a node of
// another role can write.
func (p *parsed) check() error {
	switch b := p.body.(type) {
	case *journal.RunEnded:
		if b.End != journal.RunCompleted && b.End != journal.RunAborted && b.End != journal.RunStopped {
			return fmt.Errorf("end %q", b.End)
		}
	case *journal.ClockOffset:
		if b.Error < 0 {
			return fmt.Errorf("negative error %s", b.Error)
		}
	case *journal.Listener:
		if b.Treatment == "" || b.Port < 0 || b.Port > 65535 || b.Restarts < 0 || b.Restarts > maxAttempts {
			return fmt.Errorf("treatment %q, port %d, restarts %d", b.Treatment, b.Port, b.Restarts)
		}
		return p.only(cmp.Or(b.At, radio.RoleServer))
	case *journal.AgentStopped:
		if b.To.Before(b.From) {
			return fmt.Errorf("stopped from %s to %s", b.From, b.To)
		}
	case *journal.Waiting:
		return errors.Join(attempt(b.Trial, 1, 0), p.only(radio.RoleClient))
	case *journal.AttemptStarted:
		return p.checkAttemptStarted(b)
	case *journal.Connected:
		if b.ConnectNS < 0 {
			return fmt.Errorf("connect_ns %d", b.ConnectNS)
		}
		return errors.Join(attempt(b.Trial, b.Attempt, b.Flow), p.only(radio.RoleClient))
	case *journal.Samples:
		if b.Side != "client" && b.Side != "server" {
			return fmt.Errorf("side %q", b.Side)
		}
		return attempt(b.Trial, b.Attempt, b.Flow)
	case *journal.Received:
		return p.checkReceived(b)
	case *journal.AttemptEnded:
		return p.checkAttemptEnded(b)
	case *journal.TrialEnded:
		return errors.Join(attempt(b.Trial, 1, 0), verdict(b.Verdict), p.only(radio.RoleClient))
	case *journal.Command:
		return p.checkCommand(b)
	case *journal.Telemetry:
		return checkTelemetry(p.Type, b)
	case *journal.Watched:
		return checkWatched(b)
	case *journal.ClockStepped:
		if b.By.Abs() > latest.Sub(earliest) || b.Within < 0 {
			return fmt.Errorf("a step by %s within %s", b.By, b.Within)
		}
	case *journal.ControlCounted:
		if b.Since.Before(earliest) || !b.Until.Before(latest) || b.Until.Before(b.Since) || b.Others < 0 || b.OthersBytes < 0 || b.Packets < b.Others || b.Bytes < b.OthersBytes {
			return fmt.Errorf("%d packets with %d B from %s to %s", b.Packets, b.Bytes, b.Since.Format(time.RFC3339), b.Until.Format(time.RFC3339))
		}
	}
	return nil
}

func (p *parsed) checkAttemptStarted(b *journal.AttemptStarted) error {
	all := slices.Concat(b.Transfers, b.Probes)
	for _, t := range all {
		if _, err := contract.ParseTransferID(t); err != nil {
			return err
		}
	}
	if len(all) == 0 || len(all) > maxFlows {
		return fmt.Errorf("%d transfers and %d probes", len(b.Transfers), len(b.Probes))
	}
	return errors.Join(attempt(b.Trial, b.Attempt, 0), p.only(radio.RoleClient))
}

func (p *parsed) checkReceived(b *journal.Received) error {
	if b.Transfer != "" {
		if _, err := contract.ParseTransferID(b.Transfer); err != nil {
			return err
		}
	}
	if (b.Result == nil) == (b.Code == "") {
		return errors.New("expected either a result or a code")
	}
	if b.Result != nil && b.Result.Probe != nil && b.Transfer == "" {
		return errors.New("a probe without its identity")
	}
	return p.only(radio.RoleServer)
}

func (p *parsed) checkAttemptEnded(b *journal.AttemptEnded) error {
	for i, f := range slices.Concat(b.Flows, b.Probes) {
		if err := errors.Join(attempt(b.Trial, b.Attempt, f.Flow), verdict(f.Verdict)); err != nil {
			return err
		}
		if f.Verdict == journal.Succeeded && f.Result == nil {
			return fmt.Errorf("flow %d succeeded without a result", f.Flow)
		}
		if f.Result != nil && (f.Result.Probe != nil) != (i >= len(b.Flows)) {
			return fmt.Errorf("flow %d has the result of a probe, or probe %d that of a transfer", f.Flow, f.Flow)
		}
	}
	if b.Duration < 0 || b.Dead < 0 {
		return fmt.Errorf("duration %s, dead time %s", b.Duration, b.Dead)
	}
	return errors.Join(attempt(b.Trial, b.Attempt, 0), verdict(b.Verdict), p.only(radio.RoleClient))
}

// maxWatched is the most steps of time of one record, far above what a node writes.
const maxWatched = 1 << 20

func checkWatched(b *journal.Watched) error {
	if b.Since.Before(earliest) || !b.Until.Before(latest) || b.Until.Before(b.Since) || b.ClockLook < 0 || len(b.Unwatched) > maxString {
		return fmt.Errorf("from %s to %s", b.Since.Format(time.RFC3339), b.Until.Format(time.RFC3339))
	}
	if h := b.Host; h != nil {
		if len(h.Late) > maxWatched || h.Missed < 0 || h.Longest < 0 {
			return fmt.Errorf("%s missed in %d steps", h.Missed, len(h.Late))
		}
		for _, x := range h.Late {
			if x.After < 0 || x.Missed < 0 || x.Missed > journal.HostLateStep {
				return fmt.Errorf("%s missed after %s", x.Missed, x.After)
			}
		}
	}
	if o := b.Other; o != nil {
		if o.Packets < 1 || len(o.Bytes) > maxWatched || len(o.Most) > maxFlows {
			return fmt.Errorf("%d packets of other traffic in %d steps and %d conversations", o.Packets, len(o.Bytes), len(o.Most))
		}
		for _, x := range o.Bytes {
			if x.Bytes < 0 || x.After < 0 {
				return fmt.Errorf("%d bytes after %s", x.Bytes, x.After)
			}
		}
	}
	if l := b.Listeners; l != nil {
		if len(l.Spans) > maxWatched || len(l.Unknown) > maxString {
			return fmt.Errorf("listeners' traffic in %d spans", len(l.Spans))
		}
		for _, x := range l.Spans {
			if x.Port != 0 && !runsheet.ListenerPort(x.Port) || x.After < 0 || x.Length < 0 || x.Sent < 0 || x.Received < 0 || x.SentPayload < 0 || x.ReceivedPayload < 0 {
				return fmt.Errorf("%d and %d bytes at port %d for %s after %s", x.Sent, x.Received, x.Port, x.Length, x.After)
			}
		}
	}
	return nil
}

// checkCommand accepts kinds that it does not know: they change nothing here.
func (p *parsed) checkCommand(b *journal.Command) error {
	switch b.Kind {
	case journal.CommandPause, journal.CommandResume:
		return p.only(radio.RoleClient)
	case journal.CommandSkip, journal.CommandRepeat:
		if b.Trial == nil {
			return fmt.Errorf("%s of no trial", b.Kind)
		}
		if b.Rejected == "" {
			return errors.Join(attempt(*b.Trial, 1, 0), p.only(radio.RoleClient))
		}
		return p.only(radio.RoleClient)
	}
	return nil
}

func (p *parsed) only(r radio.Role) error {
	if p.Role != r {
		return fmt.Errorf("written by a %s, only a %s may write it", p.Role, r)
	}
	return nil
}

func attempt(trial, n, flow int) error {
	if trial < 0 || n < 1 || n > maxAttempts || flow < 0 || flow > maxFlows {
		return fmt.Errorf("trial %d, attempt %d, flow %d", trial, n, flow)
	}
	return nil
}

func verdict(v journal.Verdict) error {
	switch v {
	case journal.Succeeded, journal.Failed, journal.TimedOut, journal.Aborted, journal.Invalid:
		return nil
	}
	return fmt.Errorf("verdict %q", v)
}

// storable brings JSON into the form that jsonb accepts: PostgreSQL refuses
// the character U+0000, which a driver's log may well hold, halves of surrogate
// pairs and bytes that are not UTF-8. Each becomes U+FFFD.
func storable(body json.RawMessage) (json.RawMessage, error) {
	if utf8.Valid(body) && !bytes.Contains(body, []byte(`\u`)) {
		return body, nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(clean(v))
}

func clean(v any) any {
	switch x := v.(type) {
	case string:
		return text(x)
	case []any:
		for i := range x {
			x[i] = clean(x[i])
		}
	case map[string]any:
		for k, e := range x {
			if c := text(k); c != k {
				delete(x, k)
				k = c
			}
			x[k] = clean(e)
		}
	}
	return v
}

// text is a string as a text column can hold it.
func text(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// optionalJSON encodes what v points to for a jsonb column; nil is NULL.
func optionalJSON[T any](v *T) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return storable(b)
}

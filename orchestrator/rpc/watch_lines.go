package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
)

const (
	// newestLines is how many records of a campaign a watcher is sent at first.
	newestLines = 300
	// linesAtOnce bounds the records that one query reads.
	linesAtOnce = 2000
)

// line is one record of a node's journal, without what makes it large. Its time is by
// the node's clock as it was when the run began.
type line dbsqlc.LinesAfterRow

// steadyLines takes the steps of the nodes' clocks off the times of lines.
func steadyLines(ctx context.Context, q *dbsqlc.Queries, run string, lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	rows, err := q.ClockOffsets(ctx, run)
	if err != nil {
		return err
	}
	clocks := store.NodeClocks(rows)
	for i := range lines {
		l := &lines[i]
		l.At = l.At.Add(-clocks[l.Node].Stepped(l.Seq))
	}
	return nil
}

// newestLines finds where to begin: with the newest records of the campaign,
// those of its last runs first. Samples are no lines.
func (w *watcher) newestLines(ctx context.Context) error {
	left := newestLines
	for _, id := range slices.Backward(w.order) {
		x := w.runs[id]
		x.lines = map[string]int64{}
		rows, err := w.s.cfg.Store.NewestLines(ctx, dbsqlc.NewestLinesParams{RunID: id, Most: int32(max(left, 1))})
		if err != nil {
			return fmt.Errorf("watch run %s: %w", id, err)
		}
		lines := make([]line, len(rows))
		for i, r := range rows {
			lines[i] = line{Node: r.Node, Seq: r.Seq, At: r.At}
		}
		if err := steadyLines(ctx, w.s.cfg.Store.Queries, id, lines); err != nil {
			return fmt.Errorf("watch run %s: %w", id, err)
		}
		lines = inOrder(lines)
		for i, l := range lines {
			if i < len(lines)-left {
				x.lines[l.Node] = l.Seq // older than what is sent
			} else if _, ok := x.lines[l.Node]; !ok {
				x.lines[l.Node] = l.Seq - 1
			}
		}
		left = max(0, left-len(lines))
	}
	return nil
}

func linesAfter(ctx context.Context, q *dbsqlc.Queries, run string, nodes []string, after map[string]int64) ([]line, error) {
	var out []line
	for _, node := range nodes {
		for last, more := after[node], true; more; {
			rows, err := q.LinesAfter(ctx, dbsqlc.LinesAfterParams{RunID: run, Node: node, After: last, Most: linesAtOnce})
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				out = append(out, line(r))
				last = r.Seq
			}
			more = len(rows) == linesAtOnce
		}
	}
	if err := steadyLines(ctx, q, run, out); err != nil {
		return nil, err
	}
	return inOrder(out), nil
}

// inOrder merges the lines of several nodes by their clocks and keeps each
// node's own order: a clock may have been set back while its agent was not running.
func inOrder(lines []line) []line {
	byNode := map[string][]line{}
	var nodes []string
	for _, l := range lines {
		if byNode[l.Node] == nil {
			nodes = append(nodes, l.Node)
		}
		byNode[l.Node] = append(byNode[l.Node], l)
	}
	out := make([]line, 0, len(lines))
	for len(out) < len(lines) {
		best := ""
		for _, n := range nodes {
			if len(byNode[n]) > 0 && (best == "" || byNode[n][0].At.Before(byNode[best][0].At)) {
				best = n
			}
		}
		out = append(out, byNode[best][0])
		byNode[best] = byNode[best][1:]
	}
	return out
}

func (w *watcher) line(run string, x *watched, l line) error {
	x.lines[l.Node] = l.Seq
	m := &linktrialv1.JournalLine{RunId: run, Node: l.Node, Seq: l.Seq, At: timestamppb.New(l.At), Type: l.Type, Text: textOf(journal.Type(l.Type), l.Body)}
	if l.ReceivedAt != nil {
		m.Received = timestamppb.New(*l.ReceivedAt)
	}
	if m.Type == string(journal.TypeWaiting) {
		if err := w.note(run, linktrialv1.Note_KIND_WAITS, m.Text); err != nil {
			return err
		}
	}
	return w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Journal{Journal: m}})
}

// textOf describes a record in one line, for people.
func textOf(t journal.Type, body json.RawMessage) string {
	var text string
	switch t {
	case journal.TypeRunStarted, journal.TypeRunResumed:
		text = with(body, func(b *journal.RunStarted) string {
			s := fmt.Sprintf("takes up a sheet of %d trials, %.12s", b.Trials, b.SheetHash)
			if t == journal.TypeRunResumed {
				s = "continues after a restart of the agent"
			}
			return s + ", linktrial " + b.Version
		})
	case journal.TypeRunEnded:
		text = with(body, func(b *journal.RunEnded) string { return "its part has ended: " + string(b.End) + because(b.Reason) })
	case journal.TypeProvenance:
		text = with(body, func(b *journal.Provenance) string {
			return fmt.Sprintf("host %s, kernel %s, %d drivers, %s", b.Host, b.Kernel, len(b.Drivers), b.Place)
		})
	case journal.TypeClockOffset:
		text = with(body, func(b *journal.ClockOffset) string {
			if b.Unknown != "" {
				return "clock offset " + b.When + " the run: unknown, " + b.Unknown
			}
			return fmt.Sprintf("clock offset %s the run: %+.3f ms, within %.3f ms", b.When, b.Offset.Seconds()*1e3, b.Error.Seconds()*1e3)
		})
	case journal.TypeClockStepped:
		text = with(body, func(b *journal.ClockStepped) string {
			return fmt.Sprintf("the node's clock stepped by %+.3f s", b.By.Seconds())
		})
	case journal.TypeListenerReady:
		text = with(body, func(b *journal.Listener) string {
			return fmt.Sprintf("%s is ready on port %d", listenerText(b), b.Port)
		})
	case journal.TypeListenerFailed:
		text = with(body, func(b *journal.Listener) string {
			return fmt.Sprintf("%s has failed%s%s", listenerText(b), because(string(b.Code)), because(b.Message))
		})
	case journal.TypeAgentStopped:
		text = with(body, func(b *journal.AgentStopped) string {
			return fmt.Sprintf("the agent did not run for %.1f s", b.To.Sub(b.From).Seconds())
		})
	case journal.TypeInterfaceFailed:
		text = with(body, func(b *journal.RadioInterface) string {
			return fmt.Sprintf("the radio's interface %s is not in order: %s", b.Device, b.Fault)
		})
	case journal.TypeInterfaceReady:
		text = with(body, func(b *journal.RadioInterface) string {
			return fmt.Sprintf("the radio's interface %s is in order again", b.Device)
		})
	case journal.TypeWaiting:
		text = with(body, func(b *journal.Waiting) string {
			if b.Fault == "" {
				return fmt.Sprintf("trial %d waits no longer", b.Trial)
			}
			return fmt.Sprintf("trial %d waits: %s", b.Trial, b.Fault)
		})
	default:
		text = textOfTrial(t, body)
	}
	// What a driver said may have several lines, and characters that move a cursor.
	return wording.Clean(text)
}

// listenerText names a listener.
func listenerText(b *journal.Listener) string {
	if b.At != "" {
		return fmt.Sprintf("the relay process of %s at the %s", b.Treatment, b.At)
	}
	return "the listener of " + b.Treatment
}

func textOfTrial(t journal.Type, body json.RawMessage) string {
	switch t {
	case journal.TypeAttemptStarted:
		return with(body, func(b *journal.AttemptStarted) string {
			return fmt.Sprintf("trial %d (%s, iteration %d), attempt %d starts", b.Trial, b.Treatment, b.Iteration, b.Attempt)
		})
	case journal.TypeConnected:
		return with(body, func(b *journal.Connected) string {
			return fmt.Sprintf("trial %d: flow %d is connected after %.3f s", b.Trial, b.Flow, time.Duration(b.ConnectNS).Seconds())
		})
	case journal.TypeReceived:
		return with(body, func(b *journal.Received) string {
			if b.Result == nil {
				return fmt.Sprintf("a transfer of %s was not received%s%s", b.Treatment, because(string(b.Code)), because(b.Message))
			}
			text := fmt.Sprintf("%d bytes of %s received in %.3f s", b.Result.SizeBytes, b.Treatment, time.Duration(b.Result.ElapsedNS).Seconds())
			if b.Result.Digest == "" { // of a probe
				return text + because(b.Reason) + because(b.Message)
			}
			return fmt.Sprintf("%s, digest %.12s", text, b.Result.Digest)
		})
	case journal.TypeAttemptEnded:
		return with(body, func(b *journal.AttemptEnded) string {
			return fmt.Sprintf("trial %d (%s, iteration %d), attempt %d: %s after %.3f s%s%s", b.Trial, b.Treatment, b.Iteration, b.Attempt, b.Verdict, b.Duration.Seconds(), because(b.Reason), because(b.Message))
		})
	case journal.TypeTrialEnded:
		return with(body, func(b *journal.TrialEnded) string {
			return fmt.Sprintf("trial %d has ended: %s, attempts: %d%s", b.Trial, b.Verdict, b.Attempts, because(b.Reason))
		})
	case journal.TypeCommand:
		return with(body, textOfCommand)
	case journal.TypeTelemetryFailed:
		return with(body, func(b *journal.Telemetry) string {
			return "telemetry " + b.Source + " cannot be read; the run continues without it" + because(b.Error)
		})
	case journal.TypeDriverMisbehaved:
		return with(body, func(b *journal.Misbehaviour) string {
			where := ""
			if b.Trial != nil {
				where = fmt.Sprintf("trial %d, attempt %d: ", *b.Trial, b.Attempt)
			}
			return where + "the driver of " + b.Treatment + " misbehaved" + because(b.Message)
		})
	case ingest.TypeRefused:
		return "a record that could not be stored" + because(reasonOf(body))
	case ingest.TypeLate:
		return "a record after the end of the journal, which counts nowhere" + because(reasonOf(body))
	}
	return string(t)
}

// reasonOf is why a record was refused.
func reasonOf(body json.RawMessage) string {
	return with(body, func(b *ingest.Refused) string {
		if b.Type != "" {
			return b.Type + ": " + b.Reason
		}
		return b.Reason
	})
}

func textOfCommand(b *journal.Command) string {
	s := "command: " + string(b.Kind)
	if b.Trial != nil {
		s += fmt.Sprintf(" trial %d", *b.Trial)
	}
	if b.By != "" {
		s += ", by " + b.By
	}
	s += because(b.Reason)
	if b.Rejected != "" {
		s += ", rejected: " + b.Rejected
	}
	return s
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// with reads a record's body; one that cannot be read was refused when it came.
func with[T any](body json.RawMessage, f func(*T) string) string {
	var b T
	if err := json.Unmarshal(body, &b); err != nil {
		return "a record that cannot be read: " + err.Error()
	}
	return f(&b)
}

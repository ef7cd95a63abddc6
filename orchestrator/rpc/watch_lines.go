package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store"
)

const (
	// newestLines is how many records of a campaign a watcher is sent at first.
	newestLines = 300
	// linesAtOnce bounds the records that one query reads.
	linesAtOnce = 2000
)

// line is one record of a node's journal, without what makes it large. Its time is by
// the node's clock as it was when the run began.
type line rpcdb.LinesAfterRow

// steadyLines takes the steps of the nodes' clocks off the times of lines.
func steadyLines(ctx context.Context, conn store.Conn, run string, lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	rows, err := conn.ClockOffsets(ctx, run)
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
		rows, err := rpcdb.New(w.s.cfg.Store).NewestLines(ctx, rpcdb.NewestLinesParams{RunID: id, Most: int32(max(left, 1))})
		if err != nil {
			return fmt.Errorf("watch run %s: %w", id, err)
		}
		lines := make([]line, len(rows))
		for i, r := range rows {
			lines[i] = line{Node: r.Node, Seq: r.Seq, At: r.At}
		}
		if err := steadyLines(ctx, w.s.cfg.Store.Conn, id, lines); err != nil {
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

func linesAfter(ctx context.Context, conn store.Conn, run string, nodes []string, after map[string]int64) ([]line, error) {
	var out []line
	for _, node := range nodes {
		for last, more := after[node], true; more; {
			rows, err := rpcdb.New(conn).LinesAfter(ctx, rpcdb.LinesAfterParams{RunID: run, Node: node, After: last, Most: linesAtOnce})
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
	if err := steadyLines(ctx, conn, run, out); err != nil {
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
	text := ""
	switch t {
	case ingest.TypeRefused:
		text = "a record that could not be stored: " + reasonOf(body)
	case ingest.TypeLate:
		text = "a record after the end of the journal, which counts nowhere: " + reasonOf(body)
	default:
		text = journal.Text(t, body)
	}
	// What a driver said may have several lines, and characters that move a cursor.
	return wording.Clean(text)
}

// reasonOf is why a record was refused.
func reasonOf(body json.RawMessage) string {
	var b ingest.Refused
	if err := json.Unmarshal(body, &b); err != nil {
		return "a record that cannot be read: " + err.Error()
	}
	if b.Type != "" {
		return b.Type + ": " + b.Reason
	}
	return b.Reason
}

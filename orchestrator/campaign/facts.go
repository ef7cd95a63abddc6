package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/judge"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry"
	"linktrial/protocols/contract"
)

// The facts that the judge decides from, as the store has them.

// clocks are those of a run's nodes, and its leading node's for times that are stored,
// by the comparison that was made last.
func (e *Engine) clocks(ctx context.Context, run string) (byNode map[string]*store.NodeClock, leads judge.Clock, err error) {
	rows, err := e.cfg.Store.ClockOffsets(ctx, run)
	if err != nil {
		return nil, leads, err
	}
	byNode = store.NodeClocks(rows)
	nodes, err := e.cfg.Store.RunNodes(ctx, run)
	for _, n := range nodes {
		if n.Role == string(leader) {
			leads = judge.Clock(byNode[n.Node].Stored(math.MaxInt64))
		}
	}
	return byNode, leads, err
}

func outageRecords(rows []store.OutageRecordsRow, clocks map[string]*store.NodeClock) []judge.Record {
	out := make([]judge.Record, len(rows))
	for i, r := range rows {
		c := clocks[r.Node]
		own := c.Recorded(r.Seq)
		out[i] = judge.Record{Node: r.Node, Role: radio.Role(r.Role), At: r.At.Add(own.Offset), Clock: judge.Clock(own), Type: journal.Type(r.Type), Body: r.Body,
			Before: r.Before.Add(c.Recorded(r.BeforeSeq).Offset)}
	}
	return out
}

// counters are what the run's nodes but the leading one counted, and the leading node's
// clock.
func (e *Engine) counters(ctx context.Context, r *run) ([]judge.Counter, judge.Clock, error) {
	nodes, err := e.cfg.Store.RunNodes(ctx, r.id)
	if err != nil {
		return nil, judge.Clock{}, err
	}
	rows, err := e.db.ControlRecords(ctx, r.id)
	if err != nil {
		return nil, judge.Clock{}, err
	}
	clocks, leads, err := e.clocks(ctx, r.id) // after the records: it has all steps before them
	if err != nil {
		return nil, judge.Clock{}, err
	}
	var out []judge.Counter
	for _, n := range nodes {
		if radio.Role(n.Role) == leader {
			continue
		}
		x := judge.Counter{Role: radio.Role(n.Role), Ended: n.Ended != nil}
		for _, row := range rows {
			c := judge.Counted{Clock: judge.Clock(clocks[row.Node].Recorded(row.Seq))}
			if row.Node == n.Node && json.Unmarshal(row.Body, &c.ControlCounted) == nil { // checked when it was stored
				x.Records = append(x.Records, c)
			}
		}
		out = append(out, x)
	}
	return judge.Counters(out, r.roles), leads, nil
}

// settleControl stores what control traffic an attempt met, unless a node's count of it
// may still come.
func (e *Engine) settleControl(ctx context.Context, run string, x *campaigndb.ControlUndecidedRow, counters []judge.Counter, leads judge.Clock, last bool) error {
	a := &judge.Attempt{Trial: int(x.Trial), Number: int(x.Attempt), Started: x.StartedAt, Lasted: time.Duration(x.DurationNs), Clock: leads, Reason: x.Reason, Last: x.Last, Marks: x.Marks}
	if x.Control != "" {
		if err := json.Unmarshal([]byte(x.Control), &a.Control); err != nil {
			return fmt.Errorf("trial %d, attempt %d: control: %w", x.Trial, x.Attempt, err)
		}
	}
	counts, mark := judge.Control(a, counters, last)
	if counts == nil {
		return nil
	}
	if mark != nil && x.Counts {
		if err := e.mark(ctx, run, mark); err != nil {
			return err
		}
	}
	encoded, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	return e.db.SetControl(ctx, campaigndb.SetControlParams{RunID: run, Trial: x.Trial, Attempt: x.Attempt, Control: encoded})
}

// watchedNode is what a node watched, as far as it was read.
type watchedNode struct {
	judge.Node
	seqs   []int64 // of its records
	newest campaigndb.NewestRecordRow
}

// watchedBy is what the nodes of a run watched, and the leading node's clock. What was
// read before is kept.
func (e *Engine) watchedBy(ctx context.Context, r *run) (*judge.Run, *store.NodeClock, error) {
	st := e.cfg.Store
	nodes, err := st.RunNodes(ctx, r.id)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		w := r.watched[n.Node]
		if w == nil {
			w = &watchedNode{Node: judge.Node{Role: radio.Role(n.Role)}}
			r.watched[n.Node] = w
		}
		if err := w.read(ctx, e.db, r.id, n.Node); err != nil {
			return nil, nil, err
		}
	}
	offsets, err := st.ClockOffsets(ctx, r.id) // after the records: it has all steps before them
	if err != nil {
		return nil, nil, err
	}
	clocks, facts := store.NodeClocks(offsets), &judge.Run{Sheet: r.sheet}
	var leads *store.NodeClock
	for node, w := range r.watched {
		c := clocks[node]
		if w.Role == leader {
			leads = c
		}
		w.timed(c)
		facts.Nodes = append(facts.Nodes, &w.Node)
	}
	if facts.Counts() {
		rows, err := st.OutageRecords(ctx, r.id)
		if err != nil {
			return nil, nil, err
		}
		facts.Records = outageRecords(rows, clocks)
	}
	return facts, leads, e.readSources(ctx, r, facts, clocks)
}

// read adds what was delivered since.
func (w *watchedNode) read(ctx context.Context, q *campaigndb.Queries, run, node string) error {
	after := int64(0)
	if n := len(w.seqs); n > 0 {
		after = w.seqs[n-1]
	}
	rows, err := q.WatchedRecords(ctx, campaigndb.WatchedRecordsParams{RunID: run, Node: node, After: after})
	if err != nil {
		return err
	}
	for _, r := range rows {
		var x judge.Watched
		if json.Unmarshal(r.Body, &x.Watched) != nil {
			continue // checked when it was stored
		}
		w.seqs, w.Watched = append(w.seqs, r.Seq), append(w.Watched, x)
	}
	w.newest, err = q.NewestRecord(ctx, campaigndb.NewestRecordParams{RunID: run, Node: node})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// timed sets the node's clock, which later comparisons change.
func (w *watchedNode) timed(c *store.NodeClock) {
	for i, seq := range w.seqs {
		w.Watched[i].Clock = judge.Clock(c.Recorded(seq))
	}
	w.Newest = w.newest.At.Add(c.Recorded(w.newest.Seq).Offset)
}

// readSources adds when the nodes last read the sources that rules are about.
func (e *Engine) readSources(ctx context.Context, r *run, facts *judge.Run, clocks map[string]*store.NodeClock) error {
	for _, w := range r.watched {
		w.Sources = nil
	}
	names := facts.Readings()
	if len(names) == 0 {
		return nil
	}
	rows, err := e.db.NewestReadings(ctx, campaigndb.NewestReadingsParams{RunID: r.id, Names: names})
	for _, x := range rows {
		if w := r.watched[x.Node]; w != nil {
			w.Sources = append(w.Sources, judge.Source{Name: x.Source, At: x.At.Add(clocks[x.Node].Stored(w.newest.Seq).Offset), Failed: x.Failed})
		}
	}
	return err
}

// readAttempt adds to an attempt what the rules of its plan need.
func (e *Engine) readAttempt(ctx context.Context, run string, facts *judge.Run, a *judge.Attempt) error {
	trial, attempt := int32(a.Trial), int32(a.Number)
	if v := facts.Sheet.Valid; v != nil && v.Interfering != nil {
		rows, err := e.db.CarriedBytes(ctx, campaigndb.CarriedBytesParams{RunID: run, Trial: trial, Attempt: attempt})
		if err != nil {
			return err
		}
		a.Carried.Delivered = map[int]int64{}
		for _, r := range rows {
			a.Carried.Delivered[int(r.Flow)] += r.Bytes
		}
		if a.Carried.Probed, err = e.db.ProbedBytes(ctx, campaigndb.ProbedBytesParams{RunID: run, Trial: trial, Attempt: attempt}); err != nil {
			return err
		}
	}
	if facts.Counts() && a.Succeeded {
		rows, err := e.cfg.Store.FlowsOfTrials(ctx, store.FlowsOfTrialsParams{RunID: run, Trials: []int32{trial}})
		if err != nil {
			return err
		}
		a.Carried.Samples = map[int]*contract.Sample{}
		for _, f := range rows {
			var last contract.Sample
			if f.Attempt == attempt && f.Verdict != nil && *f.Verdict == string(journal.Succeeded) && len(f.LastSample) > 0 && json.Unmarshal(f.LastSample, &last) == nil {
				a.Carried.Samples[int(f.Flow)] = &last
			}
		}
	}
	if len(facts.Readings()) == 0 {
		return nil
	}
	readings, moves, err := telemetry.During(ctx, e.cfg.Store.Conn, run, a.Started, a.Started.Add(a.Lasted))
	a.Readings = readings
	for _, m := range moves {
		a.Moves = append(a.Moves, judge.Move{Role: radio.Role(m.Role), Metres: m.Metres})
	}
	return err
}

package rpc

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/runcommand"
	"linktrial/internal/unit"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store"
	"linktrial/protocols/contract"
)

const (
	// repeatEvery is how often it is sent that there is still no contact with a node.
	repeatEvery = 15 * time.Second
	// unconfirmedEvery is how often the store is asked for transfers whose reception
	// the server will not confirm any more.
	unconfirmedEvery = 2 * time.Second
)

// extras is what the store has of a run besides its attempts.
type extras struct {
	commands    []*linktrialv1.Command
	marks       store.Marks
	marked      []rpcdb.AttemptsAfterRow // attempts that were sent with another mark
	flows       map[[2]int32][]store.Flow
	unattempted []rpcdb.UnattemptedTrialsRow
	unconfirmed []rpcdb.UnconfirmedTrialsRow
	lines       []line
	losses      []rpcdb.ContactLoss
	state       campaign.State
}

func (w *watcher) readExtras(ctx context.Context, conn store.Conn, id string, x *watched, o *store.RunOverview) (extras, error) {
	q := rpcdb.New(conn)
	e := extras{state: campaign.State(o.State)}
	var err error
	if e.commands, err = readCommands(ctx, conn, id); err != nil {
		return e, err
	}
	if e.marks, err = store.ReadMarks(ctx, conn, id); err != nil {
		return e, err
	}
	for _, key := range changedMarks(x.marks, e.marks) {
		a, err := q.AttemptOfTrial(ctx, rpcdb.AttemptOfTrialParams{RunID: id, Trial: key[0], Attempt: key[1]})
		if err != nil {
			return e, err
		}
		if a.Attempt.EndedSeq == nil || *a.Attempt.EndedSeq > x.endedSeq {
			continue // it is sent for the first time, with its mark
		}
		e.marked = append(e.marked, rpcdb.AttemptsAfterRow{Attempt: a.Attempt, Iteration: a.Iteration, Treatment: a.Treatment, Settled: true, Last: a.Last})
	}
	if e.flows, err = flowsOf(ctx, conn, id, e.marked); err != nil {
		return e, err
	}
	if e.losses, err = q.ContactLosses(ctx, id); err != nil {
		return e, err
	}
	skips := slices.ContainsFunc(e.commands, func(c *linktrialv1.Command) bool { return c.Kind == string(runcommand.Skip) })
	if skips || o.TrialsNotNeeded > 0 && len(x.unattempted) < int(o.TrialsNotNeeded) {
		if e.unattempted, err = q.UnattemptedTrials(ctx, id); err != nil {
			return e, err
		}
	}
	under := e.state == campaign.Running || e.state == campaign.Collecting
	if now := time.Now(); under && now.Sub(x.unconfirmedAt) >= unconfirmedEvery || o.EndedAt != nil {
		x.unconfirmedAt = now
		if e.unconfirmed, err = q.UnconfirmedTrials(ctx, id); err != nil {
			return e, err
		}
	}
	if w.journal {
		e.lines, err = linesAfter(ctx, conn, id, o.Nodes, x.lines)
	}
	return e, err
}

// changedMarks are the attempts whose marks differ.
func changedMarks(before, after store.Marks) [][2]int32 {
	var out [][2]int32
	for key, m := range after {
		if old := before[key]; old == nil || old.Reason != m.Reason {
			out = append(out, key)
		}
	}
	for key := range before {
		if after[key] == nil {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return out
}

func (w *watcher) sendExtras(id string, x *watched, before store.Marks, e *extras) error {
	for i := range e.marked {
		a := &e.marked[i].Attempt
		if err := w.ended(id, x, &e.marked[i], e.flows[[2]int32{a.Trial, a.Attempt}]); err != nil {
			return err
		}
	}
	for _, t := range e.unattempted {
		if x.unattempted[t.Trial] {
			continue
		}
		x.unattempted[t.Trial] = true
		// No attempt has number 0: the trial ended without one.
		row := &linktrialv1.AttemptRow{Verdict: string(journal.Aborted), Reason: journal.ReasonSkipped, Message: "the trial was skipped"}
		if t.NotNeeded {
			row.Reason, row.Message = journal.ReasonNotNeeded, "the plan's rule to stop by had ended the trial"
		}
		if err := w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_TrialEnded{TrialEnded: &linktrialv1.TrialEnded{
			RunId: id, Trial: t.Trial, Iteration: t.Iteration, Treatment: t.Treatment, Attempt: row, LastAttempt: true}}}); err != nil {
			return err
		}
	}
	for _, c := range e.commands {
		if old := x.commands[c.Id]; old != nil && proto.Equal(old, c) {
			continue
		}
		x.commands[c.Id] = c
		if err := w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Command{Command: c}}); err != nil {
			return err
		}
	}
	for _, l := range e.lines {
		if err := w.line(id, x, l); err != nil {
			return err
		}
	}
	if err := w.sendLosses(id, x, e.losses); err != nil {
		return err
	}
	return w.sendUnconfirmed(id, x, e)
}

// sendLosses sends a note for each time without contact that is over, also for those
// that were over before anybody watched.
func (w *watcher) sendLosses(id string, x *watched, losses []rpcdb.ContactLoss) error {
	for _, l := range losses {
		key := l.Node + " " + l.LostAt.String()
		if l.BackAt == nil || x.losses[key] {
			continue
		}
		x.losses[key] = true
		note := &linktrialv1.Note{RunId: id, Kind: linktrialv1.Note_KIND_CONTACT, Text: lossText(&l), At: timestamppb.New(*l.BackAt)}
		if err := w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Note{Note: note}}); err != nil {
			return err
		}
	}
	return nil
}

// lossText describes a time without contact that is over, for people.
func lossText(l *rpcdb.ContactLoss) string {
	const clock = "15:04:05"
	from, to := l.LostAt.UTC(), l.BackAt.UTC()
	text := fmt.Sprintf("contact with %s again: there was none from %s to %s UTC (%.0f s)", l.Node, from.Format(clock), to.Format(clock), to.Sub(from).Seconds())
	if l.Restarted {
		text += "; its agent was started again"
	}
	return text
}

// sendUnconfirmed sends a note for each transfer whose reception the server will not
// confirm any more. Nothing is repeated automatically: the director decides.
func (w *watcher) sendUnconfirmed(id string, x *watched, e *extras) error {
	for _, t := range e.unconfirmed {
		if x.unconfirmed[t.Trial] {
			continue
		}
		x.unconfirmed[t.Trial] = true
		text := fmt.Sprintf("trial %d (%s, iteration %d) succeeded for the client, but the server never confirmed it, so it counts as failed; ", t.Trial, t.Treatment, t.Iteration)
		if e.state == campaign.Running {
			text += fmt.Sprintf("run it once more with: linktrial run repeat %s --trial %d", id, t.Trial)
		} else {
			text += "the run's trials are over, so it is too late for linktrial run repeat: only a new run measures it again"
		}
		if err := w.note(id, linktrialv1.Note_KIND_UNCONFIRMED, text); err != nil {
			return err
		}
	}
	return nil
}

// sendUnwritable sends since when the database takes no changes, and that it does again,
// as notes of the first run that has not ended: what nodes measure is not stored
// meanwhile, and so not seen.
func (w *watcher) sendUnwritable(now *store.Unwritable) error {
	i := slices.IndexFunc(w.order, func(id string) bool { return !w.runs[id].over })
	before := w.unwritable
	w.unwritable = now
	switch {
	case i < 0 || now != nil && before != nil && *now == *before || now == before:
		return nil
	case now == nil:
		return w.note(w.order[i], linktrialv1.Note_KIND_UNSPECIFIED, fmt.Sprintf("the database takes changes again: since %s, for %.0f s, it took none; nothing was lost",
			unit.Clock(before.Since), time.Since(before.Since).Seconds()))
	}
	return w.note(w.order[i], linktrialv1.Note_KIND_UNSPECIFIED, fmt.Sprintf("since %s the database %s; nothing is lost: nodes continue, keep what they measure, and deliver it when that is repaired",
		unit.Clock(now.Since), now.Why))
}

// sendNoContact sends with which nodes there is no contact: when that begins, when
// it ends, and every repeatEvery while it lasts.
func (w *watcher) sendNoContact(id string, x *watched, missing []nodes.MissingNode, now time.Time) error {
	still := map[string]bool{}
	for _, n := range missing {
		still[n.Name] = true
		sent, known := x.noContact[n.Name]
		if !known {
			if err := w.note(id, linktrialv1.Note_KIND_NO_CONTACT, fmt.Sprintf("no contact with agent %s since %s, %.0f s; whether the run continues there is not known, and records that it keeps arrive when it is back",
				n.Name, unit.Clock(n.Since), now.Sub(n.Since).Seconds())); err != nil {
				return err
			}
		}
		if known && now.Sub(sent) < repeatEvery {
			continue
		}
		x.noContact[n.Name] = now
		if err := w.contact(&linktrialv1.NoContact{RunId: id, Node: n.Name, Since: timestamppb.New(n.Since), At: timestamppb.New(now)}); err != nil {
			return err
		}
	}
	for name := range x.noContact {
		if still[name] {
			continue
		}
		delete(x.noContact, name)
		if err := w.contact(&linktrialv1.NoContact{RunId: id, Node: name}); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) contact(m *linktrialv1.NoContact) error {
	return w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_NoContact{NoContact: m}})
}

// freshSamples sends the samples that have arrived since the last time. A watcher
// that joins while an attempt runs gets the samples of that one that are kept.
func (w *watcher) freshSamples(id string, x *watched) error {
	batches, next := w.s.cfg.Engine.Live.Samples(id, x.fresh)
	x.fresh = next
	if !x.joined {
		batches = slices.DeleteFunc(batches, func(b ingest.Samples) bool { return [2]int32{int32(b.Trial), int32(b.Attempt)} != x.running })
	}
	x.joined = true
	var out []*linktrialv1.LiveSamples
	for _, b := range batches {
		i := slices.IndexFunc(out, func(m *linktrialv1.LiveSamples) bool {
			return int(m.Trial) == b.Trial && int(m.Attempt) == b.Attempt && int(m.Flow) == b.Flow
		})
		if i < 0 {
			out = append(out, &linktrialv1.LiveSamples{RunId: id, Trial: int32(b.Trial), Attempt: int32(b.Attempt), Flow: int32(b.Flow),
				Treatment: carriedBy(x.sheet, b.Trial, b.Flow)})
			i = len(out) - 1
		}
		for k := range b.Samples {
			addSample(out[i], &b.Samples[k])
		}
	}
	for _, m := range out {
		if err := w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Samples{Samples: m}}); err != nil {
			return err
		}
	}
	return nil
}

// carriedBy is the treatment of a flow, or of a probe, which come after the flows.
func carriedBy(s *runsheet.Sheet, trial, flow int) string {
	if carried := s.Trials[trial].Carried(); flow < len(carried) {
		return carried[flow].Treatment
	}
	return ""
}

func addSample(m *linktrialv1.LiveSamples, s *contract.Sample) {
	bytes := s.SentBytes
	if s.AckedBytes != nil {
		bytes = *s.AckedBytes
	}
	m.At = append(m.At, time.Duration(s.ElapsedNS).Seconds())
	m.Bytes = append(m.Bytes, float64(bytes))
	m.CwndBytes = append(m.CwndBytes, orNaN(s.CwndBytes))
	m.SrttMs = append(m.SrttMs, orNaN(s.SRTTUS)/1e3)
}

func orNaN(n *int64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/campaign/live"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store"
)

const (
	// pollEvery bounds how often a watcher reads the store while much happens.
	pollEvery = 50 * time.Millisecond
	// progressEvery bounds the progress of one run: at most four a second.
	progressEvery = 250 * time.Millisecond
	// contactEvery is how often a watcher looks for nodes without contact while
	// nothing else happens.
	contactEvery = time.Second
	// slowPreparation is after how long a note says what a run waits for.
	slowPreparation = 15 * time.Second
)

// Watch sends the state of a campaign and then every change. It compares the state
// with what it has sent: a slow reader misses intermediate states, but no attempt.
// It ends when all runs have ended.
func (s *operators) Watch(ctx context.Context, req *connect.Request[linktrialv1.WatchRequest], stream *connect.ServerStream[linktrialv1.WatchResponse]) error {
	if err := s.campaignOf(ctx, req.Msg.CampaignId); err != nil {
		return s.cfg.answer(ctx, "watch", err)
	}
	w := &watcher{s: s, campaign: req.Msg.CampaignId, journal: req.Msg.Journal, samples: req.Msg.Samples, send: stream.Send, runs: map[string]*watched{}}
	for {
		changed := s.cfg.Engine.Live.Changed()
		over, err := w.sendChanges(ctx)
		if err != nil {
			return s.cfg.answer(ctx, "watch", err)
		}
		if over {
			return nil
		}
		if !pause(ctx, s.cfg.Engine.Stopping(), pollEvery, nil) || !pause(ctx, s.cfg.Engine.Stopping(), contactEvery, changed) {
			if ctx.Err() != nil {
				return s.cfg.answer(ctx, "watch", ctx.Err())
			}
			return s.cfg.answer(ctx, "watch", nodes.ErrStopping)
		}
	}
}

// pause waits for d, or until wake is closed. It reports whether to go on: false
// where ctx has ended or the orchestrator stops.
func pause(ctx context.Context, stopping <-chan struct{}, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-stopping:
		return false
	case <-wake:
	case <-t.C:
	}
	return true
}

type watcher struct {
	s        *operators
	campaign string
	journal  bool // asked for
	samples  bool // asked for
	send     func(*linktrialv1.WatchResponse) error
	runs     map[string]*watched
	order    []string

	unwritable *store.Unwritable // that was sent; nil: none, or it is over
}

// watched is what a watcher has sent of one run.
type watched struct {
	sheet     *runsheet.Sheet
	version   uint64
	wasRead   bool // from the store, at least once
	run       *linktrialv1.Run
	estimates []float64
	over      bool
	marks     store.Marks

	endedSeq      int64             // of the last attempt sent as ended
	running       [2]int32          // trial and attempt sent as started
	misbehaviour  map[string]int64  // last record sent, by node
	refused       map[string]string // why a statement was refused, as it was sent last, by node
	progressAt    time.Time
	progress      *linktrialv1.Progress
	noContact     map[string]time.Time            // when it was sent last, by node
	commands      map[string]*linktrialv1.Command // as sent, by identity
	unattempted   map[int32]bool                  // trials without an attempt that were sent as ended
	lines         map[string]int64                // last journal record sent, by node
	fresh         int64                           // number of the next batch of samples
	joined        bool                            // samples were sent or looked for
	losses        map[string]bool                 // times without contact that were sent as over
	unconfirmed   map[int32]bool                  // trials that were sent as unconfirmed
	unconfirmedAt time.Time                       // when they were looked for last
	since         time.Time                       // of its state
	waitsSent     string                          // what the run waits for before it begins, as it was sent last
	waitSent      string                          // why it waits since, as it was sent last; empty: it does not
}

// sendChanges sends everything that has changed, and reports whether the campaign
// has ended.
func (w *watcher) sendChanges(ctx context.Context) (bool, error) {
	if w.order == nil {
		rows, err := w.s.cfg.Store.CampaignOverview(ctx, w.campaign)
		if err != nil {
			return false, err
		}
		for _, r := range rows {
			w.order = append(w.order, r.ID)
			w.runs[r.ID] = &watched{noContact: map[string]time.Time{}, misbehaviour: map[string]int64{}, refused: map[string]string{}, commands: map[string]*linktrialv1.Command{},
				unattempted: map[int32]bool{}, losses: map[string]bool{}, unconfirmed: map[int32]bool{}}
		}
		if w.journal {
			if err := w.newestLines(ctx); err != nil {
				return false, err
			}
		}
	}
	if err := w.sendUnwritable(w.s.cfg.Store.Unwritable()); err != nil {
		return false, err
	}
	over := true
	for _, id := range w.order {
		x := w.runs[id]
		if x.over {
			continue
		}
		live := w.s.cfg.Engine.Live.Of(id)
		if !x.wasRead || x.version != live.Version {
			if err := w.sendStored(ctx, id, x); err != nil {
				return false, err
			}
			x.version, x.wasRead = live.Version, true
		}
		if err := w.live(id, x, live); err != nil {
			return false, err
		}
		if w.samples {
			if err := w.freshSamples(id, x); err != nil {
				return false, err
			}
		}
		over = over && x.over
	}
	return over, nil
}

// stored is what the store has of a run that may not have been sent yet.
type stored struct {
	overview      store.RunOverview
	attempts      []rpcdb.AttemptsAfterRow  // that have ended since, and those that run
	flows         map[[2]int32][]store.Flow // by trial and attempt
	misbehaviours []rpcdb.MisbehavioursRow
	refused       []rpcdb.RefusedStatementsRow
	extras        extras
}

// read reads what the store has of a run, all of it at one moment.
func (w *watcher) read(ctx context.Context, id string, x *watched) (*stored, error) {
	r := &stored{}
	err := w.s.cfg.Store.Snapshot(ctx, func(tx store.Conn) error {
		var err error
		q := rpcdb.New(tx)
		if r.overview, err = tx.RunOverview(ctx, id); err != nil {
			return err
		}
		if x.sheet == nil {
			b, err := tx.RunSheet(ctx, id)
			if err != nil {
				return err
			}
			if x.sheet, err = runsheet.Decode(b); err != nil {
				return err
			}
		}
		if r.attempts, err = q.AttemptsAfter(ctx, rpcdb.AttemptsAfterParams{RunID: id, AfterSeq: x.endedSeq}); err != nil {
			return err
		}
		if r.flows, err = flowsOf(ctx, tx, id, r.attempts); err != nil {
			return err
		}
		if r.misbehaviours, err = q.Misbehaviours(ctx, id); err != nil {
			return err
		}
		if r.refused, err = q.RefusedStatements(ctx, id); err != nil {
			return err
		}
		r.extras, err = w.readExtras(ctx, tx, id, x, &r.overview)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watch run %s: %w", id, err)
	}
	return r, nil
}

// flowsOf returns the flows of attempts of a run, with one query however many there are:
// who opens the page of a run that has ended gets thousands.
func flowsOf(ctx context.Context, conn store.Conn, run string, attempts []rpcdb.AttemptsAfterRow) (map[[2]int32][]store.Flow, error) {
	out := map[[2]int32][]store.Flow{}
	if len(attempts) == 0 {
		return out, nil
	}
	wanted := map[[2]int32]bool{}
	var trials []int32
	for i := range attempts {
		a := &attempts[i].Attempt
		wanted[[2]int32{a.Trial, a.Attempt}] = true
		trials = append(trials, a.Trial)
	}
	slices.Sort(trials)
	rows, err := conn.FlowsOfTrials(ctx, store.FlowsOfTrialsParams{RunID: run, Trials: slices.Compact(trials)})
	if err != nil {
		return nil, err
	}
	for _, f := range rows {
		if key := [2]int32{f.Trial, f.Attempt}; wanted[key] {
			out[key] = append(out[key], store.Flow{Flow: f})
		}
	}
	return out, nil
}

// sendStored sends what the store has of a run and has not been sent. The run is
// sent before its attempts, and once more after the last of them when no other
// follows: who watches shows them in that order.
func (w *watcher) sendStored(ctx context.Context, id string, x *watched) error {
	r, err := w.read(ctx, id, x)
	if err != nil {
		return err
	}
	marksBefore := x.marks
	x.estimates, x.marks = r.overview.EstimatedSeconds, r.extras.marks
	run := w.s.run(&r.overview)
	run.Settings = x.sheet.Cell.Words()
	ended := r.overview.EndedAt != nil
	last := ended || run.State == linktrialv1.RunState_RUN_STATE_COLLECTING
	if !last || x.run == nil {
		if err := w.sendRun(x, run); err != nil {
			return err
		}
	}
	for i := range r.attempts {
		if err := w.attempt(id, x, &r.attempts[i], r.flows); err != nil {
			return err
		}
	}
	if err := w.sendExtras(id, x, marksBefore, &r.extras); err != nil {
		return err
	}
	if err := w.sendMisbehaviours(id, x, r.misbehaviours); err != nil {
		return err
	}
	if err := w.sendRefused(id, x, r.refused); err != nil {
		return err
	}
	x.over = ended
	return w.sendRun(x, run)
}

func (w *watcher) sendMisbehaviours(id string, x *watched, rows []rpcdb.MisbehavioursRow) error {
	for _, n := range rows {
		if n.Seq <= x.misbehaviour[n.Node] {
			continue
		}
		x.misbehaviour[n.Node] = n.Seq
		if n.Type == string(ingest.TypeLate) {
			if err := w.note(id, linktrialv1.Note_KIND_MISBEHAVIOUR, fmt.Sprintf("record %d of %s came after the end of its journal; it is kept and counts nowhere", n.Seq, n.Node)); err != nil {
				return err
			}
			continue
		}
		if n.Type == string(ingest.TypeRefused) {
			if err := w.note(id, linktrialv1.Note_KIND_MISBEHAVIOUR, fmt.Sprintf("record %d of %s's journal could not be stored: %s", n.Seq, n.Node, reasonOf(n.Body))); err != nil {
				return err
			}
			continue
		}
		var m journal.Misbehaviour
		if err := json.Unmarshal(n.Body, &m); err != nil {
			return fmt.Errorf("watch run %s: record %d: %w", id, n.Seq, err)
		}
		where := "treatment " + m.Treatment
		if m.Trial != nil {
			where += fmt.Sprintf(", trial %d", *m.Trial)
		}
		if err := w.note(id, linktrialv1.Note_KIND_MISBEHAVIOUR, fmt.Sprintf("%s on %s: %s", where, n.Node, m.Message)); err != nil {
			return err
		}
	}
	return nil
}

// sendRefused tells of statements on journals that were refused.
func (w *watcher) sendRefused(id string, x *watched, rows []rpcdb.RefusedStatementsRow) error {
	for _, n := range rows {
		if x.refused[n.Node] == n.Unsigned {
			continue
		}
		x.refused[n.Node] = n.Unsigned
		if err := w.note(id, linktrialv1.Note_KIND_MISBEHAVIOUR, fmt.Sprintf("%s: %s", n.Node, n.Unsigned)); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) sendRun(x *watched, run *linktrialv1.Run) error {
	if x.run != nil && proto.Equal(x.run, run) {
		return nil
	}
	if x.run == nil || x.run.State != run.State {
		x.since = time.Now()
	}
	x.run = run
	return w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Run{Run: run}})
}

func (w *watcher) attempt(id string, x *watched, a *rpcdb.AttemptsAfterRow, flows map[[2]int32][]store.Flow) error {
	key := [2]int32{a.Attempt.Trial, a.Attempt.Attempt}
	if a.Attempt.EndedSeq == nil {
		if x.running == key {
			return nil
		}
		x.running, x.progress = key, nil
		return w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_TrialStarted{TrialStarted: &linktrialv1.TrialStarted{
			RunId: id, Trial: key[0], Attempt: key[1], Iteration: a.Iteration, Treatment: a.Treatment, EstimatedSeconds: x.estimates[key[0]]}}})
	}
	if !a.Settled {
		return nil // it is sent once it is known whether another attempt follows
	}
	x.endedSeq = *a.Attempt.EndedSeq
	return w.ended(id, x, a, flows[key])
}

func (w *watcher) ended(id string, x *watched, a *rpcdb.AttemptsAfterRow, flows []store.Flow) error {
	key := [2]int32{a.Attempt.Trial, a.Attempt.Attempt}
	y, err := store.BuildAttempt((*store.Attempt)(&a.Attempt), flows, &x.sheet.Trials[key[0]], x.marks.Of(key[0], key[1]))
	if err != nil {
		return fmt.Errorf("watch run %s: %w", id, err)
	}
	return w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_TrialEnded{TrialEnded: &linktrialv1.TrialEnded{
		RunId: id, Trial: key[0], Iteration: a.Iteration, Treatment: a.Treatment, Attempt: reply.Attempt(y), LastAttempt: a.Last}}})
}

// live sends what the engine knows and the store does not.
func (w *watcher) live(id string, x *watched, l live.Run) error {
	now := time.Now()
	if p := l.Progress; p != nil && x.running == [2]int32{int32(p.Trial), int32(p.Attempt)} && now.Sub(x.progressAt) >= progressEvery {
		m := &linktrialv1.Progress{RunId: id, Trial: int32(p.Trial), Attempt: int32(p.Attempt), Bytes: p.Bytes, ElapsedSeconds: p.Elapsed.Seconds()}
		for _, f := range x.sheet.Trials[p.Trial].Flows {
			m.SizeBytes += f.SizeBytes
		}
		if x.progress == nil || !proto.Equal(x.progress, m) {
			x.progress, x.progressAt = m, now
			if err := w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Progress{Progress: m}}); err != nil {
				return err
			}
		}
	}
	if err := w.sendNoContact(id, x, w.s.cfg.Engine.Nodes.Missing(id), now); err != nil {
		return err
	}
	if err := w.sendWait(id, x, l.Wait); err != nil {
		return err
	}
	return w.sendWaits(id, x, l.WaitingFor, now)
}

// sendWait sends why a run that is under way waits, and when it goes on.
func (w *watcher) sendWait(id string, x *watched, wait *ingest.Wait) error {
	if wait == nil || wait.Fault == x.waitSent {
		return nil
	}
	x.waitSent = wait.Fault
	if wait.Fault == "" {
		return w.note(id, linktrialv1.Note_KIND_WAITS, fmt.Sprintf("run %s goes on with trial %d", id, wait.Trial))
	}
	return w.note(id, linktrialv1.Note_KIND_WAITS, fmt.Sprintf("run %s waits with trial %d since %s: %s", id, wait.Trial, unit.Clock(wait.Since), wait.Fault))
}

// sendWaits sends what a run waits for: at once where another run is in its way, and
// after a while where nodes are slow to prepare.
func (w *watcher) sendWaits(id string, x *watched, waitingFor []string, now time.Time) error {
	queued := x.run.GetState() == linktrialv1.RunState_RUN_STATE_QUEUED
	if len(waitingFor) == 0 || !queued && (x.waitsSent != "" || now.Sub(x.since) < slowPreparation) {
		return nil
	}
	text := strings.Join(waitingFor, ", ")
	if text == x.waitsSent {
		return nil
	}
	x.waitsSent = text
	if queued {
		return w.note(id, linktrialv1.Note_KIND_WAITS, fmt.Sprintf("run %s waits for %s", id, text))
	}
	return w.note(id, linktrialv1.Note_KIND_WAITS, "the run still waits for "+text)
}

func (w *watcher) note(run string, kind linktrialv1.Note_Kind, text string) error {
	return w.send(&linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_Note{Note: &linktrialv1.Note{RunId: run, Text: text, Kind: kind}}})
}

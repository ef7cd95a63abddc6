package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store/dbsqlc"
)

// Wish is how far a node may go with a run.
type DesiredState int

// The wishes, as agents know them.
const (
	DesirePrepare DesiredState = iota + 1
	DesireRun
	DesireFinish
	DesireAbort
)

// Assignment is one run that a node takes part in.
type Assignment struct {
	Run          string
	SheetHash    string
	Sheet        []byte
	Signature    signature.Signature // of run and sheet; zero where nobody vouched for it
	DesiredState DesiredState
	Reason       string // of an abort
	// Addresses on the radio network by role, as the nodes registered them.
	Addresses map[radio.Role]string
	Commands  []Command // of people to the leading agent, oldest first
}

// wishes is all that a node is to do. The revision is made from the content,
// so that it means the same to an orchestrator that was started again.
type assignments struct {
	revision int64
	list     []Assignment
}

var noAssignments = newAssignments(nil)

func newAssignments(as []Assignment) assignments {
	h := sha256.New()
	for _, a := range as {
		fmt.Fprintf(h, "%q %s %d %q %q\n", a.Run, a.SheetHash, a.DesiredState, a.Reason, a.Addresses) // maps print in order of their keys
		for _, o := range a.Commands {
			fmt.Fprintf(h, "%q %q %d\n", o.ID, o.Kind, o.Trial)
		}
	}
	n := int64(binary.BigEndian.Uint64(h.Sum(nil)) & math.MaxInt64)
	return assignments{revision: max(n, 1), list: as} // 0 is what an agent has seen at first
}

// facts is what the engine needs of a sheet.
type facts struct {
	sheet     []byte
	signature signature.Signature
	hash      string
	listeners []string
	inBand    bool
	longest   time.Duration
	radio     *radio.Profile
}

// unfinishedFor is how long after a run's end a node that was away is told of it.
const unfinishedFor = 24 * time.Hour

// view is the open runs at one moment.
type view struct {
	runs       []dbsqlc.OpenRunsRow
	parts      map[string][]part
	listening  map[string]map[string]bool
	unfinished []dbsqlc.UnfinishedPartsRow
	orders     map[string][]Command // by run
}

// advance takes every step that is due, until there is none, and then says
// what each node is to do.
func (e *Engine) advance(ctx context.Context) error {
	for {
		v, err := e.look(ctx)
		if err != nil {
			return err
		}
		runs, err := e.derive(ctx, v)
		if err != nil {
			return err
		}
		moved := false
		now := e.cfg.now()
		for _, r := range runs {
			did, err := e.take(ctx, r, next(r, now, e.cfg.Waits))
			if err != nil {
				return fmt.Errorf("run %s: %w", r.id, err)
			}
			moved = moved || did
		}
		if moved {
			continue
		}
		return e.publish(ctx, v, runs)
	}
}

func (e *Engine) look(ctx context.Context) (*view, error) {
	v := &view{parts: map[string][]part{}, listening: map[string]map[string]bool{}, orders: map[string][]Command{}}
	err := e.cfg.Store.Snapshot(ctx, func(q *dbsqlc.Queries) error {
		var err error
		if v.runs, err = q.OpenRuns(ctx); err != nil {
			return err
		}
		parts, err := q.OpenRunNodes(ctx)
		if err != nil {
			return err
		}
		for _, p := range parts {
			x := part{role: radio.Role(p.Role), node: p.Node, reason: p.EndReason, provenance: p.HasProvenance}
			if p.Ended != nil {
				x.ended = journal.RunEnd(*p.Ended)
			}
			if p.DeliveredAt != nil {
				x.deliveredAt = *p.DeliveredAt
			}
			v.parts[p.RunID] = append(v.parts[p.RunID], x)
		}
		listeners, err := q.OpenRunListeners(ctx)
		if err != nil {
			return err
		}
		for _, l := range listeners {
			if v.listening[l.RunID] == nil {
				v.listening[l.RunID] = map[string]bool{}
			}
			v.listening[l.RunID][l.Treatment] = true
		}
		orders, err := q.OpenRunCommands(ctx)
		if err != nil {
			return err
		}
		for _, o := range orders {
			x := Command{ID: o.ID, Kind: CommandKind(o.Kind), By: o.GivenBy}
			if o.Trial != nil {
				x.Trial = int(*o.Trial)
			}
			v.orders[o.RunID] = append(v.orders[o.RunID], x)
		}
		v.unfinished, err = q.UnfinishedParts(ctx, e.cfg.now().Add(-unfinishedFor))
		return err
	})
	return v, err
}

func (e *Engine) derive(ctx context.Context, v *view) ([]*run, error) {
	now := e.cfg.now()
	held := map[string]bool{} // nodes of earlier runs that have not ended: nobody overtakes
	var before air
	var out []*run
	for i := range v.runs {
		row := &v.runs[i]
		f, err := e.factsOf(ctx, row.ID, row.SheetHash)
		if err != nil {
			return nil, err
		}
		r := &run{id: row.ID, state: State(row.State), attempted: row.Attempted, listeners: f.listeners, inBand: f.inBand, longest: f.longest, radio: f.radio, confirm: row.ConfirmMove, released: row.Released,
			abort: row.AbortReason, abortFault: row.AbortFault, parts: v.parts[row.ID], listening: v.listening[row.ID]}
		if row.AbortAt != nil {
			r.abortAt = *row.AbortAt
		}
		if row.CollectingAt != nil {
			r.collectingAt = *row.CollectingAt
		}
		e.mu.Lock()
		for k := range r.parts {
			p := &r.parts[k]
			if n := e.nodes[p.node]; n != nil {
				p.connected = n.connected(now)
			}
		}
		e.mu.Unlock()
		for _, p := range r.parts {
			r.blocked = r.blocked || held[p.node]
		}
		for _, p := range r.parts {
			held[p.node] = true
		}
		r.onAir = e.onAir(r.parts)
		if r.held = before.held(r); r.held != "" {
			r.blocked = true
		}
		before = before.add(r)
		out = append(out, r)
	}
	return out, nil
}

func (e *Engine) factsOf(ctx context.Context, run, hash string) (*facts, error) {
	if f := e.facts[run]; f != nil {
		return f, nil
	}
	b, err := e.cfg.Store.RunSheet(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("sheet of run %s: %w", run, err)
	}
	s, err := runsheet.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	f := &facts{sheet: b, hash: hash, inBand: s.Control == runsheet.ControlInBand, longest: s.Limits.Connect + s.Limits.Transfer, radio: &s.Radio}
	switch sig, err := e.cfg.Store.RunSignature(ctx, run); {
	case err == nil:
		f.signature = signature.Signature{KeyID: sig.KeyID, Bytes: sig.Signature}
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("signature of run %s: %w", run, err)
	}
	for _, t := range s.Treatments {
		if t.Missing == "" {
			f.listeners = append(f.listeners, t.Name)
		}
	}
	e.facts[run] = f
	return f, nil
}

// take carries a step out. False: there was none, or somebody else took it.
func (e *Engine) take(ctx context.Context, r *run, s step) (bool, error) {
	st := e.cfg.Store
	var n int64
	var err error
	to := s.state
	switch s.verb {
	case stay:
		return false, nil
	case await:
		n, err = st.SetWaiting(ctx, r.id)
		to = Waiting
	case prepare:
		n, err = st.SetPreparing(ctx, r.id)
		to = Preparing
	case start:
		n, err = st.SetRunning(ctx, r.id)
		to = Running
	case collect:
		n, err = st.SetCollecting(ctx, r.id)
		to = Collecting
	case fault:
		n, err = st.AbortRun(ctx, dbsqlc.AbortRunParams{ID: r.id, Reason: s.message, Fault: true})
		to = r.state
	case end:
		n, err = st.SetEnded(ctx, dbsqlc.SetEndedParams{ID: r.id, State: string(s.state), Message: s.message})
	}
	if err != nil || n == 0 {
		return false, err
	}
	e.log.Info("run moves on", "run", r.id, "from", r.state, "to", to, "message", s.message)
	e.mu.Lock()
	e.versions[r.id]++
	if s.verb == end {
		delete(e.progress, r.id)
		delete(e.fresh, r.id)
	}
	e.notifyLocked()
	e.mu.Unlock()
	return true, nil
}

// publish says what each node is to do, and wakes who waits for that.
func (e *Engine) publish(ctx context.Context, v *view, runs []*run) error {
	all := map[string][]Assignment{}
	taken, lacking, active := map[string]string{}, map[string][]string{}, map[string][]string{}
	facts := map[string]*facts{}
	for _, r := range runs {
		f := e.facts[r.id]
		facts[r.id] = f
		if r.held != "" && r.state == Queued && r.abort == nil {
			lacking[r.id] = []string{r.held}
		}
		if !r.state.known() {
			continue
		}
		if r.state == Preparing && r.abort == nil {
			lacking[r.id] = waitingFor(r)
		}
		a := Assignment{Run: r.id, SheetHash: f.hash, Sheet: f.sheet, Signature: f.signature}
		a.DesiredState, a.Reason = desiredFor(r)
		a.Addresses = e.addresses(r.parts)
		for _, p := range r.parts {
			taken[p.node] = r.id
			a.Commands = nil
			if p.role == leader {
				a.Commands = v.orders[r.id]
			}
			all[p.node] = append(all[p.node], a)
			if p.ended == "" && !r.inBand {
				active[r.id] = append(active[r.id], p.node)
			}
		}
	}
	for _, u := range v.unfinished {
		// An agent that lost its memory must not begin a run only to end it.
		if !u.UpSince && !e.holds(u.Node, u.RunID) {
			continue
		}
		f, err := e.factsOf(ctx, u.RunID, u.SheetHash)
		if err != nil {
			return err
		}
		facts[u.RunID] = f
		a := Assignment{Run: u.RunID, SheetHash: f.hash, Sheet: f.sheet, Signature: f.signature, DesiredState: DesireFinish}
		if State(u.State) != Completed {
			a.DesiredState, a.Reason = DesireAbort, u.Message
		}
		all[u.Node] = append(all[u.Node], a)
	}
	e.facts = facts // those of runs that are over go
	e.mu.Lock()
	defer e.mu.Unlock()
	e.taken, e.lacking, e.active, e.open = taken, lacking, active, len(runs)
	wanted := map[string]assignments{}
	for name, as := range all {
		wanted[name] = newAssignments(as)
	}
	if !maps.EqualFunc(e.assigned, wanted, func(a, b assignments) bool { return a.revision == b.revision }) {
		e.tellLocked()
	}
	e.assigned = wanted
	// What is delivered late, of runs that have ended, is in the store and nobody waits for it.
	ended := func(id string) bool { return !slices.ContainsFunc(runs, func(r *run) bool { return r.id == id }) }
	maps.DeleteFunc(e.progress, func(id string, _ map[int]ingest.Progress) bool { return ended(id) })
	maps.DeleteFunc(e.fresh, func(id string, _ *fresh) bool { return ended(id) })
	e.notifyLocked()
	return nil
}

// addresses of a run's nodes on the radio network, as far as they are known.
func (e *Engine) addresses(parts []part) map[radio.Role]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[radio.Role]string{}
	for _, p := range parts {
		if n := e.nodes[p.node]; n != nil && n.RadioAddress != "" {
			out[p.role] = n.RadioAddress
		}
	}
	return out
}

func desiredFor(r *run) (DesiredState, string) {
	if r.abort != nil && r.part(leader).ended != journal.RunCompleted {
		return DesireAbort, *r.abort
	}
	switch r.state {
	case Preparing:
		return DesirePrepare, ""
	case Running:
		return DesireRun, ""
	}
	return DesireFinish, ""
}

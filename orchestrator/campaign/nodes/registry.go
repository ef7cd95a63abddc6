package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"linktrial/orchestrator/campaign/nodes/nodesdb"
	"linktrial/orchestrator/store"
)

const (
	// pollGap is how long a node counts as connected between two of its polls.
	pollGap = 3 * time.Second
	// pollGapVirtual is the same for nodes of the virtual-time lab, which do not
	// poll: they register and are told what to run at once, on a machine that may
	// be very busy.
	pollGapVirtual = time.Minute
	// noContactAfter is how long a node that takes part in a run may be without
	// contact before people are told: they are within 8 s, with what it takes until a
	// watcher looks ([Registry.Missing]) and a page shows it.
	noContactAfter = 6 * time.Second
	// lookGap is how long this program may not have run before contacts count anew: a
	// node cannot be heard by an orchestrator that was stopped or starved.
	lookGap = 4 * time.Second
	// flushEvery is how often the moment of a node's last contact is stored.
	flushEvery = 5 * time.Second
)

// Config says what a [Registry] works on.
type Config struct {
	Store    *store.Store
	Logger   *slog.Logger
	Now      func() time.Time
	Stopping <-chan struct{} // closed when polls are to end
	// Registered is called after a node has registered, or registered anew.
	Registered func()
	// ContactChanged is called when it was stored that contact with a node of a run was
	// lost, or is back.
	ContactChanged func(run string)
	// ReviewRuns is called when what a node did may let a run move on.
	ReviewRuns func()
}

// Registry keeps all nodes that ever registered. Its methods may be called from
// several goroutines.
type Registry struct {
	cfg   Config
	db    *nodesdb.Queries
	board board

	mu      sync.Mutex
	nodes   map[string]*node
	runOf   map[string]string              // by node: the open run that it takes part in
	active  map[string][]string            // by run: nodes that are to be in contact
	watched map[string]bool                // nodes that are to be in contact
	silent  map[string]bool                // nodes in a run with in-band control
	looked  time.Time                      // for nodes without contact, last
	heard   time.Time                      // since when nodes can be heard without a gap
	losses  []nodesdb.PutContactLossParams // that are to be stored
}

// Node is a registered node as it is now.
type Node struct {
	Registration
	LastContact time.Time
	Connected   bool
	Run         string // the open run that it takes part in, if any
	Silent      bool   // that run has in-band control: no contact is normal
}

type node struct {
	Registration
	contact      time.Time         // when the last call of its agent came
	polled       time.Time         // when its last poll ended
	connection   Connection        // over which it polled last; nil: not known
	flushed      time.Time         // the contact that is stored
	polls        int               // open now
	lost         *loss             // nil: there is contact
	cut          bool              // the agent's end cut its last poll: what it has to tell may let a run move on
	disconnected bool              // with its connection
	delivered    map[string]string // by run: the incarnation that delivered records of it last
}

func (n *node) connected(now time.Time) bool {
	gap := pollGap
	if n.Virtual {
		gap = pollGapVirtual
	}
	last := n.contact
	if n.polled.After(last) {
		last = n.polled
	}
	return n.polls > 0 || !n.disconnected && now.Sub(last) < gap
}

// lastContact returns when the agent's program was last heard of: a poll that waits is
// no sign of it, because the node's kernel keeps the connection of a stopped program
// alive. On a slow link a call can take long to arrive, and until then its data counts.
func (n *node) lastContact(now time.Time) time.Time {
	if n.connection != nil {
		if quiet, known := n.connection.DataReceived(); known && now.Add(-quiet).After(n.contact) {
			return now.Add(-quiet)
		}
	}
	return n.contact
}

// Load reads from the store which nodes there are; none is connected yet.
func Load(ctx context.Context, cfg Config) (*Registry, error) {
	r := New(cfg)
	rows, err := r.db.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("load nodes: %w", err)
	}
	for _, row := range rows {
		n := &node{Registration: Registration{Name: row.Name, Role: row.Role, Version: row.Version, Host: row.Host, Kernel: row.Kernel, Radio: row.Radio,
			Emulated: row.Emulated, Virtual: row.Virtual, RadioAddress: row.RadioAddress, DiskFreeBytes: row.DiskFreeBytes, Incarnation: row.Incarnation,
			Lab: row.Lab, LabProblem: row.LabProblem},
			contact: row.LastContactAt, flushed: row.LastContactAt, disconnected: true, delivered: map[string]string{}}
		if err := json.Unmarshal(row.Drivers, &n.Drivers); err != nil {
			return nil, fmt.Errorf("load node %s: %w", row.Name, err)
		}
		r.nodes[row.Name] = n
	}
	open, err := r.db.OpenContactLosses(ctx)
	if err != nil {
		return nil, fmt.Errorf("load losses of contact: %w", err)
	}
	for _, l := range open {
		if n := r.nodes[l.Node]; n != nil {
			n.lost = &loss{l.RunID, l.LostAt, n.Incarnation}
		}
	}
	return r, nil
}

// New returns a registry without nodes.
func New(cfg Config) *Registry {
	return &Registry{cfg: cfg, db: nodesdb.New(cfg.Store), nodes: map[string]*node{}}
}

// Register adds a node, or replaces what is known of it.
func (r *Registry) Register(ctx context.Context, reg Registration) error {
	if err := reg.check(); err != nil {
		return err
	}
	drivers := reg.Drivers
	if drivers == nil {
		drivers = []Driver{}
	}
	encoded, err := json.Marshal(drivers)
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	if err := r.checkJournal(ctx, &reg); err != nil {
		return err
	}
	now := r.cfg.Now()
	if err := r.checkReplaced(&reg, now); err != nil {
		return err
	}
	err = r.cfg.Store.UpsertNode(ctx, store.UpsertNodeParams{Name: reg.Name, Role: reg.Role, Version: reg.Version, Host: reg.Host, Kernel: reg.Kernel,
		Radio: reg.Radio, Emulated: reg.Emulated, RadioAddress: reg.RadioAddress, DiskFreeBytes: reg.DiskFreeBytes, Drivers: encoded, Incarnation: reg.Incarnation, Virtual: reg.Virtual,
		Lab: reg.Lab, LabProblem: reg.LabProblem})
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	r.mu.Lock()
	n := r.nodes[reg.Name]
	if n == nil || n.Incarnation != reg.Incarnation {
		old := n
		n = &node{delivered: map[string]string{}}
		if old != nil {
			n.delivered = old.delivered // the agent may have delivered before it registered
			r.restartedLocked(old, now)
			n.lost = old.lost
		}
		r.nodes[reg.Name] = n
	}
	n.Registration, n.contact, n.flushed, n.disconnected = reg, now, now, false
	r.mu.Unlock()
	r.board.wake(reg.Name) // a poll of the replaced agent must end
	r.cfg.Logger.Info("node registered", "node", reg.Name, "role", reg.Role, "version", reg.Version)
	r.cfg.Registered()
	r.cfg.ReviewRuns()
	return nil
}

// checkReplaced refuses a registration that must not replace the node of its name.
func (r *Registry) checkReplaced(reg *Registration, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.nodes[reg.Name]
	if old == nil {
		return nil
	}
	// A rehearsal in virtual time that has ended leaves nodes that nothing tells apart
	// from those of one that goes on, but for their runs.
	abandoned := old.Virtual && reg.Virtual && r.runOf[reg.Name] == ""
	// Behind a proxy the connection of an agent that has ended is still there.
	if old.Incarnation != reg.Incarnation && old.connected(now) && !old.cut && !abandoned {
		return fmt.Errorf("%s: %w; give this one another name, or end the other", reg.Name, ErrNameTaken)
	}
	if run := r.runOf[reg.Name]; run != "" && old.Role != reg.Role {
		return fmt.Errorf("%s is the %s of run %s and cannot become a %s before that has ended: %w", reg.Name, old.Role, run, reg.Role, ErrBadNode)
	}
	return nil
}

// checkJournal refuses an agent that has another state folder than the node's before, where
// that one holds the journal of a run which is open: it would begin the journal anew, and
// the run would be stopped. The node may be without contact, because orchestrator or
// database were down themselves.
func (r *Registry) checkJournal(ctx context.Context, reg *Registration) error {
	r.mu.Lock()
	run, before := r.runOf[reg.Name], ""
	if old := r.nodes[reg.Name]; old != nil {
		before = old.Incarnation
	}
	r.mu.Unlock()
	if run == "" || reg.Virtual || !otherFolder(before, reg.Incarnation) {
		return nil
	}
	parts, err := r.cfg.Store.RunNodes(ctx, run)
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	if !slices.ContainsFunc(parts, func(p store.RunNode) bool { return p.Node == reg.Name && p.CommittedSeq > 0 }) {
		return nil // it has not begun there
	}
	return fmt.Errorf("%s takes part in run %s: %w; start the agent with that one, give this one another name, or abort the run ('linktrial run abort %[2]s')", reg.Name, run, ErrOtherFolder)
}

// Delivered notes that a start of a node's agent has delivered records of a run. An
// agent delivers before it is registered, too: what another start delivers than the one
// that is registered is no contact with that one, which would hold its place for as
// long as there is something to deliver. An agent that tells no incarnation is from
// before they were told.
func (r *Registry) Delivered(name, incarnation, run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[name]
	if n == nil {
		return
	}
	if incarnation == "" {
		incarnation = n.Incarnation
	}
	before := n.delivered[run]
	n.delivered[run] = incarnation
	if incarnation != n.Incarnation {
		return
	}
	n.contact, n.disconnected = r.cfg.Now(), false
	if before != incarnation {
		r.cfg.ReviewRuns() // where the run has ended, the node is to be told
	}
}

// HasDelivered reports whether this start of the node's agent has delivered
// records of the run.
func (r *Registry) HasDelivered(name, run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[name]
	return n != nil && n.Incarnation != "" && n.delivered[run] == n.Incarnation
}

// IsRegistered reports whether this start of the node's agent is registered.
func (r *Registry) IsRegistered(name, incarnation string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[name]
	return n != nil && n.Incarnation == incarnation
}

// Get returns one node; false: it never registered.
func (r *Registry) Get(name string) (Node, bool) {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[name]
	if n == nil {
		return Node{}, false
	}
	return r.stateLocked(n, now), true
}

// List returns every node that ever registered, by name.
func (r *Registry) List() []Node {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Node, 0, len(r.nodes))
	for _, n := range r.nodes {
		out = append(out, r.stateLocked(n, now))
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (r *Registry) stateLocked(n *node, now time.Time) Node {
	return Node{Registration: n.Registration, LastContact: n.lastContact(now), Connected: n.connected(now), Run: r.runOf[n.Name], Silent: r.silent[n.Name]}
}

// AnyVirtual reports whether one of the nodes is of the virtual-time lab.
func (r *Registry) AnyVirtual(names []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool { return r.nodes[name] != nil && r.nodes[name].Virtual })
}

// Connected returns how many nodes are connected now.
func (r *Registry) Connected() int {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, n := range r.nodes {
		if n.connected(now) {
			count++
		}
	}
	return count
}

// RunsUnderWay returns the runs that nodes take part in now, sorted.
func (r *Registry) RunsUnderWay() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(r.runOf)))
}

// MissingNode is a node that takes part in a run and has been without contact for long.
type MissingNode struct {
	Name  string
	Since time.Time // its last contact, by the orchestrator's clock
}

// Missing returns the nodes of a run that are to be in contact and are not.
func (r *Registry) Missing(run string) []MissingNode {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookLocked(now)
	var out []MissingNode
	for _, name := range r.active[run] {
		if n := r.nodes[name]; n != nil && r.isMissingLocked(n, now) {
			out = append(out, MissingNode{name, n.lastContact(now)})
		}
	}
	return out
}

// lookLocked notes that this program looks for nodes without contact.
func (r *Registry) lookLocked(now time.Time) {
	if now.Sub(r.looked) > lookGap {
		r.heard = now
	}
	r.looked = now
}

// isMissingLocked reports whether people are to be told that there is no contact with a
// node that is to be in contact; one of the virtual-time lab never is.
func (r *Registry) isMissingLocked(n *node, now time.Time) bool {
	return !n.Virtual && now.Sub(n.lastContact(now)) >= noContactAfter && now.Sub(r.heard) >= noContactAfter
}

// Flush stores the moments of the nodes' last contacts, those that are due, and since
// when there was no contact with nodes in runs.
func (r *Registry) Flush(ctx context.Context) error {
	now := r.cfg.Now()
	var rows nodesdb.TouchNodesParams
	r.mu.Lock()
	r.lookLocked(now)
	r.reviewContactsLocked(now)
	for _, n := range r.nodes {
		if n.contact.Sub(n.flushed) >= flushEvery {
			n.flushed = n.contact
			rows.Names = append(rows.Names, n.Name)
			rows.Ats = append(rows.Ats, n.contact)
			rows.DiskFreeBytes = append(rows.DiskFreeBytes, n.DiskFreeBytes)
		}
	}
	r.mu.Unlock()
	if err := r.storeLosses(ctx); err != nil || len(rows.Names) == 0 {
		return err
	}
	if err := r.db.TouchNodes(ctx, rows); err != nil {
		return fmt.Errorf("store last contact: %w", err)
	}
	return nil
}

package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"linktrial/internal/identity"
	"linktrial/internal/radio"
	"linktrial/orchestrator/store/dbsqlc"
)

// Registration is what an agent says of itself.
type Registration struct {
	Name, Role, Version, Host, Kernel string
	Radio                             string // profile attached; empty where the radio is emulated
	Emulated                          bool
	Virtual                           bool // of the virtual-time lab
	RadioAddress                      string
	DiskFreeBytes                     int64
	Drivers                           []Driver
	Incarnation                       string // identity of this start of the agent
}

// Node is a registered node as it is now.
type Node struct {
	Registration
	LastContact time.Time
	Connected   bool
	Run         string // taking part in, if any
}

// Errors that agents' calls are answered with.
var (
	ErrUnknownNode = errors.New("node is not registered")
	ErrNameTaken   = errors.New("another agent of that name is connected")
	ErrBadNode     = errors.New("registration is not valid")
	ErrStopping    = errors.New("the orchestrator is stopping")
)

// between is how long a node counts as connected between two of its polls.
const between = 3 * time.Second

// betweenVirtual is the same for nodes of the virtual-time lab, which do not
// poll: they register and are told what to run at once, on a machine that may
// be very busy.
const betweenVirtual = time.Minute

// silence is after how long without a word a node in a run is worth a note.
const silence = 10 * time.Second

// flushEvery is how often the moment of a node's last contact is stored.
const flushEvery = 5 * time.Second

type node struct {
	Registration
	contact time.Time
	flushed time.Time
	polls   int             // open now
	left    bool            // its last poll was cut by the other end
	holds   map[string]bool // runs it delivered records of
}

func (n *node) connected(now time.Time) bool {
	limit := between
	if n.Virtual {
		limit = betweenVirtual
	}
	return n.polls > 0 || !n.left && now.Sub(n.contact) < limit
}

// silentFor is how long nothing has been heard of the node.
func (n *node) silentFor(now time.Time) time.Duration {
	if n.polls > 0 {
		return 0
	}
	return now.Sub(n.contact)
}

func (r *Registration) check() error {
	if err := identity.CheckName(r.Name); err != nil {
		return fmt.Errorf("%w: %w", err, ErrBadNode)
	}
	switch {
	case r.Role != string(radio.RoleClient) && r.Role != string(radio.RoleRelay) && r.Role != string(radio.RoleServer):
		return fmt.Errorf("role %q, expected client, relay or server: %w", r.Role, ErrBadNode)
	case r.Incarnation == "":
		return fmt.Errorf("no incarnation: %w", ErrBadNode)
	case r.DiskFreeBytes < 0:
		return fmt.Errorf("%d bytes free: %w", r.DiskFreeBytes, ErrBadNode)
	case !r.Emulated && r.Radio == "":
		return fmt.Errorf("neither a radio nor an emulated one: %w", ErrBadNode)
	}
	return nil
}

// Register takes in a node, or what it says anew.
func (e *Engine) Register(ctx context.Context, r Registration) error {
	if err := r.check(); err != nil {
		return err
	}
	drivers := r.Drivers
	if drivers == nil {
		drivers = []Driver{}
	}
	encoded, err := json.Marshal(drivers)
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	now := e.cfg.now()
	e.mu.Lock()
	if old := e.nodes[r.Name]; old != nil {
		if old.Incarnation != r.Incarnation && old.connected(now) {
			e.mu.Unlock()
			return fmt.Errorf("%s: %w; give this one another name, or end the other", r.Name, ErrNameTaken)
		}
		if run := e.taken[r.Name]; run != "" && old.Role != r.Role {
			e.mu.Unlock()
			return fmt.Errorf("%s is the %s of run %s and cannot become a %s before that has ended: %w", r.Name, old.Role, run, r.Role, ErrBadNode)
		}
	}
	e.mu.Unlock()
	err = e.cfg.Store.UpsertNode(ctx, dbsqlc.UpsertNodeParams{Name: r.Name, Role: r.Role, Version: r.Version, Host: r.Host, Kernel: r.Kernel,
		Radio: r.Radio, Emulated: r.Emulated, RadioAddress: r.RadioAddress, DiskFreeBytes: r.DiskFreeBytes, Drivers: encoded, Incarnation: r.Incarnation})
	if err != nil {
		return fmt.Errorf("register node: %w", err)
	}
	e.mu.Lock()
	n := e.nodes[r.Name]
	if n == nil || n.Incarnation != r.Incarnation {
		n = &node{holds: map[string]bool{}}
		e.nodes[r.Name] = n
	}
	n.Registration, n.contact, n.flushed, n.left = r, now, now, false
	e.notifyLocked()
	e.tellLocked() // a poll of the one before must learn that it was replaced
	e.mu.Unlock()
	e.log.Info("node registered", "node", r.Name, "role", r.Role, "version", r.Version)
	e.wake()
	return nil
}

func (e *Engine) loadNodes(ctx context.Context) error {
	rows, err := e.cfg.Store.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("load nodes: %w", err)
	}
	for _, r := range rows {
		n := &node{Registration: Registration{Name: r.Name, Role: r.Role, Version: r.Version, Host: r.Host, Kernel: r.Kernel, Radio: r.Radio,
			Emulated: r.Emulated, RadioAddress: r.RadioAddress, DiskFreeBytes: r.DiskFreeBytes, Incarnation: r.Incarnation},
			contact: r.LastContactAt, flushed: r.LastContactAt, left: true, holds: map[string]bool{}}
		if err := json.Unmarshal(r.Drivers, &n.Drivers); err != nil {
			return fmt.Errorf("load node %s: %w", r.Name, err)
		}
		e.nodes[r.Name] = n
	}
	return nil
}

// Nodes lists every node that ever registered, by name.
func (e *Engine) Nodes() []Node {
	now := e.cfg.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]Node, 0, len(e.nodes))
	for _, n := range e.nodes {
		out = append(out, Node{Registration: n.Registration, LastContact: n.contact, Connected: n.connected(now), Run: e.taken[n.Name]})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Contact notes that a node was heard of, with word of a run.
func (e *Engine) Contact(name, run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.nodes[name]
	if n == nil {
		return
	}
	n.contact, n.left = e.cfg.now(), false
	if !n.holds[run] {
		n.holds[run] = true
		e.wake() // where the run is over, the node is to be told
	}
}

// holds says whether the node, since it was started, had word of the run.
func (e *Engine) holds(name, run string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.nodes[name]
	return n != nil && n.holds[run]
}

// Poll waits until what the node is to do differs from revision, for at most
// wait, and returns all of it. It ends early when ctx or the engine does.
func (e *Engine) Poll(ctx context.Context, name, incarnation string, revision, diskFreeBytes int64, wait time.Duration) (int64, []Assignment, error) {
	e.mu.Lock()
	n := e.nodes[name]
	if n == nil || n.Incarnation != incarnation {
		e.mu.Unlock()
		return 0, nil, fmt.Errorf("%s: %w", name, ErrUnknownNode)
	}
	wasAway := !n.connected(e.cfg.now())
	n.polls++
	n.contact, n.left = e.cfg.now(), false
	if diskFreeBytes > 0 {
		n.DiskFreeBytes = diskFreeBytes
	}
	e.mu.Unlock()
	if wasAway {
		e.wake()
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		n.polls--
		n.contact = e.cfg.now()
		n.left = ctx.Err() != nil
		if n.left {
			e.wake()
		}
	}()
	timeout := time.NewTimer(max(0, min(wait, maxPoll)))
	defer timeout.Stop()
	for {
		e.mu.Lock()
		w, known := e.assigned[name]
		errand := e.errands[name]
		told := e.told.Changed()
		replaced := e.nodes[name] != n
		e.mu.Unlock()
		if replaced {
			return 0, nil, fmt.Errorf("%s: %w", name, ErrUnknownNode)
		}
		if !known {
			w = noAssignments
		}
		w.revision ^= errand
		if w.revision != revision {
			return w.revision, w.list, nil
		}
		select {
		case <-told:
		case <-timeout.C:
			return w.revision, w.list, nil
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-e.stopping:
			return 0, nil, ErrStopping
		}
	}
}

// maxPoll bounds a poll whatever the agent asks for, so that a node that lost
// its power is noticed.
const maxPoll = 30 * time.Second

// flushContacts stores when nodes were heard of.
func (e *Engine) flushContacts(ctx context.Context, now time.Time) error {
	var rows dbsqlc.TouchNodesParams
	e.mu.Lock()
	for _, n := range e.nodes {
		if n.polls > 0 {
			n.contact = now
		}
		if n.contact.Sub(n.flushed) >= flushEvery {
			n.flushed = n.contact
			rows.Names = append(rows.Names, n.Name)
			rows.Ats = append(rows.Ats, n.contact)
			rows.DiskFreeBytes = append(rows.DiskFreeBytes, n.DiskFreeBytes)
		}
	}
	e.mu.Unlock()
	if len(rows.Names) == 0 {
		return nil
	}
	if err := e.cfg.Store.TouchNodes(ctx, rows); err != nil {
		return fmt.Errorf("store last contact: %w", err)
	}
	return nil
}

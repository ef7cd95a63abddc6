package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/store/dbsqlc"
)

// preflight is one that is under way. The fleet's mutex guards requests, waiting
// and checks; the other fields do not change.
type preflight struct {
	id        string
	started   time.Time
	topology  string
	radio     string
	protocols []string
	mtu       int32
	nodes     []nodes.Node  // that take part, by name, as they were at the start
	reported  chan struct{} // holds one notice at most: it covers all reports before it
	cancel    context.CancelFunc

	requests map[string]*linktrialv1.PreflightRequest // by node
	waiting  map[string]bool                          // for reports of these nodes
	checks   []*linktrialv1.Check
}

// Request says what a preflight is to check.
type Request struct {
	Nodes     []string // empty: all that are connected, or were within the last hour
	Topology  string   // empty: any; else each of its roles must have a node
	Radio     string
	Protocols []string // that a plan needs; empty: those that the nodes have
}

// recent is how long after its last contact a node takes part in a preflight
// that names no nodes.
const recent = time.Hour

// StartPreflight starts a preflight and returns its identity. It returns
// [ErrBusy] while another is under way, or while one of the nodes is in a run.
func (f *Fleet) StartPreflight(ctx context.Context, r Request) (string, error) {
	p := &preflight{id: strings.ToLower(rand.Text()[:10]), started: time.Now().UTC(), topology: r.Topology, radio: r.Radio, protocols: r.Protocols,
		reported: make(chan struct{}, 1), requests: map[string]*linktrialv1.PreflightRequest{}, waiting: map[string]bool{}}
	if err := f.prepare(p, r); err != nil {
		return "", err
	}
	names := []string{} // may stay empty: the preflight then finds that there are no nodes
	for _, n := range p.nodes {
		names = append(names, n.Name)
	}
	// The preflight does not end with the call that started it.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		cancel()
		return "", nodes.ErrStopping
	}
	if f.active != nil {
		id := f.active.id
		f.mu.Unlock()
		cancel()
		return "", fmt.Errorf("preflight %s is under way: %w; wait for its end", id, ErrBusy)
	}
	f.active = p
	f.group.Add(1)
	f.mu.Unlock()
	err := f.cfg.Store.InsertPreflight(ctx, dbsqlc.InsertPreflightParams{ID: p.id, Topology: p.topology, Radio: p.radio, Nodes: names, StartedAt: p.started})
	if err != nil {
		f.mu.Lock()
		f.active = nil
		f.mu.Unlock()
		cancel()
		f.group.Done()
		return "", fmt.Errorf("store preflight: %w", err)
	}
	f.log.Info("preflight begins", "preflight", p.id, "nodes", names)
	go func() {
		defer f.group.Done()
		defer cancel()
		f.conduct(run, p)
	}()
	return p.id, nil
}

// prepare finds the nodes that take part, and makes the checks that need no
// report of a node.
func (f *Fleet) prepare(p *preflight, r Request) error {
	roles, err := f.rolesOf(r.Topology)
	if err != nil {
		return err
	}
	if r.Radio != "" {
		profile := f.cfg.Catalog.Profile(r.Radio)
		if profile == nil {
			return fmt.Errorf("radio %q %w: there is none of that name", r.Radio, ErrBad)
		}
		p.mtu = mtuOf(profile)
	}
	all := f.cfg.Nodes.List()
	if p.nodes, err = choose(all, r, roles); err != nil {
		return err
	}
	for _, role := range roles {
		if !slices.ContainsFunc(p.nodes, func(n nodes.Node) bool { return n.Role == string(role) }) {
			p.checks = append(p.checks, noNode(role, r.Topology))
		}
	}
	if len(p.nodes) == 0 && len(p.checks) == 0 {
		return fmt.Errorf("nodes that are connected, or were within the last hour: %w", ErrNotFound)
	}
	for _, n := range p.nodes {
		p.checks = append(p.checks, contact(&n, time.Now()))
		if n.Connected {
			p.checks = append(p.checks, version(&n, f.cfg.Version))
		}
		if c := attached(&n, r.Radio); c != nil {
			p.checks = append(p.checks, c)
		}
	}
	p.checks = append(p.checks, drivers(p.nodes, r.Protocols)...)
	p.checks = append(p.checks, f.channels(p.nodes, all)...)
	return nil
}

// rolesOf returns the roles that a topology has, none where none is named.
func (f *Fleet) rolesOf(topology string) ([]radio.Role, error) {
	if topology == "" {
		return nil, nil
	}
	t := f.cfg.Catalog.Topology(topology)
	if t == nil {
		return nil, fmt.Errorf("topology %q %w: there is none of that name", topology, ErrBad)
	}
	var roles []radio.Role
	for _, s := range t.Stations {
		roles = append(roles, s.Role)
	}
	return roles, nil
}

// choose returns the nodes that take part: those that are named, or all that
// were in contact lately and have one of the roles. It returns [ErrBusy] where
// one of them is in a run.
func choose(all []nodes.Node, r Request, roles []radio.Role) ([]nodes.Node, error) {
	for _, name := range r.Nodes {
		if !slices.ContainsFunc(all, func(n nodes.Node) bool { return n.Name == name }) {
			return nil, fmt.Errorf("node %q has never registered: %w", name, ErrNotFound)
		}
	}
	var chosen []nodes.Node
	var busy []string
	for _, n := range all {
		switch {
		case len(r.Nodes) > 0 && !slices.Contains(r.Nodes, n.Name):
			continue
		case len(r.Nodes) == 0 && (n.Virtual || !n.Connected && time.Since(n.LastContact) > recent):
			continue
		case len(r.Nodes) == 0 && roles != nil && !slices.Contains(roles, radio.Role(n.Role)):
			continue
		}
		if n.Run != "" {
			busy = append(busy, fmt.Sprintf("%s in run %s", n.Name, n.Run))
		}
		chosen = append(chosen, n)
	}
	if len(busy) > 0 {
		return nil, fmt.Errorf("%w: %s; a preflight would disturb the trials, so wait for the run's end", ErrBusy, strings.Join(busy, ", "))
	}
	return chosen, nil
}

// conduct has all nodes check themselves at once, and then each its peers: one
// at a time, so that probes do not collide with other probes.
func (f *Fleet) conduct(ctx context.Context, p *preflight) {
	defer func() {
		f.mu.Lock()
		f.active = nil
		f.mu.Unlock()
	}()
	request := func(n *nodes.Node, kind string) *linktrialv1.PreflightRequest {
		w := &linktrialv1.PreflightRequest{Id: p.id + "." + kind, Treatments: p.protocols, MtuBytes: p.mtu}
		profile := f.cfg.Catalog.Profile(cmp.Or(p.radio, n.Radio))
		if w.MtuBytes == 0 && profile != nil {
			w.MtuBytes = mtuOf(profile)
		}
		var err error
		if w.RadioProfile, err = EncodeProfile(profile); err != nil {
			f.log.Error("profile cannot be sent to its node", "radio", profile.Name, "error", err)
		}
		return w
	}
	f.ask(ctx, p, f.cfg.Self, func(n *nodes.Node) *linktrialv1.PreflightRequest { return request(n, "self") }, p.nodes...)
	for i := range p.nodes {
		w := request(&p.nodes[i], "pairs")
		w.PairsOnly, w.Peers = true, peers(p.nodes, &p.nodes[i])
		if len(w.Peers) > 0 {
			f.ask(ctx, p, time.Duration(len(w.Peers))*f.cfg.Pair, func(*nodes.Node) *linktrialv1.PreflightRequest { return w }, p.nodes[i])
		}
	}
	if ctx.Err() != nil {
		return // the next start of the orchestrator ends it in the store
	}
	f.mu.Lock()
	sortChecks(p)
	checks := p.checks
	f.mu.Unlock()
	for retry := (backoff.Backoff{Min: time.Second, Max: time.Minute}); ; {
		err := storeChecks(ctx, f.cfg.Store, p.id, checks)
		if err == nil || ctx.Err() != nil {
			break
		}
		f.log.Error("preflight cannot be stored; this is tried again", "preflight", p.id, "error", err)
		if !retry.Wait(ctx) {
			return
		}
	}
	f.log.Info("preflight has ended", "preflight", p.id, "checks", len(checks), "seconds", time.Since(p.started).Seconds())
}

// peers returns the nodes on the same radio network.
func peers(all []nodes.Node, n *nodes.Node) []*linktrialv1.PreflightPeer {
	var out []*linktrialv1.PreflightPeer
	for _, o := range all {
		if o.Name != n.Name && o.Emulated == n.Emulated && o.Radio == n.Radio && o.RadioAddress != "" && n.RadioAddress != "" {
			out = append(out, &linktrialv1.PreflightPeer{Name: o.Name, RadioAddress: o.RadioAddress})
		}
	}
	return out
}

// ask sends requests to nodes and waits until all have reported or are no longer
// connected, until limit has passed, or until ctx ends.
func (f *Fleet) ask(ctx context.Context, p *preflight, limit time.Duration, request func(*nodes.Node) *linktrialv1.PreflightRequest, to ...nodes.Node) {
	f.mu.Lock()
	var asked []string
	for i := range to {
		n := &to[i]
		if !hasContact(p, n.Name) {
			continue
		}
		w := request(n)
		p.requests[n.Name], p.waiting[n.Name] = w, true
		asked = append(asked, n.Name)
	}
	f.mu.Unlock()
	for _, name := range asked {
		f.cfg.Nodes.SetPendingWork(name, p.id+fmt.Sprint(time.Now().UnixNano()))
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		f.mu.Lock()
		left := len(p.waiting)
		f.mu.Unlock()
		if left == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-p.reported:
			continue
		case <-tick.C:
			f.giveUp(p, limit, false)
		case <-end.C:
			f.giveUp(p, limit, true)
		}
	}
	for _, name := range asked {
		f.cfg.Nodes.SetPendingWork(name, "")
	}
}

// hasContact reports whether the node was connected at the start and has not
// failed to answer since.
func hasContact(p *preflight, name string) bool {
	return !slices.ContainsFunc(p.checks, func(c *linktrialv1.Check) bool {
		return c.Node == name && c.Kind == kindContact && c.State == linktrialv1.CheckState_CHECK_STATE_FAILED
	})
}

// giveUp stops waiting for nodes that are no longer connected, or for all.
func (f *Fleet) giveUp(p *preflight, limit time.Duration, all bool) {
	byName := map[string]nodes.Node{}
	for _, n := range f.cfg.Nodes.List() {
		byName[n.Name] = n
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range p.waiting {
		n := byName[name]
		if n.Connected && !all {
			continue
		}
		delete(p.waiting, name)
		delete(p.requests, name)
		p.checks = slices.DeleteFunc(p.checks, func(c *linktrialv1.Check) bool { return c.Node == name && c.Kind == kindContact })
		if n.Connected {
			p.checks = append(p.checks, noReport(&n, limit))
		} else {
			p.checks = append(p.checks, contact(&n, time.Now()))
		}
	}
}

// Requested returns what a preflight asks of the node now; nil: nothing.
func (f *Fleet) Requested(node string) *linktrialv1.PreflightRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active == nil {
		return nil
	}
	return f.active.requests[node]
}

// Bounds of a report: far beyond what an agent sends.
const (
	maxChecks = 500
	maxText   = 4000 // bytes
)

// Report takes in what a node found. It returns [ErrNotFound] where no preflight
// waits for the report.
// The messages stay the caller's: it may send them again while the first ones are stored.
func (f *Fleet) Report(ctx context.Context, node, id string, checks []*linktrialv1.Check, links []*linktrialv1.Link) error {
	if len(checks) > maxChecks || len(links) > maxChecks {
		return fmt.Errorf("report of %d checks and %d links %w: expected at most %d of each", len(checks), len(links), ErrBad, maxChecks)
	}
	checks = slices.Clone(checks)
	for i, c := range checks {
		if _, known := linktrialv1.CheckState_name[int32(c.State)]; !known || c.Kind == "" || c.Kind == kindContact {
			return fmt.Errorf("check %q with state %d %w", c.Kind, c.State, ErrBad)
		}
		c = proto.CloneOf(c)
		checks[i] = c
		c.Node = node
		for _, s := range []*string{&c.Peer, &c.Kind, &c.Found, &c.Expected, &c.Meaning, &c.Remedy} {
			*s = clean(*s)
		}
	}
	f.mu.Lock()
	p := f.active
	if p == nil || p.requests[node] == nil || p.requests[node].Id != id {
		f.mu.Unlock()
		return fmt.Errorf("preflight %q of node %q: %w", id, node, ErrNotFound)
	}
	asked := p.requests[node].Peers
	f.mu.Unlock()
	for _, l := range links {
		known := slices.ContainsFunc(asked, func(p *linktrialv1.PreflightPeer) bool { return p.Name == l.To })
		if !known || !(l.Loss >= 0 && l.Loss <= 1) || !(l.RttSeconds >= 0 && l.RttSeconds < 1e6) || l.Probes < 0 {
			return fmt.Errorf("link to %q %w: %v", l.To, ErrBad, l)
		}
		at := time.Now()
		err := f.cfg.Store.KeepLink(ctx, dbsqlc.KeepLinkParams{FromNode: node, ToNode: l.To, Network: clean(l.Network), Reachable: l.Reachable,
			RttNs: int64(l.RttSeconds * 1e9), Loss: l.Loss, Probes: l.Probes, ProbedAt: at})
		if err != nil {
			return fmt.Errorf("store link: %w", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !p.waiting[node] || p.requests[node] == nil || p.requests[node].Id != id {
		return nil // the same report, twice
	}
	delete(p.waiting, node)
	delete(p.requests, node)
	p.checks = append(p.checks, checks...)
	select {
	case p.reported <- struct{}{}:
	default:
	}
	return nil
}

// clean bounds the length of a text and drops what the database does not accept.
func clean(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// Preflight returns how far a preflight is and what it found; an empty id means
// the newest one.
func (f *Fleet) Preflight(ctx context.Context, id string) (*linktrialv1.GetPreflightResponse, error) {
	f.mu.Lock()
	if p := f.active; p != nil && (id == "" || id == p.id) {
		defer f.mu.Unlock()
		out := &linktrialv1.GetPreflightResponse{Id: p.id, Started: timestamppb.New(p.started), Topology: p.topology, Radio: p.radio}
		sortChecks(p)
		out.Checks = slices.Clone(p.checks)
		for _, n := range p.nodes {
			out.Nodes = append(out.Nodes, n.Name)
			if p.waiting[n.Name] {
				out.WaitingFor = append(out.WaitingFor, n.Name)
			}
		}
		return out, nil
	}
	f.mu.Unlock()
	var row dbsqlc.Preflight
	var err error
	if id == "" {
		row, err = f.cfg.Store.NewestPreflight(ctx)
	} else {
		row, err = f.cfg.Store.Preflight(ctx, id)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("preflight %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("preflight: %w", err)
	}
	checks, err := f.cfg.Store.PreflightChecks(ctx, row.ID)
	if err != nil {
		return nil, fmt.Errorf("preflight %s: %w", row.ID, err)
	}
	out := &linktrialv1.GetPreflightResponse{Id: row.ID, Started: timestamppb.New(row.StartedAt), Topology: row.Topology, Radio: row.Radio, Nodes: row.Nodes}
	if row.EndedAt != nil {
		out.Ended = timestamppb.New(*row.EndedAt)
	}
	for _, c := range checks {
		out.Checks = append(out.Checks, &linktrialv1.Check{Node: c.Node, Peer: c.Peer, Kind: c.Kind, State: linktrialv1.CheckState(c.State),
			Found: c.Found, Expected: c.Expected, Meaning: c.Meaning, Remedy: c.Remedy})
	}
	return out, nil
}

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
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet/fleetdb"
)

// preflight is one that is under way. The fleet's mutex guards the fields of the second
// group; the others do not change.
type preflight struct {
	id        string
	started   time.Time
	topology  string
	radio     string
	plan      string // its name; empty: no transfers are carried
	protocols []string
	mtu       int32
	carried   []*transfers
	nodes     []nodes.Node  // that take part, by name, as they were at the start
	reported  chan struct{} // holds one notice at most: it covers all reports before it
	cancel    context.CancelFunc

	requests map[string]*linktrialv1.PreflightRequest // by node
	waiting  map[string]bool                          // for reports of these nodes
	fetched  map[string]fetch                         // by nodes, since they were asked
	checks   []*linktrialv1.Check
	// Of the transfers under way: what nodes have reported of them, by node; and, by
	// [fingerprint], which treatments of all of them work.
	transfers map[string]*transferReport
	works     map[string]bool
	progress  progress
}

// Request says what a preflight is to check.
type Request struct {
	Nodes     []string // empty: all that are connected, or were within the last hour
	Topology  string   // empty: any; else each of its roles must have a node
	Radio     string
	Protocols []string // that a plan needs; empty: those that the nodes have
	// Plan is the name of a plan, and Cells are its runs: a transfer of each of their
	// treatments is carried.
	Plan  string
	Cells []Cell
}

// OfPlan has a transfer of each treatment of a plan carried, and fills in what else the
// plan needs where the request leaves it open: its radio, its topology with the most
// nodes, and its protocols.
func (r *Request) OfPlan(name string, protocols []string, cells []Cell) {
	r.Plan, r.Cells = name, cells
	for _, p := range protocols {
		if !slices.Contains(r.Protocols, p) {
			r.Protocols = append(r.Protocols, p)
		}
	}
	of, topology, stations := "", "", 0
	for i, c := range cells {
		s := c.Sheet
		if i == 0 {
			of = s.Cell.Radio
		}
		if s.Cell.Radio != of {
			of = "" // several: nobody knows which is attached first
		}
		if n := len(s.Topology.Stations); n > stations {
			topology, stations = s.Cell.Topology, n
		}
	}
	r.Radio, r.Topology = cmp.Or(r.Radio, of), cmp.Or(r.Topology, topology)
}

// recent is how long after its last contact a node takes part in a preflight
// that names no nodes.
const recent = time.Hour

// StartPreflight starts a preflight and returns its identity. It returns
// [ErrBusy] while another is under way, or while one of the nodes is in a run.
func (f *Fleet) StartPreflight(ctx context.Context, r Request) (string, error) {
	p := &preflight{id: strings.ToLower(rand.Text()[:10]), started: time.Now().UTC(), topology: r.Topology, radio: r.Radio, plan: r.Plan, protocols: r.Protocols,
		works: map[string]bool{}, reported: make(chan struct{}, 1), requests: map[string]*linktrialv1.PreflightRequest{}, waiting: map[string]bool{}, fetched: map[string]fetch{}}
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
	err := f.db.InsertPreflight(ctx, fleetdb.InsertPreflightParams{ID: p.id, Topology: p.topology, Radio: p.radio, Nodes: names, Plan: p.plan, StartedAt: p.started})
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
	p.checks = append(p.checks, addresses(p.nodes)...)
	p.checks = append(p.checks, f.channels(p.nodes, all)...)
	carry, not, err := carried(r.Cells, all)
	if err != nil {
		return err
	}
	p.carried, p.checks = carry, append(p.checks, not...)
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
// at a time, so that probes do not collide with other probes. Peers without contact are
// probed by all nodes at once: few small packets, to which nobody may answer. Last come
// the transfers of a plan.
func (f *Fleet) conduct(ctx context.Context, p *preflight) {
	defer func() {
		f.mu.Lock()
		f.active = nil
		f.mu.Unlock()
	}()
	for _, s := range f.steps(p) {
		if ctx.Err() != nil {
			break
		}
		s.do(ctx)
		f.mu.Lock()
		p.progress.next(time.Now())
		f.mu.Unlock()
	}
	if ctx.Err() != nil {
		return // the next start of the orchestrator ends it in the store
	}
	f.mu.Lock()
	sortChecks(p)
	checks := p.checks
	f.mu.Unlock()
	for retry := (backoff.Backoff{Min: time.Second, Max: time.Minute}); ; {
		err := storeChecks(ctx, f.cfg.Store, p.id, checks, p.works)
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
		if w == nil { // nothing is asked of this node
			continue
		}
		p.requests[n.Name], p.waiting[n.Name], p.fetched[n.Name] = w, true, notGiven
		asked = append(asked, n.Name)
	}
	f.mu.Unlock()
	for _, name := range asked {
		f.cfg.Nodes.SetPendingWork(name, p.id+fmt.Sprint(time.Now().UnixNano()))
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	began := time.Now()
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
			f.giveUp(p, time.Since(began), false)
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
		return c.Node == name && c.Kind == checkkind.Contact.Name && c.State == linktrialv1.CheckState_CHECK_STATE_FAILED
	})
}

// fetch is how far a node has come with fetching its request.
type fetch int

// The answer to a poll that waited when the request was made may never arrive, as after
// the loss of a cable. Where the node polls again, it has.
const (
	notGiven fetch = iota
	given          // in an answer to a poll
	fetched
)

// noSign is how long a node may take to fetch what it is asked, also over a slow control
// link. The connection of one that has lost its cable or its power does not end for longer.
const noSign = 8 * time.Second

// silent reports whether a node that was asked some time ago has not fetched its request.
func (p *preflight) silent(name string, after time.Duration) bool {
	return after >= noSign && p.fetched[name] != fetched
}

// giveUp stops waiting for nodes that are no longer connected or have not fetched their
// request, or for all, after some time.
func (f *Fleet) giveUp(p *preflight, after time.Duration, all bool) {
	byName := map[string]nodes.Node{}
	for _, n := range f.cfg.Nodes.List() {
		byName[n.Name] = n
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range p.waiting {
		n := byName[name]
		silent := p.silent(name, after)
		if n.Connected && !all && !silent {
			continue
		}
		delete(p.waiting, name)
		delete(p.requests, name)
		p.checks = slices.DeleteFunc(p.checks, func(c *linktrialv1.Check) bool { return c.Node == name && c.Kind == checkkind.Contact.Name })
		if n.Connected && !silent {
			p.checks = append(p.checks, noReport(&n, after))
		} else if n.Connected {
			p.checks = append(p.checks, silentNode(&n, after))
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
	w := f.active.requests[node]
	if w != nil && f.active.fetched[node] == notGiven {
		f.active.fetched[node] = given
	}
	return w
}

// Polls notes that a poll of the node has arrived: one that comes after the answer with
// its request shows that the node has that.
func (f *Fleet) Polls(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active != nil && f.active.fetched[node] == given {
		f.active.fetched[node] = fetched
	}
}

// Bounds of a report: far beyond what an agent sends.
const (
	maxChecks = 500
	maxText   = 4000 // bytes
)

// Report takes in what a node found. It returns [ErrNotFound] where no preflight
// waits for the report.
// The message stays the caller's: it may send it again while the first one is stored.
func (f *Fleet) Report(ctx context.Context, m *linktrialv1.ReportPreflightRequest) error {
	node, id := m.Name, m.Id
	if err := checkTransfers(m); err != nil {
		return err
	}
	checks, err := cleanChecks(m)
	if err != nil {
		return err
	}
	f.mu.Lock()
	p := f.active
	if p == nil || p.requests[node] == nil || p.requests[node].Id != id {
		f.mu.Unlock()
		return fmt.Errorf("preflight %q of node %q: %w", id, node, ErrNotFound)
	}
	asked := p.requests[node].Peers
	f.mu.Unlock()
	for _, l := range m.Links {
		known := slices.ContainsFunc(asked, func(p *linktrialv1.PreflightPeer) bool { return p.Name == l.To })
		if !known || !(l.Loss >= 0 && l.Loss <= 1) || !(l.RttSeconds >= 0 && l.RttSeconds < 1e6) || l.Probes < 0 {
			return fmt.Errorf("link to %q %w: %v", l.To, ErrBad, l)
		}
		at := time.Now()
		err := f.db.KeepLink(ctx, fleetdb.KeepLinkParams{FromNode: node, ToNode: l.To, Network: clean(l.Network), Reachable: l.Reachable,
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
	p.takeTransfers(node, m)
	select {
	case p.reported <- struct{}{}:
	default:
	}
	return nil
}

// madeCentrally reports whether no node may report a check.
func madeCentrally(name string) bool {
	k := checkkind.Of(name)
	return k != nil && k.Central
}

// cleanChecks are the checks of a report, with texts that can be stored.
func cleanChecks(m *linktrialv1.ReportPreflightRequest) ([]*linktrialv1.Check, error) {
	if len(m.Checks) > maxChecks || len(m.Links) > maxChecks {
		return nil, fmt.Errorf("report of %d checks and %d links %w: expected at most %d of each", len(m.Checks), len(m.Links), ErrBad, maxChecks)
	}
	checks := slices.Clone(m.Checks)
	for i, c := range checks {
		if _, known := linktrialv1.CheckState_name[int32(c.State)]; !known || c.Kind == "" || madeCentrally(c.Kind) {
			return nil, fmt.Errorf("check %q with state %d %w", c.Kind, c.State, ErrBad)
		}
		c = proto.CloneOf(c)
		checks[i] = c
		c.Node = m.Name
		for _, s := range []*string{&c.Peer, &c.Kind, &c.Found, &c.Expected, &c.Meaning, &c.Remedy} {
			*s = clean(*s)
		}
	}
	return checks, nil
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
		out := &linktrialv1.GetPreflightResponse{Id: p.id, Started: timestamppb.New(p.started), Topology: p.topology, Radio: p.radio, Plan: p.plan}
		out.Step, out.LeftSeconds = p.progress.now(time.Now())
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
	var row fleetdb.Preflight
	var err error
	if id == "" {
		row, err = f.db.NewestPreflight(ctx)
	} else {
		row, err = f.db.Preflight(ctx, id)
	}
	if errors.Is(err, pgx.ErrNoRows) && id == "" {
		return &linktrialv1.GetPreflightResponse{}, nil // there was none yet, which is no error
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("preflight %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("preflight: %w", err)
	}
	checks, err := f.db.PreflightChecks(ctx, row.ID)
	if err != nil {
		return nil, fmt.Errorf("preflight %s: %w", row.ID, err)
	}
	out := &linktrialv1.GetPreflightResponse{Id: row.ID, Started: timestamppb.New(row.StartedAt), Topology: row.Topology, Radio: row.Radio, Plan: row.Plan, Nodes: row.Nodes}
	if row.EndedAt != nil {
		out.Ended = timestamppb.New(*row.EndedAt)
	}
	for _, c := range checks {
		out.Checks = append(out.Checks, &linktrialv1.Check{Node: c.Node, Peer: c.Peer, Kind: c.Kind, State: linktrialv1.CheckState(c.State),
			Found: c.Found, Expected: c.Expected, Meaning: c.Meaning, Remedy: c.Remedy})
	}
	return out, nil
}

// Package fleet holds what is known of the nodes apart from their runs: battery
// and clock as agents report them, preflights, and the measured links between
// nodes. Comes in: polls and reports of agents, requests of people. Goes out:
// requests for agents, checks in words, links.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet/fleetdb"
	"linktrial/orchestrator/store"
)

// Nodes is what a fleet needs of [nodes.Registry].
type Nodes interface {
	List() []nodes.Node
	SetPendingWork(node, id string)
}

// Catalog is what a preflight may name.
type Catalog interface {
	Profile(name string) *radio.Profile
	Topology(name string) *radio.Topology
}

// Config of a [Fleet].
type Config struct {
	Store   *store.Store
	Nodes   Nodes
	Catalog Catalog
	Version string // of the orchestrator
	Logger  *slog.Logger
	// Self is how long a node may take to check itself, Pair to check each of its
	// peers; 0 means 45 s and 100 s.
	Self, Pair time.Duration
}

// Health is what a node reports with its polls.
type Health struct {
	Battery     *float64 // charge, 0…1; nil: none, or not known
	Discharging bool
	ClockOffset time.Duration // the orchestrator's clock minus the node's
	ClockError  time.Duration // bound of the offset's error
	ClockKnown  bool
	// Telemetry is the newest reading of each source, as it was at ReportedAt.
	Telemetry  []*linktrialv1.TelemetryState
	ReportedAt time.Time
	Faults     []Fault
}

// Fault is something on a node that it cannot mend by itself.
type Fault struct {
	Run  string // that cannot go on because of it; empty: none
	Text string // what it is, and what to do
}

// Fleet keeps what is known of the nodes. Its methods may be called from
// several goroutines.
type Fleet struct {
	cfg   Config
	db    *fleetdb.Queries
	log   *slog.Logger
	group sync.WaitGroup // of the preflight that is under way

	mu      sync.Mutex
	health  map[string]Health
	active  *preflight
	stopped bool
	// By node, in memory alone: nodes tell again of their interfaces and radios as they
	// register, and keep the radios themselves.
	interfaces map[string]*linktrialv1.InterfaceList
	radios     map[string]*linktrialv1.RadioState
	orders     map[string]*order
}

// Errors that callers branch on.
var (
	ErrBusy     = errors.New("nodes are in use")
	ErrNotFound = errors.New("not found")
	ErrBad      = errors.New("is not valid")
)

// Start ends the preflights that an earlier orchestrator left open, and returns.
func Start(ctx context.Context, cfg Config) (*Fleet, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Self == 0 {
		cfg.Self = 45 * time.Second
	}
	if cfg.Pair == 0 {
		cfg.Pair = 100 * time.Second
	}
	db := fleetdb.New(cfg.Store)
	open, err := db.OpenPreflights(ctx)
	if err != nil {
		return nil, fmt.Errorf("preflights: %w", err)
	}
	for _, p := range open {
		var checks []*linktrialv1.Check
		for _, n := range p.Nodes {
			checks = append(checks, &linktrialv1.Check{Node: n, Kind: checkkind.Contact.Name, State: linktrialv1.CheckState_CHECK_STATE_UNKNOWN,
				Found: "the orchestrator was started again before the preflight had ended", Expected: "a preflight that ends",
				Meaning: "what was found is lost", Remedy: "start the preflight again"})
		}
		if err := storeChecks(ctx, cfg.Store, p.ID, checks, nil); err != nil {
			return nil, err
		}
	}
	return &Fleet{cfg: cfg, db: db, log: cfg.Logger, health: map[string]Health{},
		interfaces: map[string]*linktrialv1.InterfaceList{}, radios: map[string]*linktrialv1.RadioState{}, orders: map[string]*order{}}, nil
}

// Stop ends a preflight that is under way, and waits for it.
func (f *Fleet) Stop() {
	f.mu.Lock()
	f.stopped = true
	if f.active != nil {
		f.active.cancel()
	}
	f.mu.Unlock()
	f.group.Wait()
}

// SetHealth stores what a node reported with its poll.
func (f *Fleet) SetHealth(node string, h Health) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(h.Telemetry) == 0 { // a node that must send little leaves it out
		old := f.health[node]
		h.Telemetry, h.ReportedAt = old.Telemetry, old.ReportedAt
	}
	f.health[node] = h
}

// Health returns what the node reported last; zero before its first report.
func (f *Fleet) Health(node string) Health {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health[node]
}

// Links returns the links between nodes as they were last measured, one for each direction.
func (f *Fleet) Links(ctx context.Context) ([]*linktrialv1.Link, error) {
	rows, err := f.db.Links(ctx)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	var out []*linktrialv1.Link
	for _, r := range rows {
		out = append(out, &linktrialv1.Link{From: r.FromNode, To: r.ToNode, Network: r.Network, Reachable: r.Reachable, RttSeconds: time.Duration(r.RttNs).Seconds(),
			Loss: r.Loss, Probes: r.Probes, At: timestamppb.New(r.ProbedAt)})
	}
	return out, nil
}

// Kept is how many preflights are kept of each node and topology, the newest.
const Kept = 20

// storeChecks stores what a preflight found, of treatments by their [fingerprint] too, and
// that it has ended, and deletes the preflights beyond [Kept].
func storeChecks(ctx context.Context, s *store.Store, id string, checks []*linktrialv1.Check, works map[string]bool) error {
	rows := make([]fleetdb.InsertPreflightChecksParams, len(checks))
	for i, c := range checks {
		rows[i] = fleetdb.InsertPreflightChecksParams{PreflightID: id, Ordinal: int32(i), Node: c.Node, Peer: c.Peer, Kind: c.Kind, State: int32(c.State),
			Found: c.Found, Expected: c.Expected, Meaning: c.Meaning, Remedy: c.Remedy}
	}
	var treatments []fleetdb.InsertPreflightTreatmentsParams
	for _, print := range slices.Sorted(maps.Keys(works)) {
		treatments = append(treatments, fleetdb.InsertPreflightTreatmentsParams{PreflightID: id, Fingerprint: print, Works: works[print]})
	}
	now := time.Now()
	err := s.InTx(ctx, func(tx store.Conn) error {
		q := fleetdb.New(tx)
		if _, err := q.InsertPreflightChecks(ctx, rows); err != nil {
			return err
		}
		if _, err := q.InsertPreflightTreatments(ctx, treatments); err != nil {
			return err
		}
		if err := q.EndPreflight(ctx, fleetdb.EndPreflightParams{ID: id, EndedAt: &now}); err != nil {
			return err
		}
		_, err := q.DropOldPreflights(ctx, Kept)
		return err
	})
	if err != nil {
		return fmt.Errorf("store preflight %s: %w", id, err)
	}
	return nil
}

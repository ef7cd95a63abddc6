package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"linktrial/internal/notify"
	"linktrial/internal/signature"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
)

// Config says what the engine works on.
type Config struct {
	Store  *store.Store
	Logger *slog.Logger
	// Waits of zero are the defaults: 10 s for an abort, 60 s for a journal.
	Waits Waits
	// Sign vouches for an encoded sheet when its run is queued; nil: sheets stay
	// unsigned, and agents refuse them.
	Sign func(run string, sheet []byte) signature.Signature
	// Now is the clock, for tests; nil is time.Now.
	Now func() time.Time
}

func (c *Config) now() time.Time { return c.Now() }

// Engine moves all runs of a store along. One engine at a time may work on a store.
type Engine struct {
	cfg      Config
	log      *slog.Logger
	kick     chan struct{} // one pending look at the runs is enough
	stopping chan struct{}
	done     chan struct{}
	stopOnce sync.Once
	cancel   context.CancelFunc

	mu       sync.Mutex
	nodes    map[string]*node
	taken    map[string]string      // node to the open run it takes part in
	assigned map[string]assignments // by node
	changed  notify.Notifier        // of anything
	told     notify.Notifier        // of what nodes are to do
	versions map[string]uint64      // of each run, raised when its tables changed
	progress map[string]map[int]ingest.Progress
	fresh    map[string]*fresh   // samples of open runs
	lacking  map[string][]string // what runs in preparation wait for
	active   map[string][]string // nodes of each run that is under way and speaks out of band
	open     int                 // runs that have not ended
	errands  map[string]int64    // by node, a hash of what else is wanted of it

	facts map[string]*facts // of open runs' sheets; the loop's own
}

// Start derives the state of all runs from the store and returns once every
// node can be told what to do. Stop ends the engine.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Waits.Abort == 0 {
		cfg.Waits.Abort = 10 * time.Second
	}
	if cfg.Waits.Collect == 0 {
		cfg.Waits.Collect = time.Minute
	}
	e := &Engine{
		cfg: cfg, log: cfg.Logger, kick: make(chan struct{}, 1), stopping: make(chan struct{}), done: make(chan struct{}),
		nodes: map[string]*node{}, taken: map[string]string{}, assigned: map[string]assignments{},
		versions: map[string]uint64{}, progress: map[string]map[int]ingest.Progress{}, lacking: map[string][]string{},
		active: map[string][]string{}, facts: map[string]*facts{}, errands: map[string]int64{},
	}
	if err := e.loadNodes(ctx); err != nil {
		return nil, err
	}
	if err := e.advance(ctx); err != nil {
		return nil, fmt.Errorf("derive the state of runs: %w", err)
	}
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	go e.loop(loop)
	return e, nil
}

// Stop ends all polls and waits for the engine. Runs go on at the nodes.
func (e *Engine) Stop() {
	e.stopOnce.Do(func() {
		close(e.stopping)
		e.cancel()
	})
	<-e.done
}

// Stopping is closed when the engine stops; streams end then.
func (e *Engine) Stopping() <-chan struct{} { return e.stopping }

// tick is how often bounded waits are looked at.
const tick = time.Second

func (e *Engine) loop(ctx context.Context) {
	defer close(e.done)
	t := time.NewTicker(tick)
	defer t.Stop()
	failing := false
	for {
		due := false
		select {
		case <-e.stopping:
			return
		case <-e.kick:
			due = true
		case <-t.C:
			e.mu.Lock()
			due = e.open > 0 || failing
			e.mu.Unlock()
		}
		err := e.flushContacts(ctx, e.cfg.now())
		if due && err == nil {
			err = e.advance(ctx)
		}
		if err != nil && ctx.Err() == nil {
			if !failing {
				e.log.Error("runs cannot be moved along; this is tried again", "error", err)
			}
			failing = true
			continue
		}
		failing = false
	}
}

// wake asks for a look at the runs.
func (e *Engine) wake() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// notifyLocked tells everybody who waits that something changed.
func (e *Engine) notifyLocked() {
	e.changed.Notify()
}

// tellLocked answers the polls of nodes, of which there may be hundreds: what
// only those need who watch does not wake them.
func (e *Engine) tellLocked() {
	e.told.Notify()
}

// Changed is closed at the next change of anything.
func (e *Engine) Changed() <-chan struct{} {
	return e.changed.Changed()
}

// Stored is to be called with every delivery that was stored.
func (e *Engine) Stored(d ingest.Delta) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range d.Progress {
		flows := e.progress[d.Run]
		if last, ok := anyOf(flows); !ok || last.Trial != p.Trial || last.Attempt != p.Attempt {
			flows = map[int]ingest.Progress{}
			e.progress[d.Run] = flows
		}
		flows[p.Flow] = p
	}
	if len(d.Fresh) > 0 {
		if e.fresh == nil {
			e.fresh = map[string]*fresh{}
		}
		if e.fresh[d.Run] == nil {
			e.fresh[d.Run] = &fresh{}
		}
		e.fresh[d.Run].add(d.Fresh)
	}
	if d.Structure {
		e.versions[d.Run]++
		e.wake()
	}
	e.notifyLocked()
}

func anyOf(m map[int]ingest.Progress) (ingest.Progress, bool) {
	for _, p := range m {
		return p, true
	}
	return ingest.Progress{}, false
}

// Live is what is known of a run beyond the store.
type Live struct {
	Version  uint64           // raised when the run's tables changed
	Progress *ingest.Progress // of the attempt that runs, all flows together; nil before its first sample
	Lacking  []string         // what the run in preparation waits for
	Silent   []SilentNode
}

// SilentNode is a node of a run under way that has not been heard of for long.
type SilentNode struct {
	Name  string
	Since time.Time // the orchestrator's clock
}

// Live answers for one run.
func (e *Engine) Live(run string) Live {
	now := e.cfg.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	l := Live{Version: e.versions[run], Lacking: e.lacking[run]}
	for _, p := range e.progress[run] {
		if l.Progress == nil {
			l.Progress = &ingest.Progress{Trial: p.Trial, Attempt: p.Attempt}
		}
		l.Progress.Bytes += p.Bytes
		l.Progress.Elapsed = max(l.Progress.Elapsed, p.Elapsed)
	}
	for _, name := range e.active[run] {
		if n := e.nodes[name]; n != nil {
			if n.silentFor(now) >= silence {
				l.Silent = append(l.Silent, SilentNode{name, n.contact})
			}
		}
	}
	return l
}

// Connected counts the nodes that are connected now.
func (e *Engine) Connected() int {
	now := e.cfg.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, x := range e.nodes {
		if x.connected(now) {
			n++
		}
	}
	return n
}

package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"linktrial/internal/service"
	"linktrial/internal/signature"
	"linktrial/internal/watchdog"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/campaign/live"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
)

// Config says what the engine works on.
type Config struct {
	Store  *store.Store
	Logger *slog.Logger
	// Waits of zero are the defaults: 10 s for an abort, 60 s for a journal.
	Waits Waits
	// Sign signs an encoded sheet when its run is queued; nil: sheets stay
	// unsigned, and agents refuse them.
	Sign func(run string, sheet []byte) signature.Signature
	// Now is the clock, for tests; nil is time.Now.
	Now func() time.Time
	// Loop gets to know that the engine's loop makes progress; nil: nobody asks.
	Loop *watchdog.Loop
	// Status is called when runs cannot be moved along, and when they can again, with a
	// text for people; it can be nil.
	Status func(text string)
}

// Engine moves all runs of a store along. One engine at a time may work on a store.
type Engine struct {
	Nodes *nodes.Registry
	Live  *live.Runs

	cfg    Config
	db     *campaigndb.Queries
	loop   loop
	sheets map[string]*sheetInfo // of open runs; only the goroutine of the loop uses it
	open   atomic.Int64          // runs that have not ended
	faults sync.Map              // nodes and runs whose fault is stored
	// judgesOnly is of an engine that moves no run along and gives no commands ([Judge]).
	judgesOnly bool
}

// loop is the goroutine that reviews the runs.
type loop struct {
	review   chan struct{} // holds one request at most: one review covers all that came before
	stopping chan struct{}
	stop     func() // closes stopping and ends the goroutine, once
}

// Start derives the state of all runs from the store and returns once every
// node can be told what to do. Stop ends the engine.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	e := newEngine(cfg)
	var err error
	if e.Nodes, err = nodes.Load(ctx, e.nodesConfig()); err != nil {
		return nil, err
	}
	if err := e.advance(ctx); err != nil {
		return nil, fmt.Errorf("derive the state of runs: %w", err)
	}
	end := service.Go(context.WithoutCancel(ctx), e.run)
	e.loop.stop = sync.OnceFunc(func() {
		close(e.loop.stopping)
		end()
	})
	return e, nil
}

// newEngine returns an engine that knows no nodes and whose loop does not run.
func newEngine(cfg Config) *Engine {
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
	e := &Engine{Live: live.New(), cfg: cfg, db: campaigndb.New(cfg.Store), sheets: map[string]*sheetInfo{},
		loop: loop{review: make(chan struct{}, 1), stopping: make(chan struct{})}}
	e.Nodes = nodes.New(e.nodesConfig())
	return e
}

func (e *Engine) nodesConfig() nodes.Config {
	return nodes.Config{Store: e.cfg.Store, Logger: e.cfg.Logger, Now: e.cfg.Now, Stopping: e.loop.stopping, Registered: e.Live.Notify, ContactChanged: e.Live.TablesChanged, ReviewRuns: e.reviewRuns}
}

// Stop ends all polls and waits for the engine. Runs go on at the nodes.
func (e *Engine) Stop() { e.loop.stop() }

// Stopping returns a channel that is closed when the engine stops; streams end then.
func (e *Engine) Stopping() <-chan struct{} { return e.loop.stopping }

// tick is how often bounded waits are checked.
const tick = time.Second

func (e *Engine) run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	failing := false
	defer e.cfg.Loop.Waits()
	for {
		due := false
		e.cfg.Loop.Within(turnGrace)
		select {
		case <-e.loop.stopping:
			return
		case <-e.loop.review:
			due = true
		case <-t.C:
			due = e.open.Load() > 0 || failing
		}
		err := e.turn(ctx, due)
		if err != nil && ctx.Err() == nil {
			if !failing {
				e.cfg.Logger.Error("runs cannot be moved along; this is tried again", "error", err)
				e.status("since " + time.Now().Format(time.DateTime) + " the states of runs cannot be updated, which is retried; nodes continue")
			}
			failing = true
			continue
		}
		if failing {
			e.status("works")
		}
		failing = false
	}
}

func (e *Engine) status(text string) {
	if e.cfg.Status != nil {
		e.cfg.Status(text)
	}
}

const (
	// turnLimit bounds one turn of the loop: a database that has stopped answering
	// without a word must not hold it for ever.
	turnLimit = 2 * time.Minute
	// turnGrace is how late a turn may begin or end on a busy machine.
	turnGrace = time.Minute
)

// turn is one turn of the loop.
func (e *Engine) turn(ctx context.Context, due bool) error {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	e.cfg.Loop.Within(turnLimit + turnGrace)
	if err := e.Nodes.Flush(ctx); err != nil || !due {
		return err
	}
	return e.advance(ctx)
}

// reviewRuns asks the loop to check whether a run can move on. It does not block.
func (e *Engine) reviewRuns() {
	select {
	case e.loop.review <- struct{}{}:
	default:
	}
}

// Stored must be called with every delivery that was stored.
func (e *Engine) Stored(d ingest.Delta) {
	e.Live.Stored(d)
	if d.Structure {
		e.reviewRuns()
	}
}

// tablesChanged wakes everybody who watches a run, and the loop.
func (e *Engine) tablesChanged(run string) {
	e.Live.TablesChanged(run)
	e.reviewRuns()
}

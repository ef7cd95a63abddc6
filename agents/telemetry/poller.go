package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
)

// Config is what is read and how far it is to.
type Config struct {
	Sources []telemetrysource.Source
	// Named are the addresses that may be asked, as [telemetrysource.Source.Address] writes
	// them. A profile comes from the orchestrator: without the list, a false one could
	// have the node call any address.
	Named []string
	// Radio is the address at which this node reaches its own radio; empty:
	// nobody said, and sources at the radio cannot be read.
	Radio  string
	Role   radio.Role // of the node, for messages
	Node   telemetrysource.Node
	Logger *slog.Logger
}

// Bounds of one reading of one source. One that failed is asked again after
// retryMin, then after longer and longer: a radio that is off must not cost
// time at every trial boundary.
const (
	readLimit = 2 * time.Second
	retryMin  = 5 * time.Second
	retryMax  = 2 * time.Minute
)

// State is the newest reading of one source.
type State struct {
	journal.Telemetry           // values of the last reading that succeeded; Error of the last one
	At                time.Time // of the values; zero: none yet
}

// Poller reads the sources of one radio. Its methods may be called from several
// goroutines; a source is read by one of them at a time.
type Poller struct {
	cfg     Config
	sources []*source
}

type source struct {
	telemetrysource.Source
	busy chan struct{} // holds one token while the source is read

	mu       sync.Mutex
	state    State
	next     time.Time       // not read before
	retry    backoff.Backoff // after failures
	reported string          // the last failure, however long was waited for it; empty: none
}

// New makes a poller; it reads nothing yet.
func New(cfg Config) *Poller {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Poller{cfg: cfg}
	for _, t := range cfg.Sources {
		s := &source{Source: t, busy: make(chan struct{}, 1), retry: backoff.Backoff{Min: retryMin, Max: retryMax}}
		s.state.Source, s.state.Kind = t.Name, t.Kind
		p.sources = append(p.sources, s)
	}
	return p
}

// Any takes every source, Always those that may be read while a trial runs.
func Any(*telemetrysource.Source) bool      { return true }
func Always(t *telemetrysource.Source) bool { return t.Poll == telemetrysource.PollAlways }

// Poll reads those of the sources that are due, all at once, and returns what
// is new: readings, and errors that were not reported before. It takes at most two
// seconds, or until ctx's deadline; what is not there by then is an error of its
// source. A ctx that is cancelled ends it, too, and what was being read then is
// as if it had never been asked.
func (p *Poller) Poll(ctx context.Context, which func(*telemetrysource.Source) bool) []journal.Telemetry {
	return p.poll(ctx, func(s *source, now time.Time) bool { return which(&s.Source) && !now.Before(s.next) })
}

// Check reads every source now, whether or not it is due, and returns the state
// of each. Those that failed are read once more: a person asks, and a node that
// was busy for a moment is no silent radio.
func (p *Poller) Check(ctx context.Context) []State {
	p.poll(ctx, func(*source, time.Time) bool { return true })
	p.poll(ctx, func(s *source, _ time.Time) bool { return s.state.Error != "" })
	return p.States()
}

func (p *Poller) poll(ctx context.Context, due func(*source, time.Time) bool) []journal.Telemetry {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(readLimit))
	defer cancel()
	end, _ := ctx.Deadline() // there is one, ours or an earlier one
	within := end.Sub(began)
	news := make([]*journal.Telemetry, len(p.sources))
	var running sync.WaitGroup
	for i, s := range p.sources {
		select {
		case s.busy <- struct{}{}:
		default:
			continue // another goroutine reads it, and reports
		}
		s.mu.Lock()
		read := due(s, time.Now())
		s.mu.Unlock()
		if !read {
			<-s.busy
			continue
		}
		running.Go(func() {
			defer func() { <-s.busy }()
			values, err := p.read(ctx, &s.Source)
			if late := (*telemetrysource.TimeoutError)(nil); errors.As(err, &late) {
				late.Within = within
			}
			if err != nil && errors.Is(ctx.Err(), context.Canceled) {
				return // ctx ended, which is no failure of the source
			}
			news[i] = s.record(values, err)
			if news[i] != nil && err != nil {
				p.cfg.Logger.Warn("telemetry cannot be read; the run continues without it", "source", s.Name, "error", news[i].Error)
			}
		})
	}
	running.Wait()
	var out []journal.Telemetry
	for _, n := range news {
		if n != nil {
			out = append(out, *n)
		}
	}
	return out
}

// note keeps what came of a reading and returns what is new of it, or nil.
func (s *source) record(values []journal.Reading, err error) *journal.Telemetry {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err == nil {
		s.next = now.Add(time.Duration(s.IntervalNS))
		s.retry.Reset()
		s.state.Values, s.state.At, s.state.Error, s.reported = values, now, "", ""
		return &journal.Telemetry{Source: s.Name, Kind: s.Kind, Values: values}
	}
	s.next = now.Add(max(s.retry.Next(), time.Duration(s.IntervalNS)))
	word, what := err.Error(), err.Error()
	if late := (*telemetrysource.TimeoutError)(nil); errors.As(err, &late) {
		what = late.What
	}
	s.state.Error = word
	if what == s.reported {
		return nil
	}
	s.reported = what
	return &journal.Telemetry{Source: s.Name, Kind: s.Kind, Error: word}
}

// States is the newest reading of each source, in the order of the profile.
func (p *Poller) States() []State {
	out := make([]State, len(p.sources))
	for i, s := range p.sources {
		s.mu.Lock()
		out[i] = s.state
		out[i].Values = slices.Clone(s.state.Values)
		s.mu.Unlock()
	}
	return out
}

// Run reads the sources that which takes, each at its interval, and hands what
// is new, until ctx ends.
func (p *Poller) Run(ctx context.Context, which func(*telemetrysource.Source) bool, tell func([]journal.Telemetry)) {
	every := time.Hour
	for _, s := range p.sources {
		every = min(every, time.Duration(s.IntervalNS))
	}
	// A tick in the midst of an interval would read only at the next: a tenth of
	// it is lost at most.
	t := time.NewTicker(max(every/10, 100*time.Millisecond))
	defer t.Stop()
	for {
		if news := p.Poll(ctx, which); len(news) > 0 && ctx.Err() == nil {
			tell(news)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (p *Poller) read(ctx context.Context, t *telemetrysource.Source) ([]journal.Reading, error) {
	host := t.Host
	if a := t.Address(); a != "" && !slices.Contains(p.cfg.Named, a) {
		return nil, fmt.Errorf("refused: %s is no telemetry address of the signed assignment; nothing was sent to it", a)
	}
	if host == telemetrysource.TargetRadio {
		if host = p.cfg.Radio; host == "" {
			return nil, fmt.Errorf("the address at which this node reaches its radio is not known: start the agent with --radio-host, or state attach.roles.%s.radio in the profile", p.cfg.Role)
		}
	}
	return telemetrysource.Read(ctx, t, host, &p.cfg.Node)
}

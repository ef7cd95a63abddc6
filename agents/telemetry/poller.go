package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"linktrial/agents/provenance"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
)

// Config is what is read and how far it is to.
type Config struct {
	Sources []radio.Telemetry
	// Named are the addresses that may be asked, as [radio.Telemetry.Address] writes
	// them. A profile comes from the orchestrator: without the list, a false one could
	// have the node call any address.
	Named []string
	// Radio is the address at which this node reaches its own radio; empty:
	// nobody said, and sources at the radio cannot be read.
	Radio string
	Role  radio.Role // of the node, for messages
	// PowerSupplies is the kernel's folder; empty: [provenance.PowerSupplies].
	PowerSupplies string
	// ThermalZones is the kernel's folder; empty: [provenance.ThermalZones].
	ThermalZones string
	// Env looks up a secret that a profile names; nil: the variables of the environment
	// that [SecretsVariable] lists.
	Env    func(string) string
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
	radio.Telemetry
	busy chan struct{} // holds one token while the source is read

	mu       sync.Mutex
	state    State
	next     time.Time       // not read before
	retry    backoff.Backoff // after failures
	reported string          // the last failure, however long was waited for it; empty: none
}

// New makes a poller; it reads nothing yet.
func New(cfg Config) *Poller {
	if cfg.Env == nil {
		cfg.Env = listedEnv(os.Getenv)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.PowerSupplies == "" {
		cfg.PowerSupplies = provenance.PowerSupplies
	}
	if cfg.ThermalZones == "" {
		cfg.ThermalZones = provenance.ThermalZones
	}
	p := &Poller{cfg: cfg}
	for _, t := range cfg.Sources {
		s := &source{Telemetry: t, busy: make(chan struct{}, 1), retry: backoff.Backoff{Min: retryMin, Max: retryMax}}
		s.state.Source, s.state.Kind = t.Name, t.Kind
		p.sources = append(p.sources, s)
	}
	return p
}

// Any takes every source, Always those that may be read while a trial runs.
func Any(*radio.Telemetry) bool      { return true }
func Always(t *radio.Telemetry) bool { return t.Poll == radio.PollAlways }

// Poll reads those of the sources that are due, all at once, and returns what
// is new: readings, and errors that were not reported before. It takes at most two
// seconds, or until ctx's deadline; what is not there by then is an error of its
// source. A ctx that is cancelled ends it, too, and what was being read then is
// as if it had never been asked.
func (p *Poller) Poll(ctx context.Context, which func(*radio.Telemetry) bool) []journal.Telemetry {
	return p.poll(ctx, func(s *source, now time.Time) bool { return which(&s.Telemetry) && !now.Before(s.next) })
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
			values, err := p.read(ctx, &s.Telemetry)
			if late := (*timeoutError)(nil); errors.As(err, &late) {
				late.within = within
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
	if late := (*timeoutError)(nil); errors.As(err, &late) {
		what = late.what
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
func (p *Poller) Run(ctx context.Context, which func(*radio.Telemetry) bool, tell func([]journal.Telemetry)) {
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

func (p *Poller) read(ctx context.Context, t *radio.Telemetry) ([]journal.Reading, error) {
	host := t.Host
	if a := t.Address(); a != "" && !slices.Contains(p.cfg.Named, a) {
		return nil, fmt.Errorf("refused: %s is no telemetry address of the signed assignment; nothing was sent to it", a)
	}
	if host == radio.TargetRadio {
		if host = p.cfg.Radio; host == "" {
			return nil, fmt.Errorf("the address at which this node reaches its radio is not known: start the agent with --radio-host, or state attach.roles.%s.radio in the profile", p.cfg.Role)
		}
	}
	var values []journal.Reading
	var err error
	switch t.Kind {
	case radio.TelemetrySNMP:
		values, err = readSNMP(ctx, t, host, p.cfg.Env)
	case radio.TelemetryHTTP:
		values, err = readHTTP(ctx, t, host)
	case radio.TelemetryGPSD:
		values, err = readGPSD(ctx, host, t.Port)
	case radio.TelemetryHost:
		values, err = readHost(p.cfg.PowerSupplies, p.cfg.ThermalZones)
	default:
		return nil, fmt.Errorf("a source of kind %q, which this agent does not know", t.Kind)
	}
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			return nil, fmt.Errorf("%s is not a number", v.Name)
		}
	}
	return values, nil
}

// hostPort is an address for people.
func hostPort(host string, port int) string { return net.JoinHostPort(host, fmt.Sprint(port)) }

// timeoutError reports that an address did not answer in time.
type timeoutError struct {
	what   string
	within time.Duration // how long it was given
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("%s within %s", e.what, max(e.within.Round(100*time.Millisecond), 100*time.Millisecond))
}

// describeError turns the errors of an address that does not answer into one sentence.
func describeError(protocol, place string, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers %s at %s: the address is there, the service is not", protocol, place)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Errorf("no way leads to %s for %s", place, protocol)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &timeoutError{what: fmt.Sprintf("no answer to %s from %s", protocol, place)}
	}
	return fmt.Errorf("%s at %s: %w", protocol, place, err)
}

// readHost reads the laptop's power supply, and its temperature; of either only what
// the laptop has.
func readHost(power, thermal string) (out []journal.Reading, err error) {
	if b, there := provenance.ReadBattery(power); there {
		draining := 0.0
		if b.Discharging {
			draining = 1
		}
		out = append(out, journal.Reading{Name: "charge", Value: 100 * b.Charge, Unit: "%"}, journal.Reading{Name: "discharging", Value: draining})
	}
	if c, there := provenance.ReadTemperature(thermal); there {
		out = append(out, journal.Reading{Name: "temperature", Value: c, Unit: "°C"})
	}
	if len(out) == 0 {
		return nil, errors.New("this node has no battery that reports its charge, and no sensor of its temperature")
	}
	return out, nil
}

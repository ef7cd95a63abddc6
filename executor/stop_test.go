package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// stopping is a runner to whose first client something happens between its connected
// event and its result; the driver goes on as if nothing had been.
type stopping struct {
	scripted
	happens func(p *stoppedProcess)
	early   bool // it is stopped, and goes on, before Start returns
}

type stoppedProcess struct {
	ranProcess
	stops    Stops
	replaced string
	quit     chan struct{}
}

func (p *stoppedProcess) Stops() *Stops   { return &p.stops }
func (p *stoppedProcess) Changed() string { return p.replaced }
func (p *stoppedProcess) Kill() {
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
}
func (p *stoppedProcess) Terminate() {} // as a process that is stopped does

func (s *stopping) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	happens := s.happens
	s.happens = nil
	if happens == nil {
		return s.scripted.Start(ctx, protocol, p, payload)
	}
	r, w := io.Pipe()
	proc := &stoppedProcess{ranProcess: ranProcess{r, make(chan struct{})}, quit: make(chan struct{})}
	if s.early {
		proc.stops.Set(false)
	}
	go func() {
		defer close(proc.done)
		defer w.Close()
		say := func(e contract.Event) {
			b, _ := json.Marshal(e)
			_, _ = w.Write(append(b, '\n'))
		}
		say(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "script"}})
		say(contract.Event{Event: contract.KindConnected, Transfer: p.Transfer.ID, ConnectNS: 7})
		happens(proc)
		select {
		case <-proc.quit:
			return
		case <-time.After(100 * time.Millisecond):
		}
		say(contract.Event{Event: contract.KindResult, Transfer: p.Transfer.ID, Result: &contract.Result{SizeBytes: p.Transfer.SizeBytes, ElapsedNS: 100e6, Digest: strings.Repeat("0", 64)}})
	}()
	return proc, nil
}

// stallsAt is what [Config.Stalls] knows.
type stallsAt struct {
	mu      sync.Mutex
	all     []journal.AgentStopped
	changed notify.Notifier
}

func (s *stallsAt) Since(at time.Time) (out []journal.AgentStopped, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.all {
		if x.To.After(at) {
			out = append(out, x)
		}
	}
	return out, s.changed.Changed()
}

// An attempt during which the client's driver, the leading agent or the emulator was
// stopped, or the driver was replaced, is invalid, though its transfer succeeded, and is repeated as none of those
// that the sheet allows.
func TestStoppedDuringAnAttempt(t *testing.T) {
	second := 2 * time.Second
	for name, c := range map[string]struct {
		happens func(p *stoppedProcess, s *stallsAt, r *fakeRadio)
		want    string
		message string
	}{
		"driver, and it goes on": {func(p *stoppedProcess, _ *stallsAt, _ *fakeRadio) {
			p.stops.Set(true)
			time.Sleep(second)
			p.stops.Set(false)
		}, "end 0/1 invalid stopped", "something other than Linktrial stopped the driver's process during the attempt"},
		"driver, for so short that only its end is known": {func(p *stoppedProcess, _ *stallsAt, _ *fakeRadio) { p.stops.Set(false) },
			"end 0/1 invalid stopped", "something other than Linktrial stopped the driver's process during the attempt"},
		"driver, before anybody watches it": {nil, "end 0/1 invalid stopped", "something other than Linktrial stopped the driver's process during the attempt"},
		"agent": {func(_ *stoppedProcess, s *stallsAt, _ *fakeRadio) {
			from := time.Now()
			time.Sleep(second)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all = append(s.all, journal.AgentStopped{From: from, To: time.Now()})
		}, "end 0/1 invalid stopped", "the agent of the client did not run for 2.0 s, from 00:00:00.0 to 00:00:02.0 UTC; the flow ended with shorter-than-run"},
		"emulator": {func(_ *stoppedProcess, _ *stallsAt, r *fakeRadio) { r.stalled = []time.Duration{second} },
			"end 0/1 invalid radio-down", "the emulated radio did not run for 2.0 s during the attempt; the flow ended with a result"},
		"a driver that is replaced": {func(p *stoppedProcess, _ *stallsAt, _ *fakeRadio) { p.replaced = "driver x was replaced" },
			"end 0/1 invalid driver-changed", "driver x was replaced; the flow ended with a result"},
		"nothing": {func(*stoppedProcess, *stallsAt, *fakeRadio) {}, "end 0/1 succeeded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				stalls, emulated := &stallsAt{}, &fakeRadio{}
				r := &stopping{happens: func(p *stoppedProcess) { c.happens(p, stalls, emulated) }}
				if c.happens == nil {
					r.happens, r.early = func(*stoppedProcess) {}, true
				}
				cfg := config(testSheet(t, 1, 1), j, r, emulated)
				cfg.Stalls = stalls
				require.NoError(t, Lead(t.Context(), cfg))
				want := []string{"start 0/1", c.want}
				if c.message != "" {
					want = append(want, "start 0/2", "end 0/2 succeeded")
				}
				sameStory(t, j, append(want, "trial 0 succeeded", "run completed")...)
				for _, x := range read(t, j) {
					if x.Type != journal.TypeAttemptEnded {
						continue
					}
					if m := body[journal.AttemptEnded](t, x).Message; !strings.HasPrefix(m, c.message) {
						t.Errorf("message %q, expected %q", m, c.message)
					}
					break
				}
			})
		})
	}
}

// passing is a control link on which something passes during the first attempt.
type passing struct{ takes int }

func (p *passing) Take() (journal.ControlTraffic, error) {
	if p.takes++; p.takes == 2 {
		return journal.ControlTraffic{Packets: 1, Bytes: 52}, nil
	}
	return journal.ControlTraffic{}, nil
}

// An attempt during which control packets passed is invalid with in-band control, and is
// repeated as none of those that the sheet allows. The journal has the count of each
// attempt, also where there were none.
func TestControlTrafficInBand(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	cfg := config(testSheet(t, 2, 1), j, &scripted{}, &fakeRadio{})
	cfg.Control = &passing{}
	require.NoError(t, Lead(t.Context(), cfg))
	sameStory(t, j, "start 0/1", "end 0/1 invalid control-traffic", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded",
		"start 1/1", "end 1/1 succeeded", "trial 1 succeeded", "run completed")
	var counts []journal.ControlTraffic
	for _, r := range read(t, j) {
		if r.Type == journal.TypeAttemptEnded {
			counts = append(counts, *body[journal.AttemptEnded](t, r).Control)
		}
	}
	require.Equal(t, []journal.ControlTraffic{{Packets: 1, Bytes: 52}, {}, {}}, counts)
}

// A listener that is stopped is not up until it goes on: the journal has both, and who
// watches an attempt knows at once.
func TestStoppedListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sheet := testSheet(t, 2, 1)
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		var stops Stops
		cfg := config(sheet, j, listening{&stops}, nil)
		cfg.Role = radio.RoleServer
		carrier, ctx, stop := attended(t, cfg)
		defer stop()
		a := FlowAssignment{Run: "r", SheetHash: cfg.SheetHash, Trial: 1, Attempt: 1}
		outage := make(chan Outage, 1)
		watch := carrier.Watch(a)
		go func() { outage <- watch(ctx, nil) }()
		stops.Set(true)
		require.Equal(t, Outage{Text: "the listener of b at the server was stopped from outside", Stopped: true}, <-outage)
		err := carrier.Await(ctx, a)
		require.EqualError(t, err, "the listener of b at the server is not up: something other than Linktrial stopped its process")
		stops.Set(false)
		require.NoError(t, carrier.Await(ctx, a))

		var got []string
		for _, r := range read(t, j) {
			if r.Type == journal.TypeListenerReady || r.Type == journal.TypeListenerFailed {
				if l := body[journal.Listener](t, r); l.Treatment == "b" {
					got = append(got, string(r.Type))
					require.Equal(t, r.Type == journal.TypeListenerFailed, l.Outside && l.Stopped)
				}
			}
		}
		require.Equal(t, []string{"listener-ready", "listener-failed", "listener-ready"}, got)
	})
}

// attended has the server of a run wait for attempts until stop, within a bubble of synctest.
func attended(t *testing.T, cfg Config) (carrier Carrier, ctx context.Context, stop func()) {
	cfg.TakeAssignments = func(ctx context.Context, c Carrier) {
		carrier = c
		<-ctx.Done()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, cfg) }()
	synctest.Wait()
	return carrier, ctx, func() {
		cancel(ErrFinish)
		require.NoError(t, <-ended)
	}
}

// listening is a runner whose listener of protocol b is stopped as its stops say.
type listening struct{ stops *Stops }

func (s listening) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	proc, err := standing{strings.Repeat("0", 32)}.Start(ctx, protocol, p, payload)
	if err != nil || protocol != "b" {
		return proc, err
	}
	return stoppable{proc, s.stops}, nil
}

type stoppable struct {
	Process
	stops *Stops
}

func (p stoppable) Stops() *Stops { return p.stops }

// A node that does not answer after a flow has failed is not in order: its machine may
// be suspended.
func TestNodeDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		fails := true
		r := &scripted{fail: func(*contract.Parameters) contract.Code {
			defer func() { fails = false }()
			if fails {
				return contract.CodeConnectTimeout
			}
			return ""
		}}
		cfg := config(testSheet(t, 1, 1), j, r, &fakeRadio{})
		cfg.Sources = silentNodes{}
		require.NoError(t, Lead(t.Context(), cfg))
		sameStory(t, j, "start 0/1", "end 0/1 invalid server-down", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed")
	})
}

// silentNodes accept every assignment and say nothing more.
type silentNodes struct{}

func (silentNodes) Prepare(context.Context, radio.Role, FlowAssignment) (Source, error) {
	return silentNodes{}, nil
}
func (silentNodes) Carry(ctx context.Context, _ time.Time) ([]FlowOutcome, error) {
	return nil, ctx.Err()
}
func (silentNodes) Outage(ctx context.Context) (Outage, error) {
	<-ctx.Done()
	return Outage{}, nil
}
func (silentNodes) Over()        {}
func (silentNodes) Close() error { return nil }

// What a node lacks says nothing of the protocol: an attempt whose process the node could
// not start is repeated, and one whose driver cannot be executed counts.
func TestProcessNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		r := &refusing{Runner: &scripted{}, errors: []error{
			fmt.Errorf("fork/exec tcp: %w", syscall.EAGAIN),
			fmt.Errorf("fork/exec tcp: %w", syscall.ENOMEM),
			fmt.Errorf("%w: fork/exec tcp: %w", ErrBrokenDriver, syscall.ENOEXEC),
		}}
		require.NoError(t, Lead(t.Context(), config(testSheet(t, 2, 1), j, r, &fakeRadio{})))
		sameStory(t, j, "start 0/1", "end 0/1 invalid no-process", "start 0/2", "end 0/2 invalid no-process",
			"start 0/3", "end 0/3 failed no-start", "trial 0 failed", "start 1/1", "end 1/1 succeeded", "trial 1 succeeded", "run completed")
	})
}

// A listener that the node cannot start is not up, through no fault of its driver.
func TestListenerNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for err, outside := range map[error]bool{
			syscall.EMFILE: true,
			fmt.Errorf("%w: %w", ErrBrokenDriver, syscall.ENOENT): false,
		} {
			j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
			cfg := config(testSheet(t, 2, 1), j, &refusing{Runner: listening{new(Stops)}, errors: []error{err}}, nil)
			cfg.Role = radio.RoleServer
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- Serve(ctx, cfg) }()
			synctest.Wait()
			time.Sleep(time.Minute)
			var got []string
			for _, r := range read(t, j) {
				if r.Type == journal.TypeListenerReady || r.Type == journal.TypeListenerFailed {
					got = append(got, string(r.Type))
					require.Equal(t, r.Type == journal.TypeListenerFailed && outside, body[journal.Listener](t, r).Outside)
				}
			}
			slices.Sort(got)
			require.Equal(t, []string{"listener-failed", "listener-ready", "listener-ready"}, got)
			cancel(ErrFinish)
			require.NoError(t, <-ended)
			require.NoError(t, j.Close())
		}
	})
}

// refusing is a runner whose first starts fail.
type refusing struct {
	Runner
	mu     sync.Mutex
	errors []error
}

func (r *refusing) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errors) > 0 {
		err := r.errors[0]
		r.errors = r.errors[1:]
		return nil, err
	}
	return r.Runner.Start(ctx, protocol, p, payload)
}

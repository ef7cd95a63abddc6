package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// interfaceAt is what [Config.Interface] knows.
type interfaceAt struct {
	mu      sync.Mutex
	device  string // empty: radio0
	fault   string
	until   time.Time
	now     string // what is wrong now
	deaf    string // why listeners hear nothing
	changed notify.Notifier
}

func (i *interfaceAt) State() (faults []InterfaceFault, changed <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.faults(i.now), i.changed.Changed()
}

func (i *interfaceAt) faults(text string) []InterfaceFault {
	if text == "" {
		return nil
	}
	return []InterfaceFault{{Device: cmp.Or(i.device, "radio0"), Text: text}}
}

func (i *interfaceAt) Deaf(port int) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if port == 0 {
		panic("a listener without a port")
	}
	return i.deaf
}

// set is what is wrong from now on.
func (i *interfaceAt) set(fault string) {
	i.mu.Lock()
	if fault != "" || i.now != "" {
		i.fault, i.until = cmp.Or(fault, i.now), time.Now()
	}
	if fault == "" {
		i.until = i.until.Add(-1) // what starts now starts after it
	}
	i.now = fault
	i.mu.Unlock()
	i.changed.Notify()
}

func (i *interfaceAt) Since(at time.Time) (faults []InterfaceFault, more <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	fault := ""
	if i.now != "" || i.fault != "" && !i.until.Before(at) {
		fault = i.fault
	}
	return i.faults(fault), i.changed.Changed()
}

// An attempt during which the radio's interface was not in order is ended at once, is
// invalid whatever the transfer does, and is repeated. Found by a fault campaign: with
// the interface down for 3 s, transfers of 1.4 s that took 6 s counted for their
// protocols.
func TestInterfaceOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		i := &interfaceAt{}
		r := &stopping{happens: func(*stoppedProcess) {
			i.mu.Lock()
			i.fault, i.until = "it is down", time.Now()
			i.mu.Unlock()
			i.changed.Notify()
		}}
		cfg := config(testSheet(t, 1, 1), j, r, &fakeRadio{})
		cfg.Interface, cfg.Device = i, "radio0"
		require.NoError(t, Lead(t.Context(), cfg))
		sameStory(t, j, "start 0/1", "end 0/1 invalid radio-down", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed")
		for _, x := range read(t, j) {
			if x.Type == journal.TypeAttemptEnded {
				m := body[journal.AttemptEnded](t, x).Message
				require.True(t, strings.HasPrefix(m, "the radio's interface radio0 of the client was not in order: it is down"), m)
				break
			}
		}
	})
}

// No attempt is spent on an interface that is not in order: the leading node waits, for
// as long as the plan does. Found on a pair of cables: while an IPv6 address was tentative
// for 1.5 s, 18 of 25 trials failed with "cannot assign requested address".
func TestAttemptAwaitsInterface(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		story []string
	}{
		"mended":     {5 * time.Second, []string{"start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "run completed"}},
		"not mended": {time.Hour, []string{"run stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				i := &interfaceAt{}
				i.set("its address fd77::1 cannot be used")
				cfg := config(testSheet(t, 1, 1), j, &stopping{happens: func(*stoppedProcess) {}}, &fakeRadio{})
				cfg.Interface, cfg.Device = i, "radio0"
				began := time.Now()
				time.AfterFunc(c.after/2, func() { i.set("it is down") })
				mended := time.AfterFunc(c.after, func() { i.set("") })
				defer mended.Stop()
				require.NoError(t, Lead(t.Context(), cfg))
				sameStory(t, j, c.story...)
				if c.after > time.Minute {
					require.Equal(t, runsheet.DefaultWait, time.Since(began))
				}
			})
		})
	}
}

// A node that does not lead records when its radio's interface is not in order, and when
// it is again: the leading node does not learn it of a relay that only forwards packets,
// of which attempts counted as failed that met its interface down.
func TestInterfaceIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		i := &interfaceAt{}
		cfg := config(testSheet(t, 1, 1), j, standing{}, nil)
		cfg.Role, cfg.Interface, cfg.Device = radio.RoleRelay, i, "radio0"
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Attend(ctx, cfg) }()
		synctest.Wait()
		for _, fault := range []string{"it is down", "its MTU is 300, expected 1500", ""} {
			time.Sleep(time.Second)
			i.set(fault)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		i.set("it is down") // for so short a time that nobody sees it
		i.set("")
		synctest.Wait()
		require.Equal(t, []string{"it is down", "its MTU is 300, expected 1500", "", "it is down", ""}, interfaceStory(t, j))
		require.Equal(t, j.Last(), j.Durable())
		cancel(ErrFinish)
		require.NoError(t, <-ended)
	})
}

// interfacesAt are several interfaces.
type interfacesAt []*interfaceAt

func (all interfacesAt) join(of func(*interfaceAt) ([]InterfaceFault, <-chan struct{})) (faults []InterfaceFault, changed <-chan struct{}) {
	for _, i := range all {
		more, c := of(i)
		faults, changed = append(faults, more...), c
	}
	return faults, changed
}

func (all interfacesAt) Since(at time.Time) (faults []InterfaceFault, more <-chan struct{}) {
	return all.join(func(i *interfaceAt) ([]InterfaceFault, <-chan struct{}) { return i.Since(at) })
}

func (all interfacesAt) State() (faults []InterfaceFault, changed <-chan struct{}) {
	return all.join((*interfaceAt).State)
}

func (all interfacesAt) Deaf(int) string { return "" }

// A relay between two radios records of each interface when it is not in order, also where
// both are not.
func TestInterfacesAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		first, second := &interfaceAt{device: "radio0"}, &interfaceAt{device: "radio7"}
		cfg := config(testSheet(t, 1, 1), j, standing{}, nil)
		cfg.Role, cfg.Interface, cfg.Device = radio.RoleRelay, interfacesAt{first, second}, "radio0"
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Attend(ctx, cfg) }()
		set := func(i *interfaceAt, fault string) {
			synctest.Wait()
			time.Sleep(time.Second)
			i.set(fault)
			second.changed.Notify() // theirs is one
			synctest.Wait()
		}
		set(first, "it is down")
		set(second, "it has no carrier")
		set(first, "")
		set(second, "")
		time.Sleep(time.Second)
		second.set("it is down") // for so short a time that nobody sees it
		second.set("")
		synctest.Wait()
		var story []journal.RadioInterface
		for _, r := range read(t, j) {
			if r.Type == journal.TypeInterfaceFailed || r.Type == journal.TypeInterfaceReady {
				story = append(story, body[journal.RadioInterface](t, r))
			}
		}
		require.Equal(t, []journal.RadioInterface{
			{Device: "radio0", Fault: "it is down"}, {Device: "radio7", Fault: "it has no carrier"}, {Device: "radio0"}, {Device: "radio7"},
			{Device: "radio7", Fault: "it is down"}, {Device: "radio7"},
		}, story)
		cancel(ErrFinish)
		require.NoError(t, <-ended)
	})
}

// interfaceStory is the faults of the journal's records of the interface; empty: it was
// in order.
func interfaceStory(t *testing.T, j *journal.File) (out []string) {
	for _, r := range read(t, j) {
		if r.Type == journal.TypeInterfaceFailed || r.Type == journal.TypeInterfaceReady {
			b := body[journal.RadioInterface](t, r)
			require.Equal(t, "radio0", b.Device)
			require.Equal(t, r.Type == journal.TypeInterfaceFailed, b.Fault != "")
			out = append(out, b.Fault)
		}
	}
	return out
}

// counting is a runner that counts what it starts, and tells of one start after the other.
type counting struct {
	Runner
	telling *sync.Mutex
	started func(n int)
	n       *atomic.Int64
}

func (c counting) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	c.telling.Lock()
	c.started(int(c.n.Add(1)))
	c.telling.Unlock()
	return c.Runner.Start(ctx, protocol, p, payload)
}

// deaf is a runner whose listeners cannot open their port.
type deaf struct{}

func (deaf) Start(_ context.Context, _ string, _ *contract.Parameters, payload io.Reader) (Process, error) {
	return cannotListen("bind: Cannot assign requested address"), nil
}

// cannotListen is a listener's process that ends with listen-failed.
func cannotListen(message string) Process {
	r, w := io.Pipe()
	p := &standingProcess{out: r, in: w, done: make(chan struct{})}
	go func() {
		json.NewEncoder(w).Encode(contract.Event{Event: contract.KindError, Code: contract.CodeListenFailed, Message: message})
		p.Kill()
		w.Close()
	}()
	return p
}

// serving has the server of a run wait for attempts until stop; started is called with the
// number of each process before its start.
func serving(t *testing.T, r Runner, i *interfaceAt, started func(n int)) (await func() error, starts *atomic.Int64, stop func()) {
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	starts = &atomic.Int64{}
	cfg := config(testSheet(t, 1, 1), j, counting{r, &sync.Mutex{}, started, starts}, nil)
	cfg.Role, cfg.Interface, cfg.Device = radio.RoleServer, i, "radio0"
	carrier, ctx, end := attended(t, cfg)
	a := FlowAssignment{Run: "r", SheetHash: cfg.SheetHash, Trial: 0, Attempt: 1}
	return func() error { return carrier.Await(ctx, a) }, starts, func() {
		end()
		require.NoError(t, j.Close())
	}
}

// A listener is started when the radio's interface is in order, and until then it is
// through no fault of its driver that it is not up. Found by a fault campaign: Haul's
// packets fit the MTU at its listener's start, and a transfer of long after the fault took
// 0.38 s instead of 0.24 s and counted.
func TestListenerAwaitsInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &interfaceAt{}
		i.set("its MTU is 576, expected 1500")
		await, starts, stop := serving(t, standing{transfer: strings.Repeat("0", 32)}, i, func(int) {})
		defer stop()
		var driver *ListenerError
		err := await()
		require.ErrorContains(t, err, "is not up: the radio's interface radio0 of the server was not in order: its MTU is 576, expected 1500")
		require.NotErrorAs(t, err, &driver)
		require.Zero(t, starts.Load())
		i.set("it is down")
		require.ErrorContains(t, await(), "was not in order: it is down")
		require.Zero(t, starts.Load())
		i.set("")
		require.NoError(t, await())
		synctest.Wait()
		require.EqualValues(t, 2, starts.Load(), "one for each treatment")
	})
}

// A listener is started again after each fault of the radio's interface, also after one
// that is over before anybody looks. Found on a pair of cables: an interface came back
// with its name and address and another index, and listeners that were bound to the old
// one lived and heard nothing; each later trial of TCP and QUIC counted as failed, none
// of Haul's.
func TestListenerIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &interfaceAt{}
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		starts := &atomic.Int64{}
		cfg := config(testSheet(t, 1, 1), j, counting{standing{transfer: strings.Repeat("0", 32)}, &sync.Mutex{}, func(int) {}, starts}, nil)
		cfg.Role, cfg.Interface, cfg.Device = radio.RoleServer, i, "radio0"
		carrier, ctx, end := attended(t, cfg)
		a := FlowAssignment{Run: "r", SheetHash: cfg.SheetHash, Trial: 0, Attempt: 1}
		require.NoError(t, carrier.Await(ctx, a))
		synctest.Wait()
		require.EqualValues(t, 2, starts.Load(), "one for each treatment")
		i.set("it does not exist")
		synctest.Wait()
		require.ErrorContains(t, carrier.Await(ctx, a), "is not up: the radio's interface radio0 of the server was not in order: it does not exist")
		require.EqualValues(t, 2, starts.Load())
		i.set("")
		require.NoError(t, carrier.Await(ctx, a))
		synctest.Wait()
		require.EqualValues(t, 4, starts.Load())
		time.Sleep(time.Second)
		i.set("it is another one") // and all is well again at once
		i.set("")
		synctest.Wait()
		time.Sleep(time.Second)
		require.NoError(t, carrier.Await(ctx, a))
		require.EqualValues(t, 6, starts.Load())
		end()
		renewed := 0
		for _, r := range read(t, j) {
			if r.Type != journal.TypeListenerFailed {
				continue
			}
			l := body[journal.Listener](t, r)
			require.True(t, l.Outside)
			if l.Renewed {
				renewed++
				require.Contains(t, l.Message, "the radio's interface radio0 of the server was not in order")
			}
		}
		require.Equal(t, 6, renewed, "ended twice each, and not started once")
	})
}

// A listener that gets ready although the radio's interface was not in order since its
// start is started again when it is.
func TestListenerStartsAgainAfterInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &interfaceAt{}
		await, starts, stop := serving(t, standing{transfer: strings.Repeat("0", 32)}, i, func(n int) {
			if n == 1 {
				i.set("its MTU is 576, expected 1500")
			}
		})
		defer stop()
		var driver *ListenerError
		err := await()
		require.ErrorContains(t, err, "is not up: the radio's interface radio0 of the server was not in order: its MTU is 576")
		require.NotErrorAs(t, err, &driver)
		before := starts.Load()
		i.set("")
		require.NoError(t, await())
		synctest.Wait()
		require.Equal(t, before+2, starts.Load(), "one for each treatment")
	})
}

// A listener that hears nothing over the radio is started again, whoever has not seen why.
func TestDeafListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &interfaceAt{deaf: "its socket is bound to another interface (index 4; radio0 has 9)"}
		await, starts, stop := serving(t, standing{transfer: strings.Repeat("0", 32)}, i, func(int) {})
		defer stop()
		var driver *ListenerError
		err := await()
		require.ErrorContains(t, err, "is not up: it hears nothing over the radio: its socket is bound to another interface (index 4; radio0 has 9)")
		require.NotErrorAs(t, err, &driver)
		require.Greater(t, starts.Load(), int64(2))
		i.mu.Lock()
		i.deaf = ""
		i.mu.Unlock()
		require.NoError(t, await())
		synctest.Wait()
		before := starts.Load()
		i.mu.Lock()
		i.deaf = "its socket is bound to another interface (index 9; radio0 has 12)"
		i.mu.Unlock()
		i.changed.Notify() // something of the network has changed
		synctest.Wait()
		i.mu.Lock()
		i.deaf = ""
		i.mu.Unlock()
		require.NoError(t, await())
		synctest.Wait()
		require.Equal(t, before+2, starts.Load(), "one for each treatment")
	})
}

// A listener that cannot open its port is not up through no fault of its driver, whether the
// interface is in order or not: another program may hold the port. Found in the field: the
// attempts counted as connect-timeout of TCP and Haul.
func TestListenerThatCannotListen(t *testing.T) {
	for name, fault := range map[string]string{"in order": "", "not in order": "it has lost its address"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &interfaceAt{}
				await, _, stop := serving(t, deaf{}, i, func(int) { i.set(fault) })
				defer stop()
				var driver *ListenerError
				err := await()
				require.NotErrorAs(t, err, &driver)
				if fault == "" {
					require.ErrorContains(t, err, "Cannot assign requested address")
				}
			})
		})
	}
}

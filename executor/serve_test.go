package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// standing is a runner whose server runs until it is killed, after it has
// reported one transfer.
type standing struct{ transfer string }

func (s standing) Start(_ context.Context, _ string, p *contract.Parameters, payload io.Reader) (Process, error) {
	r, w := io.Pipe()
	proc := &standingProcess{out: r, in: w, done: make(chan struct{})}
	go func() {
		enc := json.NewEncoder(w)
		enc.Encode(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "script"}})
		if p.Local.Port == 5001 {
			enc.Encode(contract.Event{Event: contract.KindConnected, Transfer: s.transfer})
			enc.Encode(contract.Event{Event: contract.KindResult, Transfer: s.transfer, Result: &contract.Result{SizeBytes: 1000, ElapsedNS: 1, Digest: strings.Repeat("0", 64)}})
		}
		<-proc.done
		w.Close()
	}()
	return proc, nil
}

type standingProcess struct {
	out      *io.PipeReader
	in       *io.PipeWriter
	done     chan struct{}
	replaced string
}

func (p *standingProcess) Changed() string       { return p.replaced }
func (p *standingProcess) Output() io.ReadCloser { return p.out }
func (p *standingProcess) Done() <-chan struct{} { return p.done }
func (p *standingProcess) Exit() Exit            { return Exit{} }
func (p *standingProcess) Log() string           { return "" }
func (p *standingProcess) Terminate()            { p.Kill() }
func (p *standingProcess) Stops() *Stops         { return nil }
func (p *standingProcess) Kill() {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
}

// replacedOnce is a runner whose first process is another program than was to be started.
type replacedOnce struct {
	standing
	starts *atomic.Int64
}

func (r replacedOnce) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	proc, err := r.standing.Start(ctx, protocol, p, payload)
	if r.starts.Add(1) == 1 {
		proc.(*standingProcess).replaced = "driver x was replaced"
	}
	return proc, err
}

// A listener whose driver was replaced as it started serves nobody, through no fault of the
// driver's.
func TestListenerThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		starts := &atomic.Int64{}
		cfg := config(testSheet(t, 1, 1), j, replacedOnce{standing{strings.Repeat("0", 32)}, starts}, nil)
		cfg.Role = radio.RoleServer
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, cfg) }()
		time.Sleep(time.Minute)
		cancel(ErrFinish)
		require.NoError(t, <-ended)
		require.EqualValues(t, 3, starts.Load(), "one for each treatment, and one again")
		var story []string
		for _, r := range read(t, j) {
			if r.Type == journal.TypeListenerReady || r.Type == journal.TypeListenerFailed {
				l := body[journal.Listener](t, r)
				story = append(story, fmt.Sprintf("%s %t %s", r.Type, l.Renewed, l.Message))
			}
		}
		slices.Sort(story)
		require.Equal(t, []string{"listener-failed true driver x was replaced", "listener-ready false ", "listener-ready false "}, story)
	})
}

// fakeArrivals are packets' times that a test gives, of the listener at port 5001.
type fakeArrivals struct {
	mu     sync.Mutex
	listen map[int]int64
	ended  []int
	passed int64
}

func (f *fakeArrivals) Passed(int) (int64, error) { return f.passed, nil }

func (f *fakeArrivals) Listen(port int, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listen[port] = size
	return nil
}

func (f *fakeArrivals) Ended(port int) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, port)
	return time.Duration(port) * time.Millisecond, nil
}

// How long the packets of a transfer took to arrive is in the server's report of it.
func TestReceivedHasTheTimeOfPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		cfg := config(testSheet(t, 2, 1), j, standing{runsheet.TransferID("r", 0, 1, 0).String()}, nil)
		arrivals := &fakeArrivals{listen: map[int]int64{}}
		cfg.Role, cfg.PacketsArrived = radio.RoleServer, arrivals
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, cfg) }()
		synctest.Wait()
		cancel(ErrFinish)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if want := map[int]int64{5001: 1000, 5002: 1000}; !maps.Equal(arrivals.listen, want) {
			t.Errorf("sizes by listener %v, expected %v", arrivals.listen, want)
		}
		seen := 0
		for _, r := range read(t, j) {
			if r.Type != journal.TypeReceived {
				continue
			}
			var b journal.Received
			if err := json.Unmarshal(r.Body, &b); err != nil {
				t.Fatal(err)
			}
			if want := time.Duration(arrivals.ended[seen]) * time.Millisecond; b.Packets != want {
				t.Errorf("the packets of a transfer took %s, expected %s", b.Packets, want)
			}
			seen++
		}
		if seen == 0 || seen != len(arrivals.ended) {
			t.Errorf("%d reports of transfers, and %d of packets", seen, len(arrivals.ended))
		}
	})
}

// Of transfers that run at once nobody knows which packets were whose.
func TestTransfersAtOnceHaveNoTimeOfPackets(t *testing.T) {
	sheet, err := runsheet.Decode(testSheet(t, 1, 1))
	require.NoError(t, err)
	n := &node{Config: Config{Role: radio.RoleServer, PacketsArrived: &fakeArrivals{}}}
	l := &listener{node: n, Listener: runsheet.Listener{Treatment: &sheet.Treatments[0]}, port: 5001, transfers: newTransferTable("r", sheet, NopObserver{})}
	s := &server{arrivedPackets: arrivedPackets{listener: l, active: map[string]bool{}}}
	const known = 5001 * time.Millisecond
	ends := func(id string) time.Duration {
		delete(s.active, id)
		return s.packetsTook()
	}
	s.begin("a")
	require.Equal(t, known, ends("a"))
	s.begin("a")
	s.begin("b")
	require.Zero(t, ends("a"))
	s.begin("c")
	require.Zero(t, ends("b"))
	require.Zero(t, ends("c"))
	s.begin("d")
	require.Equal(t, known, ends("d"))
}

// What a probe's server says has arrived is held against the packets that did: each probe
// has at most those that came since the last time but one at which none ran, and no packet
// counts for two of them.
func TestProbesHaveThePacketsThatArrived(t *testing.T) {
	arrivals := &fakeArrivals{}
	sheet, err := runsheet.Decode(testSheet(t, 2, 1))
	require.NoError(t, err)
	sheet.Trials[1].Flows, sheet.Trials[1].Probes = nil, []runsheet.Flow{{Treatment: "voice", From: radio.RoleServer, To: radio.RoleClient}}
	n := &node{Config: Config{Role: radio.RoleServer, PacketsArrived: arrivals}, sheet: sheet}
	s := &arrivedPackets{listener: &listener{node: n, Listener: runsheet.Listener{Treatment: &runsheet.Treatment{Name: "voice", Probe: true}}, transfers: newTransferTable("r", sheet, NopObserver{})}, active: map[string]bool{}}
	for i, c := range []struct {
		arrived, received int64
		others            bool // run meanwhile
		back              bool // it starts at the server
		false             bool
	}{
		{arrived: 103, received: 100},
		{arrived: 53, received: 100, false: true},
		{arrived: 103, received: 100},
		{arrived: 100, received: 103}, // as many as may have come before it said so
		{arrived: 100, received: 101, false: true},
		{arrived: 206, received: 100, others: true},
		{arrived: 0, received: 100, others: true},
		{arrived: 0, received: 20, false: true},
		{arrived: 3, received: 100, back: true},
		{arrived: 103, received: 100},
	} {
		arrivals.passed += c.arrived
		clear(s.active)
		if c.others {
			s.active["another"] = true
		}
		trial := 0
		if c.back {
			trial = 1
		}
		r := journal.Received{Transfer: runsheet.TransferID("r", trial, 1, 0).String(), Result: &contract.Result{Probe: &contract.ProbeMetrics{Received: c.received}}}
		s.holdProbe(&r)
		if is := r.Reason == journal.ReasonMoreThanSent; is != c.false || is != (r.Message != "") {
			t.Errorf("probe %d: %q: %s", i, r.Reason, r.Message)
		}
	}
	transfer := journal.Received{Result: &contract.Result{SizeBytes: 1}}
	s.holdProbe(&transfer)
	if transfer.Reason != "" {
		t.Errorf("a transfer: %+v", transfer)
	}
}

// A relay process beside a treatment's own listener gets the packets from the radio.
func TestWhoseListenerGetsPacketsFromTheRadio(t *testing.T) {
	n := &node{Config: Config{Role: radio.RoleServer}}
	via := []runsheet.Via{{At: radio.RoleRelay, Port: 5801}, {At: radio.RoleServer, Port: 5802}}
	for _, c := range []struct {
		via  []runsheet.Via
		port int
	}{{nil, 5001}, {via[:1], 5001}, {via, 5802}} {
		l := &listener{node: n, port: 5001}
		l.Treatment = &runsheet.Treatment{Name: "a", Port: 5001, Via: c.via}
		if got := l.radioPort(); got != c.port {
			t.Errorf("%v: port %d, expected %d", c.via, got, c.port)
		}
	}
}

// The server's report of a transfer is what makes the leader's value count, so
// it must be durable as soon as it is known: no later boundary of the serving
// side may be needed to write it.
func TestReceivedIsDurableAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "j")
		sheet := testSheet(t, 2, 1)
		j := openJournal(t, path, journal.Options{})
		defer j.Close()
		cfg := config(sheet, j, standing{runsheet.TransferID("r", 0, 1, 0).String()}, nil)
		cfg.Role = radio.RoleServer
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, cfg) }()

		kept := func() bool {
			for _, r := range read(t, j) {
				if r.Type == journal.TypeReceived {
					return r.Seq <= j.Durable()
				}
			}
			return false
		}
		synctest.Wait()
		if !kept() {
			t.Error("the server's report of the transfer is not in the durable part of the journal")
		}
		cancel(ErrFinish)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

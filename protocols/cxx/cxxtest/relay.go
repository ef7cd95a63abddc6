package cxxtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Relay carries datagrams between clients and one server and loses some.
type Relay struct {
	Port int

	cut     atomic.Bool
	delay   atomic.Int64 // nanoseconds
	pace    atomic.Int64 // nanoseconds
	largest atomic.Int64
	passed  atomic.Int64

	held  sync.WaitGroup // datagrams
	ended chan struct{}

	mu   sync.Mutex // of what follows
	loss float64
	rnd  *rand.Rand
	lose func(datagram []byte, toServer bool) bool
	free [2]time.Time // when either direction has carried what it holds
}

// NewRelay relays to a port of the loopback interface and loses the given
// share of datagrams of both directions, by a fixed seed. It ends with the test.
func NewRelay(t testing.TB, server int, loss float64) *Relay {
	t.Helper()
	front, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Port: front.LocalAddr().(*net.UDPAddr).Port, loss: loss, rnd: rand.New(rand.NewPCG(1, 2)), ended: make(chan struct{})}
	var all sync.WaitGroup
	backs := map[string]net.Conn{}
	all.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, client, err := front.ReadFrom(b)
			if err != nil {
				break
			}
			back := backs[client.String()]
			if back == nil {
				if back, err = net.Dial("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(server))); err != nil {
					t.Errorf("relay: %v", err)
					break
				}
				backs[client.String()] = back
				all.Go(func() { r.back(front, back, client) })
			}
			if r.passes(b[:n], true) {
				datagram := bytes.Clone(b[:n])
				r.after(true, func() { _, _ = back.Write(datagram) }) // a refusal is the server's affair
			}
		}
		for _, back := range backs {
			_ = back.Close() // its reader ends with it
		}
	})
	t.Cleanup(func() {
		_ = front.Close()
		all.Wait()
		close(r.ended)
		r.held.Wait()
	})
	return r
}

func (r *Relay) back(front net.PacketConn, back net.Conn, client net.Addr) {
	b := make([]byte, 1<<16)
	for {
		n, err := back.Read(b)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // a refusal: the server is not there, or not yet
		}
		if r.passes(b[:n], false) {
			datagram := bytes.Clone(b[:n])
			r.after(false, func() { _, _ = front.WriteTo(datagram, client) })
		}
	}
}

func (r *Relay) passes(datagram []byte, toServer bool) bool {
	if n := int64(len(datagram)); n > r.largest.Load() {
		r.largest.Store(n)
	}
	r.mu.Lock()
	lost := r.rnd.Float64() < r.loss || r.lose != nil && r.lose(datagram, toServer)
	r.mu.Unlock()
	if lost || r.cut.Load() {
		return false
	}
	r.passed.Add(1)
	return true
}

// SetDelay holds every datagram back from now on, in both directions.
func (r *Relay) SetDelay(d time.Duration) { r.delay.Store(d.Nanoseconds()) }

// SetPace lets a datagram through in so long from now on, one after another in
// each direction, and drops what would have to wait for more than queue.
func (r *Relay) SetPace(d time.Duration) { r.pace.Store(d.Nanoseconds()) }

// queue is how many datagrams wait for their turn at most.
const queue = 20

// Lose loses the datagrams of which f says so. It is called by one goroutine
// at a time.
func (r *Relay) Lose(f func(datagram []byte, toServer bool) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = f
}

// wait is how long a datagram is held back; false where it is dropped.
func (r *Relay) wait(toServer bool) (time.Duration, bool) {
	d, pace := time.Duration(r.delay.Load()), time.Duration(r.pace.Load())
	if pace == 0 {
		return d, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	free := &r.free[0]
	if toServer {
		free = &r.free[1]
	}
	now := time.Now()
	if free.Before(now) {
		*free = now
	}
	if free.Sub(now) > queue*pace {
		return 0, false
	}
	*free = free.Add(pace)
	return d + free.Sub(now), true
}

// after calls f after what it is held back, and by the end of the test at the latest.
func (r *Relay) after(toServer bool, f func()) {
	d, passes := r.wait(toServer)
	if !passes {
		return
	}
	if d == 0 {
		f()
		return
	}
	r.held.Go(func() {
		select {
		case <-time.After(d):
		case <-r.ended:
		}
		f()
	})
}

// Cut loses everything; Restore undoes it.
func (r *Relay) Cut()     { r.cut.Store(true) }
func (r *Relay) Restore() { r.cut.Store(false) }

// Largest is the longest datagram seen, in bytes of UDP payload.
func (r *Relay) Largest() int { return int(r.largest.Load()) }

// Passed counts the datagrams relayed.
func (r *Relay) Passed() int { return int(r.passed.Load()) }

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
	largest atomic.Int64
	passed  atomic.Int64

	held  sync.WaitGroup // datagrams
	ended chan struct{}

	mu   sync.Mutex // of what follows
	loss float64
	rnd  *rand.Rand
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
			if r.passes(n) {
				datagram := bytes.Clone(b[:n])
				r.after(func() { _, _ = back.Write(datagram) }) // a refusal is the server's affair
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
		if r.passes(n) {
			datagram := bytes.Clone(b[:n])
			r.after(func() { _, _ = front.WriteTo(datagram, client) })
		}
	}
}

func (r *Relay) passes(n int) bool {
	if int64(n) > r.largest.Load() {
		r.largest.Store(int64(n))
	}
	r.mu.Lock()
	lost := r.rnd.Float64() < r.loss
	r.mu.Unlock()
	if lost || r.cut.Load() {
		return false
	}
	r.passed.Add(1)
	return true
}

// SetDelay holds every datagram back from now on, in both directions.
func (r *Relay) SetDelay(d time.Duration) { r.delay.Store(d.Nanoseconds()) }

// after calls f after the delay, and by the end of the test at the latest.
func (r *Relay) after(f func()) {
	d := time.Duration(r.delay.Load())
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

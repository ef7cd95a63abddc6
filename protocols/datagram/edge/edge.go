// Package edge runs a pure transport over a UDP socket: it hands the core packets and
// the time, waits for the core's deadlines, and sends what the core has built, in
// batches.
package edge

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/datagram"
)

// Bounds of the sockets.
const (
	// SocketBuffer is the room in bytes that is asked for in either direction of a socket.
	SocketBuffer = 4 << 20
	// PacketRoom is the longest packet in bytes, headers of IP and UDP not counted.
	PacketRoom = 9216

	batchSize = 64
)

// Core is what an edge runs: the connections over one socket. All its methods are
// called with the edge's lock held.
type Core interface {
	// Receive takes a packet, whose data is valid only now.
	Receive(now time.Duration, p datagram.Packet)
	// Refused takes a report that nobody has the other end's port, which is empty on a
	// connected socket. It is not authenticated.
	Refused(now time.Duration, by netip.AddrPort)
	// Unreachable takes an error of a packet that could not leave this node.
	Unreachable(err error)
	// TooLarge takes a packet that is too large for the path.
	TooLarge(p datagram.Packet)
	// Tick does what is due.
	Tick(now time.Duration)
	// Flush queues what there is to send ([Edge.Room], [Edge.Queue]), and returns
	// when Tick is to be called next; 0: never.
	Flush(now time.Duration) (deadline time.Duration)
}

// Edge is a socket and the core that runs over it. One goroutine reads packets, one
// waits for deadlines; both, and the application's calls, hold the lock while they
// touch the core.
type Edge struct {
	sync.Mutex
	core     Core
	socket   *datagram.Socket
	began    time.Time
	ended    bool
	wake     chan struct{} // the deadline has changed
	done     chan struct{}
	work     sync.WaitGroup
	deadline time.Duration
	out      []datagram.Packet
	room     [][]byte
}

// New returns an edge that is not running yet.
func New(s *datagram.Socket, c Core) *Edge {
	e := &Edge{core: c, socket: s, began: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	for range batchSize {
		e.room = append(e.room, make([]byte, PacketRoom))
	}
	return e
}

// Now is the core's time; a second is added so that no moment is 0.
func (e *Edge) Now() time.Duration { return time.Since(e.began) + time.Second }

// Start settles once, and runs the edge until it is stopped.
func (e *Edge) Start() {
	e.Lock()
	defer e.Unlock()
	e.Settle(e.Now())
	s := e.socket
	e.work.Go(func() { e.read(s) })
	e.work.Go(e.time)
}

// Done is closed when the edge has been stopped.
func (e *Edge) Done() <-chan struct{} { return e.done }

// Local is the socket's address; the lock is held, or the socket is never replaced.
func (e *Edge) Local() netip.AddrPort { return e.socket.Local() }

// Replace goes on over another socket and closes the one before; false: the edge has
// been stopped, and s is closed. The lock is held.
func (e *Edge) Replace(s *datagram.Socket) bool {
	if e.ended {
		_ = s.Close()
		return false
	}
	old := e.socket
	e.socket = s
	_ = old.Close()
	e.work.Go(func() { e.read(s) })
	return true
}

// Stop closes the socket; the lock is held.
func (e *Edge) Stop() {
	if e.ended {
		return
	}
	e.ended = true
	close(e.done)
	_ = e.socket.Close()
}

// Wait returns when the goroutines of a stopped edge have ended.
func (e *Edge) Wait() { e.work.Wait() }

// read takes in packets until the socket is closed.
func (e *Edge) read(s *datagram.Socket) {
	batch := make([]datagram.Packet, batchSize)
	space := make([]byte, batchSize*PacketRoom)
	for {
		for i := range batch {
			batch[i] = datagram.Packet{Data: space[i*PacketRoom : (i+1)*PacketRoom]}
		}
		n, err := s.Read(batch)
		e.Lock()
		if e.socket != s || e.ended || errors.Is(err, net.ErrClosed) {
			e.Unlock()
			return
		}
		now := e.Now()
		if err != nil {
			e.refused(now, err)
		}
		for _, p := range batch[:n] {
			e.core.Receive(now, p)
		}
		e.Settle(now)
		e.Unlock()
	}
}

// Settle lets the core send, and waits for its next deadline. The lock is held.
func (e *Edge) Settle(now time.Duration) {
	deadline := e.core.Flush(now)
	if e.Send() { // what the core was told may have ended something
		deadline = e.core.Flush(now)
		e.Send()
	}
	if deadline != e.deadline {
		e.deadline = deadline
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// Room is where the next packet is built.
func (e *Edge) Room() []byte { return e.room[len(e.out)] }

// Queue takes the packet p, which is in [Edge.Room] or stays as it is until it is
// sent, and reports whether the batch was full and has been sent.
func (e *Edge) Queue(p datagram.Packet) (sent bool) {
	e.out = append(e.out, p)
	if len(e.out) < batchSize {
		return false
	}
	e.Send()
	return true
}

// Send writes the queued packets. What the system refuses is lost, as on any path;
// the core learns of a packet that is too large for it, or that nobody takes, and told
// reports that it did.
func (e *Edge) Send() (told bool) {
	for rest := e.out; len(rest) > 0; {
		n, err := e.socket.Write(rest)
		if err == nil {
			break
		}
		var large *datagram.SizeError
		told = true
		if errors.As(err, &large) {
			for _, i := range large.Refused {
				e.core.TooLarge(rest[i])
			}
			break
		}
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			e.refused(e.Now(), err)
			if !e.socket.Connected() {
				n-- // the error is of an earlier packet, this one has not been sent
			}
		case errors.Is(err, net.ErrClosed):
			n = len(rest)
		case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
			e.core.Unreachable(err)
		}
		rest = rest[min(n+1, len(rest)):]
	}
	e.out = e.out[:0]
	return told
}

// refused tells the core of reports that nobody has a port.
func (e *Edge) refused(now time.Duration, err error) {
	if e.socket.Connected() {
		if errors.Is(err, syscall.ECONNREFUSED) {
			e.core.Refused(now, netip.AddrPort{})
		}
		return
	}
	for _, by := range e.socket.Refusals() {
		e.core.Refused(now, by)
	}
}

// time waits for deadlines.
func (e *Edge) time() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e.Lock()
		deadline := e.deadline
		wait := deadline - e.Now()
		e.Unlock()
		var due <-chan time.Time
		if deadline > 0 {
			timer.Reset(max(wait, 0))
			due = timer.C
		}
		select {
		case <-e.done:
			return
		case <-e.wake:
		case <-due:
			e.Lock()
			now := e.Now()
			e.core.Tick(now)
			e.Settle(now)
			e.Unlock()
		}
	}
}

// Signal wakes those who wait for a change of what an edge's lock guards.
type Signal struct {
	changed chan struct{} // nil: nobody waits
}

// Tell wakes everyone; the lock is held.
func (s *Signal) Tell() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Await waits until ready says so, or fails, until ctx ends, and at most to the
// deadline, which may move; the zero value is none. ready and deadline are called
// with the lock held, after each change.
func (e *Edge) Await(ctx context.Context, s *Signal, deadline func() time.Time, ready func() (bool, error)) error {
	var timer *time.Timer
	for {
		e.Lock()
		ok, err := ready()
		if !ok && err == nil && s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed, until := s.changed, deadline()
		e.Unlock()
		if ok || err != nil {
			return err
		}
		var late <-chan time.Time
		if !until.IsZero() {
			if timer == nil {
				timer = time.NewTimer(time.Until(until))
				defer timer.Stop()
			} else {
				timer.Reset(time.Until(until))
			}
			late = timer.C
		}
		select {
		case <-changed:
		case <-late:
			return os.ErrDeadlineExceeded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// How much a connection that is open believes of reports that nobody listens at its
// other end: so many, after so long a silence, and at least so many timeouts of its own.
const (
	refusals      = 3
	quietFor      = time.Second
	quietTimeouts = 4
)

// Port is what a connection knows of the port at its other end.
type Port struct {
	reports int
	heard   time.Duration
}

// Heard notes a packet from there.
func (p *Port) Heard(now time.Duration) { p.heard, p.reports = now, 0 }

// Refused takes a report that nobody listens there, and returns the error that ends
// the connection, or nil: a report is not authenticated, so a connection that is open
// and alive takes no notice of it. timeout is the time after which the connection takes
// an acknowledgement for overdue: on a slow path packets of an end that lives, and may
// have moved to another port, are under way for longer than a second.
func (p *Port) Refused(now time.Duration, open bool, timeout time.Duration) error {
	if !open {
		return syscall.ECONNREFUSED
	}
	p.reports++
	if p.reports >= refusals && now-p.heard > max(quietFor, quietTimeouts*timeout) {
		return syscall.ECONNRESET
	}
	return nil
}

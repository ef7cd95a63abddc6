package lttcp

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/datagram"
	"linktrial/protocols/lttcp/core"
)

// Figures of the sockets.
const (
	batchSize    = 64
	socketBuffer = 4 << 20
	packetRoom   = 9216
	refusals     = 3           // reports that the port is closed end a connection ...
	quietFor     = time.Second // ... that has heard nothing for so long
)

// endpoint is a socket and the connections over it: one of a client, any number
// of a listener. One goroutine reads packets, one waits for deadlines; both, and
// the application's calls, hold the lock while they touch a connection.
type endpoint struct {
	mu       sync.Mutex
	socket   *datagram.Socket
	options  Options
	began    time.Time
	client   *Conn
	listener *core.Listener
	conns    map[*core.Conn]*Conn
	ended    bool
	wake     chan struct{} // the deadline has changed
	done     chan struct{}
	work     sync.WaitGroup
	deadline time.Duration
	out      []datagram.Packet
	room     [][]byte
	refused  int
	accepted chan *Conn // a listener's, until Accept
}

func newEndpoint(s *datagram.Socket, o Options) *endpoint {
	e := &endpoint{socket: s, options: o, began: time.Now(), conns: map[*core.Conn]*Conn{},
		wake: make(chan struct{}, 1), done: make(chan struct{})}
	for range batchSize {
		e.room = append(e.room, make([]byte, packetRoom))
	}
	return e
}

// now is the core's time; a second is added so that no moment is 0.
func (e *endpoint) now() time.Duration { return time.Since(e.began) + time.Second }

func (e *endpoint) start() {
	e.work.Go(e.read)
	e.work.Go(e.time)
}

// read takes in packets until the socket is closed.
func (e *endpoint) read() {
	batch := make([]datagram.Packet, batchSize)
	space := make([]byte, batchSize*packetRoom)
	for {
		for i := range batch {
			batch[i] = datagram.Packet{Data: space[i*packetRoom : (i+1)*packetRoom]}
		}
		n, err := e.socket.Read(batch)
		e.mu.Lock()
		if e.ended || errors.Is(err, net.ErrClosed) {
			e.mu.Unlock()
			return
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			e.portClosed()
		}
		now := e.now()
		for _, p := range batch[:n] {
			e.receive(now, p)
		}
		e.settle(now)
		e.mu.Unlock()
	}
}

// portClosed notes that the other end's node says that nobody listens there. It
// is not authenticated, so a connection that is alive takes no notice.
func (e *endpoint) portClosed() {
	c := e.client
	if c == nil {
		return
	}
	over, _ := c.core.Closed()
	switch {
	case over:
	case !c.core.Open():
		c.fail(syscall.ECONNREFUSED)
	default:
		e.refused++
		if e.refused >= refusals && e.now()-c.heard > quietFor {
			c.core.Abort()
			c.fail(syscall.ECONNRESET)
		}
	}
}

func (e *endpoint) receive(now time.Duration, p datagram.Packet) {
	if e.client != nil {
		e.client.core.Receive(now, p.Data, p.ECN)
		e.client.heard, e.refused = now, 0
		e.client.touched = true
		return
	}
	k, fresh := e.listener.Receive(now, p.Data, p.Addr, p.ECN)
	if k == nil {
		return
	}
	c := e.conns[k]
	if c == nil {
		c = &Conn{end: e, core: k, remote: p.Addr, heard: now}
		e.conns[k] = c
	}
	c.touched = true
	if fresh {
		select {
		case e.accepted <- c:
		default: // too many wait already
			k.Abort()
		}
	}
}

// settle sends what connections have to send, tells applications what has
// changed, and sets the deadline.
func (e *endpoint) settle(now time.Duration) {
	deadline := time.Duration(0)
	earlier := func(at time.Duration) {
		if at > 0 && (deadline == 0 || at < deadline) {
			deadline = at
		}
	}
	each := func(c *Conn) {
		if c.touched {
			c.touched = false
			e.flush(now, c)
			c.tell()
		}
		if at, ok := c.core.Deadline(); ok {
			earlier(at)
		}
	}
	if e.client != nil {
		each(e.client)
	} else {
		for _, c := range e.conns {
			each(c)
		}
		earlier(e.sweep(now))
	}
	if deadline != e.deadline {
		e.deadline = deadline
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// sweep forgets connections that the listener has forgotten.
func (e *endpoint) sweep(now time.Duration) (next time.Duration) {
	next = e.listener.Sweep(now)
	if len(e.conns) == e.listener.Len() {
		return next
	}
	known := map[*core.Conn]bool{}
	e.listener.Each(func(k *core.Conn) { known[k] = true })
	for k, c := range e.conns {
		if !known[k] {
			delete(e.conns, k)
			c.tell()
		}
	}
	return next
}

// flush sends what a connection has to send now.
func (e *endpoint) flush(now time.Duration, c *Conn) {
	for {
		p, ecn := c.core.Transmit(now, e.room[len(e.out)])
		if p == nil {
			break
		}
		d := datagram.Packet{Data: p, ECN: ecn}
		if e.client == nil {
			d.Addr = c.remote
		}
		if e.options.NoECN {
			d.ECN = 0
		}
		e.out = append(e.out, d)
		if len(e.out) == batchSize {
			e.send()
			now = e.now()
		}
	}
	e.send()
}

// send writes the queued packets. What the system refuses is lost, as on any path.
func (e *endpoint) send() {
	for rest := e.out; len(rest) > 0; {
		n, err := e.socket.Write(rest)
		if err == nil {
			break
		}
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			e.portClosed()
		case errors.Is(err, net.ErrClosed):
			n = len(rest)
		case e.client != nil && !e.client.core.Open() && unreachable(err):
			e.client.fail(err)
		}
		rest = rest[min(n+1, len(rest)):]
	}
	e.out = e.out[:0]
}

func unreachable(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETDOWN)
}

// time waits for deadlines.
func (e *endpoint) time() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e.mu.Lock()
		deadline := e.deadline
		wait := deadline - e.now()
		e.mu.Unlock()
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
			e.mu.Lock()
			now := e.now()
			e.tick(now)
			e.settle(now)
			e.mu.Unlock()
		}
	}
}

func (e *endpoint) tick(now time.Duration) {
	each := func(c *Conn) {
		if at, ok := c.core.Deadline(); ok && at <= now {
			c.core.Tick(now)
			c.touched = true
		}
	}
	if e.client != nil {
		each(e.client)
	}
	for _, c := range e.conns {
		each(c)
	}
}

// stop closes the socket; the lock is held.
func (e *endpoint) stop() {
	if e.ended {
		return
	}
	e.ended = true
	close(e.done)
	_ = e.socket.Close()
}

package haul

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/datagram"
	"linktrial/protocols/haul/core"
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
	closing  bool // no new connections
	ended    bool
	wake     chan struct{} // the deadline has changed
	done     chan struct{}
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

func (e *endpoint) now() time.Duration { return time.Since(e.began) + time.Second }

func (e *endpoint) start() {
	go e.read(e.socket)
	go e.time()
}

// read takes in packets until the socket is closed.
func (e *endpoint) read(s *datagram.Socket) {
	batch := make([]datagram.Packet, batchSize)
	space := make([]byte, batchSize*packetRoom)
	reply := make([]byte, packetRoom)
	for {
		for i := range batch {
			batch[i] = datagram.Packet{Data: space[i*packetRoom : (i+1)*packetRoom]}
		}
		n, err := s.Read(batch)
		e.mu.Lock()
		if e.socket != s || e.ended {
			e.mu.Unlock()
			return
		}
		if err != nil && !e.readFailed(err) {
			e.mu.Unlock()
			return
		}
		now := e.now()
		for _, p := range batch[:n] {
			e.receive(now, p, reply)
		}
		e.settle(now)
		e.mu.Unlock()
	}
}

// readFailed acts on an error of the socket, and reports whether reading goes on.
func (e *endpoint) readFailed(err error) bool {
	switch {
	case errors.Is(err, net.ErrClosed):
		return false
	case errors.Is(err, syscall.ECONNREFUSED) && e.client != nil:
		e.portClosed()
	}
	return true
}

// portClosed notes that the other end's node says that nobody listens there. It
// is not authenticated, so a connection that is alive takes no notice.
func (e *endpoint) portClosed() {
	c := e.client
	if over, _ := c.core.Closed(); over {
		return
	}
	if !c.core.Open() {
		c.fail(syscall.ECONNREFUSED)
		return
	}
	e.refused++
	if e.refused >= refusals && e.now()-c.heard > quietFor {
		c.core.Abort("the port is closed")
		c.fail(syscall.ECONNRESET)
	}
}

func (e *endpoint) receive(now time.Duration, p datagram.Packet, reply []byte) {
	if e.client != nil {
		e.client.core.Receive(now, p.Data, p.Addr, p.ECN)
		e.client.heard, e.refused = now, 0
		e.client.touched = true
		return
	}
	k, fresh, r := e.listener.Receive(now, p.Data, p.Addr, p.ECN, reply)
	if r != nil {
		e.queue(r, p.Addr)
		e.send()
	}
	if k == nil {
		return
	}
	if fresh {
		if e.closing || !e.admit(k) {
			k.Abort("not accepted")
			return
		}
	}
	if c := e.conns[k]; c != nil {
		c.touched = true
	}
}

// settle sends what connections have to send, tells applications what has
// changed, and sets the deadline.
func (e *endpoint) settle(now time.Duration) {
	deadline := time.Duration(0)
	each := func(c *Conn) {
		if c.touched {
			c.touched = false
			e.flush(now, c)
			c.tell()
		}
		if at, ok := c.core.Deadline(); ok && (deadline == 0 || at < deadline) {
			deadline = at
		}
	}
	if e.client != nil {
		each(e.client)
	} else {
		for k, c := range e.conns {
			each(c)
			if over, _ := k.Closed(); over && c.told {
				delete(e.conns, k)
			}
		}
		if at := e.listener.Sweep(now); at > 0 && (deadline == 0 || at < deadline) {
			deadline = at
		}
	}
	if deadline != e.deadline {
		e.deadline = deadline
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// flush sends what a connection has to send now.
func (e *endpoint) flush(now time.Duration, c *Conn) {
	for {
		n, to := c.core.Transmit(now, e.room[len(e.out)])
		if n == 0 {
			break
		}
		e.queue(e.room[len(e.out)][:n], to)
		if len(e.out) == batchSize {
			e.send()
			now = e.now()
		}
	}
	e.send()
}

func (e *endpoint) queue(b []byte, to netip.AddrPort) {
	p := datagram.Packet{Data: b}
	if e.client == nil {
		p.Addr = to
	}
	if !e.options.NoECN {
		p.ECN = 2 // ECT(0), RFC 3168
	}
	e.out = append(e.out, p)
}

// send writes the queued packets. What the system refuses is lost, as on any
// path; but a packet that is too large for the path is not sent again as it is.
func (e *endpoint) send() {
	for rest := e.out; len(rest) > 0; {
		n, err := e.socket.Write(rest)
		if err == nil {
			break
		}
		var large *datagram.SizeError
		if errors.As(err, &large) {
			for _, i := range large.Refused {
				e.tooLarge(rest[i])
			}
			break
		}
		switch {
		case errors.Is(err, syscall.ECONNREFUSED) && e.client != nil:
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

func (e *endpoint) tooLarge(p datagram.Packet) {
	if e.client != nil {
		e.client.core.TooLarge(len(p.Data))
		return
	}
	for k := range e.conns {
		if k.Remote() == p.Addr {
			k.TooLarge(len(p.Data))
		}
	}
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

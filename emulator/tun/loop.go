package tun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const (
	// readBatch is how many packets are read from a device before the others
	// and the packets that are due get their turn.
	readBatch = 64
)

// Tokens of epoll events beside the indices of the nodes.
const (
	tokenTimer = 1<<31 - 1 - iota
	tokenWake
	tokenClient
)

// loop is the one thread between all devices. Everything but pending is its
// own; others reach it through do and post.
type loop struct {
	ep, timer, wake int
	fds             []int
	addresses       []uint32 // of the nodes, in network order read as big-endian

	// Time: start is when the loop was made; the trial's clock is what has
	// passed since origin, which is counted from start.
	start          time.Time
	startMonotonic int64
	origin         time.Duration
	armed          time.Duration // trial time that the timer is set to
	isArmed        bool

	radios    []side // the network, and that of the second radios where the nodes have one
	network   *radio.Network
	sideOf    []int // which of radios, by index of device
	pool      pool
	waits     uint64   // so far
	readIn    []uint64 // after which of them a device had packets; 0: it was emptied
	shared    *sharing // nil: the loop has a thread of its own
	stoppable bool     // the process may be stopped

	ending      bool
	unroutable  int64
	oversized   int64
	overrun     int64 // packets dropped because the pool was at its limit
	writeErrors int64
	late        lateness
	pulse       pulse                 // of the trial under way
	overdue     overdue               // the same
	traffic     *traffic              // the same; nil: it is not counted
	dropped     map[radio.Role]uint64 // by queues of networks that were replaced

	mu       sync.Mutex
	pending  []func(*loop)
	finished bool
	closed   sync.Once
}

func newLoop(n *radio.Network, nodes []node, devices []*device) (*loop, error) {
	l := &loop{ep: -1, timer: -1, wake: -1, waits: 1, start: time.Now()}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	l.startMonotonic = ts.Nano()
	for i, d := range devices {
		a := nodes[i].address.As4()
		l.addresses = append(l.addresses, binary.BigEndian.Uint32(a[:]))
		l.fds = append(l.fds, d.fd)
		l.readIn = append(l.readIn, 0)
		if nodes[i].second {
			l.sideOf = append(l.sideOf, 1)
		} else {
			l.sideOf = append(l.sideOf, 0)
		}
	}
	model, err := l.prepare(n, nodes, 0)
	if err != nil {
		return nil, err
	}
	l.install(model)
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	add := func(fd, token int, events uint32) {
		if e := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(token)}); e != nil {
			err = errors.Join(err, fmt.Errorf("epoll: %w", e))
		}
	}
	// Edge-triggered, the timer and the eventfd need no reading.
	add(l.timer, tokenTimer, unix.EPOLLIN|unix.EPOLLET)
	add(l.wake, tokenWake, unix.EPOLLIN|unix.EPOLLET)
	for i, fd := range l.fds {
		add(fd, i, unix.EPOLLIN)
	}
	return l, err
}

// side is one radio network as the loop carries its packets.
type side struct {
	net    *link.Network
	mtu    int
	nodeOf []int // node of the network by index of device, -1: not in it
	device []int // and back
}

// model is a network with its seed, ready to be put in place of another.
type model struct {
	radios  []side
	network *radio.Network
}

// secondSeed is the seed of the second radios' realisation in a trial of that seed:
// another one, so that the two do not fade together.
func secondSeed(seed uint64) uint64 { return seed*0x9e3779b97f4a7c15 + 1 }

// prepare builds a model; it may run on any goroutine.
func (l *loop) prepare(n *radio.Network, nodes []node, seed uint64) (*model, error) {
	first, err := newSide(n, nodes, seed, false)
	if err != nil {
		return nil, err
	}
	m := &model{radios: []side{first}, network: n}
	if n.Second != nil {
		second, err := newSide(n.Second, nodes, secondSeed(seed), true)
		if err != nil {
			return nil, fmt.Errorf("second radios: %w", err)
		}
		m.radios = append(m.radios, second)
	}
	return m, nil
}

func newSide(n *radio.Network, nodes []node, seed uint64, second bool) (side, error) {
	net, err := link.New(n, seed)
	if err != nil {
		return side{}, err
	}
	s := side{net: net, mtu: n.MTUBytes, device: make([]int, len(n.Nodes))}
	for i := range nodes {
		at := -1
		if nodes[i].second == second {
			at = net.Node(nodes[i].role)
		}
		s.nodeOf = append(s.nodeOf, at)
		if at >= 0 {
			s.device[at] = i
		}
	}
	return s, nil
}

// hops are the counters of all radios.
func (m *model) hops() []radiocontrol.Hop { return hopsOf(m.radios) }

func hopsOf(radios []side) []radiocontrol.Hop {
	var out []radiocontrol.Hop
	for i := range radios {
		hops := radios[i].net.Hops()
		for j := range hops {
			hops[j].Second = i > 0
		}
		out = append(out, hops...)
	}
	return out
}

// install replaces the network: queues are empty, and its clock starts now.
func (l *loop) install(m *model) {
	l.keepDropped()
	l.radios, l.network = m.radios, m.network
	mtu := 0
	for i := range l.radios {
		mtu = max(mtu, l.radios[i].mtu)
	}
	l.pool.reset(mtu)
	l.origin = time.Since(l.start)
	l.isArmed = false
}

func (l *loop) now() time.Duration { return time.Since(l.start) - l.origin }

// run carries packets until it is stopped or a device has disappeared.
func (l *loop) run() error {
	if l.shared == nil {
		runtime.LockOSThread() // for good: the thread ends with its priority
		// Due packets come before whatever else the machine computes. Where that is
		// not allowed the loop is only later, and says so in its status.
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
	}
	defer l.finish()
	events := make([]unix.EpollEvent, len(l.fds)+3)
	for {
		n, errno := l.wait(events)
		l.waits++
		l.pulse.look(time.Since(l.start))
		if errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("emulator: wait for packets: %w", errno)
		}
		commands := false
		for _, e := range events[:max(0, n)] {
			switch e.Fd {
			case tokenTimer:
				l.isArmed = false
			case tokenWake:
				commands = true
			case tokenClient:
				l.shared.park = true
			default:
				if e.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
					return fmt.Errorf("emulator: the device with address %s is gone", l.dotted(int(e.Fd)))
				}
				l.read(int(e.Fd))
			}
		}
		l.release()
		if commands {
			l.runPending()
			if l.ending {
				return nil
			}
		}
	}
}

// read takes packets from a device into the network. On a slow radio they come
// one by one, and a read that finds none costs as much as one that does, so
// that is left to the next wait. Where that finds the device at once, it is
// read until it is empty.
func (l *loop) read(device int) {
	now := l.now()
	if l.sideOf[device] >= len(l.radios) {
		l.discard(device)
		return
	}
	s := &l.radios[l.sideOf[device]]
	from := s.nodeOf[device]
	batch := 1
	if l.readIn[device] == l.waits-1 {
		batch = readBatch
	}
	l.readIn[device] = l.waits
	for range batch {
		h, ok := l.pool.get()
		b := l.pool.at(h)
		n, errno := rawRead(l.fds[device], b)
		if errno != 0 || n <= 0 {
			l.pool.put(h)
			l.readIn[device] = 0
			return
		}
		switch {
		case b[0]>>4 != 4 || n < 20: // IPv6 is turned off and not measured
		case n > s.mtu:
			l.oversized++
		case !ok:
			l.overrun++
		default:
			to := l.find(s, binary.BigEndian.Uint32(b[16:]))
			if from < 0 || to < 0 || to == from || !s.net.Routable(from, to) {
				l.unroutable++
				break
			}
			if l.traffic != nil {
				l.traffic.enter(h, device, s.device[to], b[:n])
			}
			if s.net.Enter(now, from, to, n, h, capable(b)) {
				continue // the network has the buffer now
			}
		}
		l.pool.put(h)
	}
}

// discard reads a packet from the device of a second radio that the network does not
// have.
func (l *loop) discard(device int) {
	h, _ := l.pool.get()
	if n, errno := rawRead(l.fds[device], l.pool.at(h)); errno == 0 && n > 0 {
		l.unroutable++
	}
	l.pool.put(h)
}

// find is the network's node with an address, or -1.
func (l *loop) find(s *side, address uint32) int {
	for i, a := range l.addresses {
		if a == address {
			return s.nodeOf[i]
		}
	}
	return -1
}

// release gives out what is due.
func (l *loop) release() {
	now := l.now()
	late := time.Duration(0) // of the packet that was due first
	for i := range l.radios {
		s := &l.radios[i]
		for _, e := range s.net.Advance(now) {
			if e.Outcome == link.Delivered {
				b := l.pool.at(e.Handle)[:e.Bytes]
				if e.Marked {
					markCongestion(b)
				}
				if errno := rawWrite(l.fds[s.device[e.Node]], b); errno != 0 {
					l.writeErrors++ // the device is down; the packet is lost behind the radio
				}
				l.late.add(now - e.At)
				late = max(late, now-e.At)
			}
			if !e.Copy {
				l.pool.put(e.Handle)
			}
		}
	}
	l.overdue.add(late)
}

// nextExit bounds the time of the next packet to come out from below; false where
// there is none.
func (l *loop) nextExit() (next time.Duration, ok bool) {
	for i := range l.radios {
		if at, is := l.radios[i].net.NextExit(); is && (!ok || at < next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// inside counts the packets in the radios.
func (l *loop) inside() int {
	n := 0
	for i := range l.radios {
		n += l.radios[i].net.Inside()
	}
	return n
}

func (l *loop) dotted(device int) string {
	a := l.addresses[device]
	return fmt.Sprintf("%d.%d.%d.%d", byte(a>>24), byte(a>>16), byte(a>>8), byte(a))
}

// post has f run on the loop's thread, or with nil if the loop ends before;
// false when it has ended already.
func (l *loop) post(f func(*loop)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished {
		return false
	}
	l.pending = append(l.pending, f)
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(l.wake, one[:]) // a full counter wakes the loop as well
	return true
}

// do is post, and waits until f has run.
func (l *loop) do(f func(*loop)) bool {
	done := make(chan bool, 1)
	if !l.post(func(l *loop) {
		if l == nil {
			done <- false
			return
		}
		f(l)
		done <- true
	}) {
		return false
	}
	return <-done
}

func (l *loop) runPending() {
	l.mu.Lock()
	todo := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, f := range todo {
		f(l)
	}
}

// finish answers the requests that wait for a loop that has ended.
func (l *loop) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
	for _, f := range l.pending {
		f(nil)
	}
	l.pending = nil
}

func (l *loop) close() {
	l.closed.Do(func() {
		if l.shared != nil {
			_ = l.shared.file.Close()
		}
		for _, fd := range []int{l.ep, l.timer, l.wake} {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
	})
}

// observe counts what passes the radios, and writes it into a packet log; nil: neither.
func (l *loop) observe(t *traffic, c *capture) {
	l.traffic = t
	before := 0 // hops of the radios before
	for i := range l.radios {
		net := l.radios[i].net
		first := before
		before += len(net.Hops())
		switch {
		case t == nil && c == nil:
			net.Observe(nil)
		case c == nil:
			net.Observe(func(e link.Event) {
				e.Hop += first
				t.add(&e)
			})
		default:
			net.Observe(func(e link.Event) {
				e.Hop += first
				if t != nil {
					t.add(&e)
				}
				c.add(e, l.pool.at(e.Handle)[:e.Bytes])
			})
		}
	}
}

package protocoltest

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// conditions are what a wire does to the packets of one direction. Zero lets
// everything pass at once.
type conditions struct {
	// Cut drops everything.
	Cut bool
	// BitsPerSecond is the rate, 0: as fast as it goes. Backlog is how many bytes
	// wait for it before packets are dropped; 0: 64 KiB.
	BitsPerSecond int64
	Backlog       int
	// Delay of every packet.
	Delay time.Duration
	// Loss, Duplicate and Reorder are shares of the packets (0 to 1). At least
	// every lossRun-th packet is lost where Loss is not 0. A reordered packet is
	// delayed by another reorderDelay.
	Loss, Duplicate, Reorder float64
	// Hold reports whether a packet is to be held back until release is called:
	// flow and packet count from 0.
	Hold func(flow, packet int) bool
}

const (
	lossRun      = 25
	reorderDelay = 60 * time.Millisecond
	// maxHeld bounds what is held back of one direction, in packets.
	maxHeld        = 4096
	defaultBacklog = 64 << 10
	maxPacket      = 1 << 16
)

// traffic is what came to one lane of the wire from its sender.
type traffic struct {
	Packets, Bytes int64
	Delivered      int64                // packets that the other end got
	Flows          int                  // pairs of ports
	Sources        map[netip.Addr]int64 // packets by address
}

// lane carries packets from one TUN device to another.
type lane struct {
	from, to int // descriptors, not blocking
	wake     int // an eventfd: conditions have changed
	done     chan struct{}

	mu     sync.Mutex
	closed bool
	c      conditions
	seen   traffic
	counts map[uint64]*flow
	held   [][]byte
	queue  deliveries
	order  int64
	free   time.Time // when the last packet has left at the rate
	run    int       // packets since the last one that was lost
	rng    *rand.Rand
	// empty is closed, and replaced, whenever the sender's device has nothing more.
	empty chan struct{}
}

type flow struct{ number, packets int }

// delivery is a packet on its way.
type delivery struct {
	due    time.Time
	order  int64
	packet []byte
}

type deliveries []delivery

func (q deliveries) Len() int { return len(q) }
func (q deliveries) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].order < q[j].order
	}
	return q[i].due.Before(q[j].due)
}
func (q deliveries) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *deliveries) Push(x any)   { *q = append(*q, x.(delivery)) }
func (q *deliveries) Pop() any {
	old := *q
	x := old[len(old)-1]
	old[len(old)-1] = delivery{}
	*q = old[:len(old)-1]
	return x
}

func newLane(from, to int, seed uint64) (*lane, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &lane{
		from: from, to: to, wake: fd, done: make(chan struct{}), empty: make(chan struct{}),
		counts: map[uint64]*flow{}, seen: traffic{Sources: map[netip.Addr]int64{}}, rng: rand.New(rand.NewPCG(seed, 1)),
	}, nil
}

// change sets what happens to packets from now on; those on their way arrive.
func (d *lane) change(c conditions) {
	d.mu.Lock()
	d.c = c
	d.mu.Unlock()
	d.nudge()
}

// release delivers what was held back, and holds nothing any more.
func (d *lane) release() {
	d.mu.Lock()
	d.c.Hold = nil
	now := time.Now()
	for _, p := range d.held {
		d.push(p, now)
	}
	d.held = nil
	d.mu.Unlock()
	d.nudge()
}

// far returns what came so far.
func (d *lane) far() traffic {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.seen
	t.Sources = make(map[netip.Addr]int64, len(d.seen.Sources))
	for a, n := range d.seen.Sources {
		t.Sources[a] = n
	}
	return t
}

// drain waits until everything that the sender had handed to its device before
// this call has been read and counted.
func (d *lane) drain(ctx context.Context) error {
	for range 2 { // the first may have been found empty before
		d.mu.Lock()
		empty := d.empty
		d.mu.Unlock()
		d.nudge()
		select {
		case <-empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (d *lane) nudge() {
	one := make([]byte, 8)
	binary.NativeEndian.PutUint64(one, 1)
	_, _ = unix.Write(d.wake, one)
}

func (d *lane) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.nudge()
	<-d.done
	_ = unix.Close(d.wake)
}

// carry moves packets until close is called.
func (d *lane) carry() {
	defer close(d.done)
	b := make([]byte, maxPacket)
	for {
		if _, over := d.deliver(); over {
			return
		}
		empty, err := d.read(b)
		if err != nil {
			return // its device is gone
		}
		if !empty {
			continue
		}
		next, over := d.deliver()
		if over {
			return
		}
		d.sleep(next)
	}
}

// readAtOnce is how many packets are read before it is looked at what is due.
const readAtOnce = 64

// read takes what the sender's device has, up to a bound; empty: it has no more.
func (d *lane) read(b []byte) (empty bool, err error) {
	for range readAtOnce {
		n, err := unix.Read(d.from, b)
		switch {
		case n > 0:
			d.take(append([]byte(nil), b[:n]...))
		case err == nil || errors.Is(err, unix.EAGAIN):
			d.foundEmpty()
			return true, nil
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EIO): // EIO: the device is down
			return false, err
		}
	}
	return false, nil
}

// sleep waits for a packet, a change, or the next packet that is due.
func (d *lane) sleep(next time.Time) {
	var t *unix.Timespec
	if !next.IsZero() {
		ts := unix.NsecToTimespec(max(0, time.Until(next)).Nanoseconds())
		t = &ts
	}
	fds := []unix.PollFd{{Fd: int32(d.from), Events: unix.POLLIN}, {Fd: int32(d.wake), Events: unix.POLLIN}}
	_, _ = unix.Ppoll(fds, t, nil)
	if fds[1].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(d.wake, count[:])
	}
}

func (d *lane) foundEmpty() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.empty)
	d.empty = make(chan struct{})
}

// deliver writes what is due, and returns when the next is.
func (d *lane) deliver() (next time.Time, over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return time.Time{}, true
	}
	now := time.Now()
	for len(d.queue) > 0 {
		if d.queue[0].due.After(now) {
			return d.queue[0].due, false
		}
		x := heap.Pop(&d.queue).(delivery)
		if _, err := unix.Write(d.to, x.packet); err == nil {
			d.seen.Delivered++
		}
	}
	return time.Time{}, false
}

// take decides on one packet of the sender.
func (d *lane) take(packet []byte) {
	src, ports, ok := headers(packet)
	if !ok {
		return // what the kernel says of itself: neighbours, groups
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.Packets++
	d.seen.Bytes += int64(len(packet))
	d.seen.Sources[src]++
	f := d.counts[ports]
	if f == nil {
		f = &flow{number: len(d.counts)}
		d.counts[ports] = f
		d.seen.Flows++
	}
	number := f.packets
	f.packets++
	now := time.Now()
	switch {
	case d.c.Cut:
	case d.c.Hold != nil && d.c.Hold(f.number, number):
		if len(d.held) < maxHeld {
			d.held = append(d.held, packet)
		}
	case d.lost():
	default:
		d.pass(packet, now)
	}
}

func (d *lane) lost() bool {
	if d.c.Loss == 0 {
		return false
	}
	if d.run++; d.run < lossRun && d.rng.Float64() >= d.c.Loss {
		return false
	}
	d.run = 0
	return true
}

// pass puts a packet on its way, at the rate and with the delay.
func (d *lane) pass(packet []byte, now time.Time) {
	due := now
	if d.c.BitsPerSecond > 0 {
		if d.free.Before(now) {
			d.free = now
		}
		backlog := d.c.Backlog
		if backlog == 0 {
			backlog = defaultBacklog
		}
		if waiting := d.free.Sub(now).Seconds() * float64(d.c.BitsPerSecond) / 8; waiting > float64(backlog) {
			return
		}
		d.free = d.free.Add(time.Duration(float64(len(packet)) * 8 / float64(d.c.BitsPerSecond) * 1e9))
		due = d.free
	}
	due = due.Add(d.c.Delay)
	if d.c.Reorder > 0 && d.rng.Float64() < d.c.Reorder {
		due = due.Add(reorderDelay)
	}
	d.push(packet, due)
	if d.c.Duplicate > 0 && d.rng.Float64() < d.c.Duplicate {
		d.push(packet, due)
	}
}

func (d *lane) push(packet []byte, due time.Time) {
	d.order++
	heap.Push(&d.queue, delivery{due, d.order, packet})
}

// headers reads source address and what tells flows apart of an IP packet; ok
// is false for one to a group, or one that is not IP.
func headers(b []byte) (src netip.Addr, flow uint64, ok bool) {
	if len(b) < 20 {
		return src, 0, false
	}
	var dst netip.Addr
	var protocol byte
	var rest []byte
	switch b[0] >> 4 {
	case 4:
		src, _ = netip.AddrFromSlice(b[12:16])
		dst, _ = netip.AddrFromSlice(b[16:20])
		protocol, rest = b[9], b[min(len(b), int(b[0]&15)*4):]
	case 6:
		if len(b) < 40 {
			return src, 0, false
		}
		src, _ = netip.AddrFromSlice(b[8:24])
		dst, _ = netip.AddrFromSlice(b[24:40])
		protocol, rest = b[6], b[40:]
	default:
		return src, 0, false
	}
	if dst.IsMulticast() || src.IsLinkLocalUnicast() {
		return src, 0, false
	}
	flow = uint64(protocol) << 32
	if (protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_UDP || protocol == unix.IPPROTO_SCTP) && len(rest) >= 4 {
		flow |= uint64(binary.BigEndian.Uint32(rest))
	}
	return src, flow, true
}

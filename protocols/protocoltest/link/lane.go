package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Lane carries the packets of one direction from one device to the other.
type Lane struct {
	link     *Link
	other    *Lane // of the other direction
	from, to int   // descriptors, not blocking
	wake     int   // an eventfd: conditions have changed
	done     chan struct{}

	// What follows is guarded by the link's lock.
	closed    bool
	c         Conditions
	mark      int64
	seen      Traffic
	flows     map[uint64]*flow
	held      [][]byte // in order
	heldBytes int
	queue     queue
	free      time.Time // when the last packet has left at the rate
	run       int       // packets since the last one that was lost by Loss
	rng       *rand.Rand
	// empty is closed, and replaced, whenever the sender's device has nothing more.
	empty chan struct{}
}

// flow is a pair of ports: which one it was to come, and its packets so far.
type flow struct{ number, packets int }

func newLane(l *Link, from, to int, seed uint64) (*Lane, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	d := &Lane{
		link: l, from: from, to: to, wake: fd, done: make(chan struct{}), empty: make(chan struct{}),
		rng: rand.New(rand.NewPCG(seed, 1)),
	}
	d.begin(0)
	return d, nil
}

// begin is [Link.Begin] for one lane.
func (d *Lane) begin(mark int64) {
	d.mark, d.seen, d.flows = mark, Traffic{Sources: map[netip.Addr]int64{}, DSCP: map[uint8]int64{}}, map[uint64]*flow{}
	d.held, d.heldBytes = nil, 0
}

// Change sets what happens to packets from now on; those on their way arrive, and
// those that are held stay so.
func (d *Lane) Change(c Conditions) {
	d.link.mu.Lock()
	defer d.link.mu.Unlock()
	d.c = c
}

// Release hands on what is held, in order, and holds no more. Nothing of it had
// been handed on at the moment that it returns.
func (d *Lane) Release() time.Time {
	d.link.mu.Lock()
	defer d.nudge()
	defer d.link.mu.Unlock()
	at := time.Now()
	for _, b := range d.held {
		h, _ := readHeader(b)
		d.seen.Passed += h.content
		d.queue.add(b, at)
	}
	d.c.Hold, d.held, d.heldBytes, d.seen.Held = nil, nil, 0, 0
	return at
}

// Traffic returns what came so far.
func (d *Lane) Traffic() Traffic {
	d.link.mu.Lock()
	defer d.link.mu.Unlock()
	return d.seen.clone()
}

// Drain waits until everything that the sender had handed to its device before
// this call has been read and counted.
func (d *Lane) Drain(ctx context.Context) error {
	for range 2 { // the first may have been found empty before
		d.link.mu.Lock()
		empty := d.empty
		d.link.mu.Unlock()
		d.nudge()
		select {
		case <-empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (d *Lane) nudge() {
	one := make([]byte, 8)
	binary.NativeEndian.PutUint64(one, 1)
	_, _ = unix.Write(d.wake, one)
}

func (d *Lane) close() {
	d.link.mu.Lock()
	d.closed = true
	d.link.mu.Unlock()
	d.nudge()
	<-d.done
	_ = unix.Close(d.wake)
}

// maxPacket is the size of the largest IP packet.
const maxPacket = 1 << 16

// carry moves packets until close is called.
func (d *Lane) carry() {
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
func (d *Lane) read(b []byte) (empty bool, err error) {
	for range readAtOnce {
		n, err := unix.Read(d.from, b)
		at := time.Now()
		switch {
		case n > 0:
			d.take(append([]byte(nil), b[:n]...), at)
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
func (d *Lane) sleep(next time.Time) {
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

func (d *Lane) foundEmpty() {
	d.link.mu.Lock()
	defer d.link.mu.Unlock()
	close(d.empty)
	d.empty = make(chan struct{})
}

// deliver writes what is due, and returns when the next is.
func (d *Lane) deliver() (next time.Time, over bool) {
	d.link.mu.Lock()
	defer d.link.mu.Unlock()
	if d.closed {
		return time.Time{}, true
	}
	now := time.Now()
	for {
		next := d.queue.next()
		if next.IsZero() || next.After(now) {
			return next, false
		}
		packet := d.queue.take()
		d.seen.hands(&d.other.seen)
		// One that the other end does not take is lost, as on every link.
		if _, err := unix.Write(d.to, packet); err == nil {
			d.seen.Delivered++
		}
	}
}

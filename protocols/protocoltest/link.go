package protocoltest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/notify"
	"linktrial/internal/process"
)

// direction of a packet on the link.
type direction int

const (
	toServer direction = iota
	toClient
)

// maxHeldBytes bounds what a link keeps of a protocol that goes on sending
// while it is held; what comes after that is lost.
const maxHeldBytes = 64 * mib

// packetLink carries the packets between the two namespaces in this process,
// over a TUN device in each, so that the suite sees every packet, knows the
// moments, and can hold packets back. That makes bounds of a driver's times that
// hold whatever else the machine does: a byte that the link has not passed on
// cannot have been answered.
type packetLink struct {
	ends    [2]*os.File // the client's device and the server's
	readers sync.WaitGroup

	mu      sync.Mutex
	changed notify.Notifier
	passage
}

// passage is what a link has seen, and does, since [packetLink.begin].
type passage struct {
	// What the packets of each direction carried: all but the headers of IP and
	// of TCP, UDP or SCTP. A protocol of its own over UDP has headers in it, and
	// its handshake: it is never less than the bytes of the stream.
	seen   [2]int64 // when they came
	passed [2]int64 // when they had been handed on

	came     time.Time    // when the client's first packet had come
	first    [2]time.Time // just before the first packet was handed on
	answered time.Time    // just before the first packet to the server that followed one to the client
	flowing  time.Time    // when flowingBytes of the client had come: its clock runs

	holdAfter int64    // packets to the server are held from this many bytes on; 0: none, holdAll: the first too
	held      [][]byte // in order
	heldBytes int
	loseEach  int // one of so many packets with content is lost before the link holds; 0: none
	contents  int
}

// holdAll has a link hold from the first packet to the server on.
const holdAll = -1

// flowingBytes is more than any handshake: who has sent so much has started
// the clock, which runs from just after the header is written.
const flowingBytes = 16 * kib

// newLinkedNetwork is a client and a server namespace with such a link between.
func newLinkedNetwork() (*network, error) {
	l := &packetLink{}
	n := &network{firstPort: 7000, link: l}
	for i, side := range []struct {
		ns           **os.File
		address, far string
	}{{&n.client, clientAddress, serverAddress}, {&n.server, serverAddress, clientAddress}} {
		ns, err := namespace.Unnamed()
		if err != nil {
			n.close()
			return nil, fmt.Errorf("make a network namespace: %w", err)
		}
		*side.ns = ns
		err = process.InNamespace(nsPath(ns), func() error {
			fd, err := openTUN([]string{side.address}, []string{side.far})
			if err == nil {
				l.ends[i] = os.NewFile(uintptr(fd), "/dev/net/tun")
			}
			return err
		})
		if err != nil {
			n.close()
			return nil, fmt.Errorf("make a link that the suite can hold: %w", err)
		}
	}
	l.readers.Go(func() { l.carry(toServer, l.ends[0]) })
	l.readers.Go(func() { l.carry(toClient, l.ends[1]) })
	return n, nil
}

func (l *packetLink) close() {
	for _, f := range l.ends {
		if f != nil {
			f.Close()
		}
	}
	l.readers.Wait()
}

// carry takes the packets of one direction until its device is closed.
func (l *packetLink) carry(d direction, from *os.File) {
	b := make([]byte, 64*kib)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		at := time.Now()
		if content, ok := carried(b[:n]); ok {
			l.take(d, b[:n], content, at)
		}
	}
}

// carried is how many bytes an IPv4 packet carries beyond its headers.
func carried(b []byte) (int64, bool) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return 0, false
	}
	n := int(b[0]&15) * 4
	if n > len(b) {
		return 0, false
	}
	switch rest := b[n:]; b[9] {
	case unix.IPPROTO_TCP:
		if len(rest) >= 20 {
			n += int(rest[12]>>4) * 4
		}
	case unix.IPPROTO_UDP:
		n += 8
	case unix.IPPROTO_SCTP:
		n += 12
	}
	return int64(max(0, len(b)-n)), true
}

// take is one packet: it is handed on, held or lost.
func (l *packetLink) take(d direction, b []byte, content int64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changed.Notify()
	before := l.seen[d]
	l.seen[d] += content
	if d == toClient {
		l.hand(d, b, content)
		return
	}
	if l.came.IsZero() {
		l.came = at
	}
	if before < flowingBytes && l.seen[d] >= flowingBytes {
		l.flowing = at
	}
	switch {
	case l.holdAfter != 0 && (len(l.held) > 0 || l.passed[d]+content > l.holdAfter):
		if l.heldBytes += len(b); l.heldBytes <= maxHeldBytes {
			l.held = append(l.held, append([]byte(nil), b...))
		}
	case l.lost(content):
	default:
		l.hand(d, b, content)
	}
}

// lost reports whether the next packet is to be lost.
func (l *packetLink) lost(content int64) bool {
	if l.loseEach == 0 || content == 0 || l.flowing.IsZero() {
		return false
	}
	l.contents++
	return l.contents%l.loseEach == 0
}

// hand gives a packet to the other end.
func (l *packetLink) hand(d direction, b []byte, content int64) {
	now := time.Now()
	if l.first[d].IsZero() {
		l.first[d] = now
	}
	if d == toServer && l.answered.IsZero() && !l.first[toClient].IsZero() {
		l.answered = now
	}
	l.passed[d] += content
	// One that the other end does not take is lost, as on every link.
	_, _ = l.ends[1-d].Write(b)
}

// begin starts a new measurement: what the link has seen before is forgotten.
// After holdAfter bytes to the server it holds, until [packetLink.release].
func (l *packetLink) begin(holdAfter int64, loseEach int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passage = passage{holdAfter: holdAfter, loseEach: loseEach}
}

// release hands on what is held and holds no more. Nothing of it had passed at
// the moment that it returns.
func (l *packetLink) release() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now()
	for _, b := range l.held {
		content, _ := carried(b)
		l.hand(toServer, b, content)
	}
	l.held, l.holdAfter = nil, 0
	l.changed.Notify()
	return at
}

// state is what the link has seen by now.
func (l *packetLink) state() passage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passage
}

// await waits until the link has seen what fits; false: c ended before.
func (l *packetLink) await(ctx context.Context, c *proc, within time.Duration, what string, fits func(*passage) bool) (bool, error) {
	t := time.NewTimer(within)
	defer t.Stop()
	for {
		changed := l.changed.Changed()
		if p := l.state(); fits(&p) {
			return true, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			return false, nil
		case <-t.C:
			p := l.state()
			return false, fmt.Errorf("%s within %s: the link has seen %d bytes of the client and %d of the server", what, within.Round(time.Millisecond), p.seen[toServer], p.seen[toClient])
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// onLink runs a measurement over a link that the suite can hold. Everyone has
// namespaces of its own: what another measurement's drivers still send is not on
// this link.
func (s *suite) onLink(measure func(*packetLink) error) error {
	if s.net.loopback != "" {
		return skip("packets on the loopback interface cannot be held: %s", s.net.loopback)
	}
	n, err := newLinkedNetwork()
	if err != nil {
		return err
	}
	usual := s.net
	s.net = n
	defer func() {
		s.cleanup()
		s.net = usual
		n.close()
	}()
	return measure(n.link)
}

// group are the threads of a driver and of its children, as folders of /proc.
func (s *suite) group(p *proc) []string {
	ids := []int{p.cmd.Process.Pid}
	for _, id := range s.net.inhabitants() {
		if g, err := unix.Getpgid(id.PID); err == nil && g == p.cmd.Process.Pid && id.PID != g {
			ids = append(ids, id.PID)
		}
	}
	var out []string
	for _, id := range ids {
		dir := fmt.Sprintf("/proc/%d/task", id)
		threads, _ := os.ReadDir(dir)
		for _, t := range threads {
			out = append(out, dir+"/"+t.Name())
		}
	}
	return out
}

// pause stops a driver's processes (SIGSTOP) and returns a moment at which all
// of them had stopped.
func (s *suite) pause(ctx context.Context, p *proc) (time.Time, error) {
	if err := unix.Kill(-p.cmd.Process.Pid, unix.SIGSTOP); err != nil {
		return time.Time{}, fmt.Errorf("stop the %s: %w", p.name, err)
	}
	for began := time.Now(); ; {
		running := ""
		for _, thread := range s.group(p) {
			if b, err := os.ReadFile(thread + "/stat"); err == nil && !stoppedThread(b) {
				running = thread
			}
		}
		switch {
		case running == "":
			return time.Now(), nil
		case ctx.Err() != nil:
			return time.Time{}, ctx.Err()
		case time.Since(began) > s.o.waits.ready:
			return time.Time{}, fmt.Errorf("the %s does not stop by SIGSTOP: %s still runs after %s", p.name, running, time.Since(began).Round(time.Millisecond))
		}
		select {
		case <-time.After(time.Millisecond):
		case <-p.ended:
			return time.Time{}, fmt.Errorf("the %s ended (%s) instead of being stopped%s", p.name, p.ending(), p.lastError())
		}
	}
}

// resume lets them go on, and returns a moment before.
func (p *proc) resume() time.Time {
	at := time.Now()
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGCONT)
	return at
}

// stoppedThread reads the state in a thread's stat (proc(5)): the field after
// the name, which is in parentheses and may have any character in it. A thread
// that is about to end counts as stopped.
func stoppedThread(stat []byte) bool {
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && bytes.IndexByte([]byte("TtXZ"), stat[i+2]) >= 0
}

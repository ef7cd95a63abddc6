package link

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/notify"
	"linktrial/internal/process"
)

// Device is the name of the TUN device in both namespaces.
const Device = "radio0"

// Link connects a client's and a server's namespace. Both directions share one
// lock, so that what was seen of them is of one order.
type Link struct {
	// Up carries what the client sends, Down what the server sends.
	Up, Down *Lane
	// Client and Server are the namespaces, which vanish with the link and the
	// processes in them. Close closes these files.
	Client, Server *os.File

	mu      sync.Mutex
	changed notify.Notifier
	ends    [2]int // the descriptors of the client's device and of the server's
}

// New makes two namespaces and a link between them that lets everything pass. The
// first address of a family is the source of what is sent without another. The
// error is [ErrNoTUN] where the machine has no TUN devices. Needs root.
func New(client, server []string) (*Link, error) {
	l := &Link{ends: [2]int{-1, -1}}
	var err error
	if l.Client, l.ends[0], err = newEnd(client, server); err == nil {
		l.Server, l.ends[1], err = newEnd(server, client)
	}
	if err == nil {
		err = l.start()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// newEnd makes a namespace with a TUN device in it.
func newEnd(addresses, far []string) (ns *os.File, fd int, err error) {
	if ns, err = namespace.Unnamed(); err != nil {
		return nil, -1, fmt.Errorf("make a network namespace: %w", err)
	}
	err = process.InNamespace(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), func() error {
		fd, err = openTUN(addresses, far)
		return err
	})
	if err != nil {
		_ = ns.Close()
		return nil, -1, err
	}
	return ns, fd, nil
}

// start has both lanes carry packets between the ends, which must not block.
func (l *Link) start() error {
	up, err := newLane(l, l.ends[0], l.ends[1], 1)
	if err != nil {
		return err
	}
	down, err := newLane(l, l.ends[1], l.ends[0], 2)
	if err != nil {
		_ = unix.Close(up.wake)
		return err
	}
	up.other, down.other = down, up
	l.Up, l.Down = up, down
	go up.carry()
	go down.carry()
	return nil
}

// Close ends the link: it waits for its goroutines, and closes its files.
func (l *Link) Close() {
	for _, d := range []*Lane{l.Up, l.Down} {
		if d != nil {
			d.close()
		}
	}
	for _, fd := range l.ends {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	for _, ns := range []*os.File{l.Client, l.Server} {
		if ns != nil {
			_ = ns.Close()
		}
	}
}

// Both sets the same conditions in both directions, as [Lane.Change] does. They
// must not have functions, which count for one lane.
func (l *Link) Both(c Conditions) {
	l.Up.Change(c)
	l.Down.Change(c)
}

// Begin forgets what both lanes have seen, and loses what they hold. Each notes
// from now on when mark bytes of content had come ([Traffic.Marked]).
func (l *Link) Begin(mark int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Up.begin(mark)
	l.Down.begin(mark)
}

// Traffic is what both lanes have seen at one moment.
func (l *Link) Traffic() (up, down Traffic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Up.seen.clone(), l.Down.seen.clone()
}

// Changed returns a channel that is closed when the next packet has come: take
// it, then look at what the lanes have seen, then wait.
func (l *Link) Changed() <-chan struct{} { return l.changed.Changed() }

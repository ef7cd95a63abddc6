package packettimes

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Arrived notes when the payload of transfers arrives at this node, listener by listener,
// until [Arrived.Close]. It implements [executor.PacketsArrived].
type Arrived struct {
	*notes

	mu    sync.Mutex
	since map[int]uint64 // by the listener's port: when its last transfer ended, of CLOCK_MONOTONIC
}

// StartArrived begins to note, as [StartSent].
func StartArrived(devices ...string) (*Arrived, error) {
	n, err := start(arriving, devices)
	if err != nil {
		return nil, err
	}
	return &Arrived{notes: n, since: map[int]uint64{}}, nil
}

// Listen implements [executor.PacketsArrived].
func (a *Arrived) Listen(port int, size int64) error {
	if err := a.attach(); err != nil {
		return err
	}
	if _, err := a.takeLeast(port); err != nil {
		return err
	}
	return a.expect(port, size, 0)
}

// Ended implements [executor.PacketsArrived]. A client's port may be one that a transfer
// before had as well, of which less than its payload came: what had begun before that
// ended does not count.
func (a *Arrived) Ended(port int) (least time.Duration, err error) {
	least, err = a.takeLeast(port)
	if again := a.attach(); err == nil { // for the next one: the interface may have come anew
		err = again
	}
	return least, err
}

// Passed implements [executor.PacketsArrived]. Of a datagram in fragments of IPv4 the first
// one counts.
func (a *Arrived) Passed(port int) (int64, error) {
	if err := a.attach(); err != nil {
		return 0, err
	}
	return a.passed(port, 0)
}

// takeLeast returns the shortest time that the payload of a connection to a listener took which
// has all of it, and forgets these; 0: there is none.
func (a *Arrived) takeLeast(port int) (least time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept, err := a.kept()
	if err != nil {
		return 0, err
	}
	for k, m := range kept {
		if int(k.Listener) != port || m.All == 0 {
			continue
		}
		if took := m.took(); took > 0 && m.Flowing > a.since[port] && (least == 0 || took < least) {
			least = took
		}
		if err := a.forget(k); err != nil {
			return 0, err
		}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("packets of transfers: %w", err)
	}
	a.since[port] = uint64(now.Nano())
	return least, nil
}

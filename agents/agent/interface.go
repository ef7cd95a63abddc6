package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/internal/notify"
)

// interfaceState is what of a network interface a transfer depends on.
type interfaceState struct {
	there, up, carrier bool
	loopback           bool // and no radio's: its MTU is its own
	mtu                int
	addressed          bool // has the radio address
	homeless           bool // nor has another interface of the node the radio address
}

// readInterface reads the state of an interface in this process's network namespace.
func readInterface(device string, address net.IP) interfaceState {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return interfaceState{}
	}
	s := interfaceState{there: true, loopback: l.Attrs().Flags&net.FlagLoopback != 0, up: l.Attrs().Flags&net.FlagUp != 0, carrier: l.Attrs().Flags&net.FlagRunning != 0, mtu: l.Attrs().MTU}
	addresses, _ := netlink.AddrList(l, netlink.FAMILY_ALL) // of an interface that has gone: none
	for _, a := range addresses {
		s.addressed = s.addressed || a.IP.Equal(address)
	}
	s.homeless = !s.addressed && address != nil && !bindable(address)
	return s
}

// bindable reports whether sockets can have an address. Not every address that they can
// have is one of an interface: all of 127.0.0.0/8 are the loopback's.
func bindable(address net.IP) bool {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: address})
	if err != nil {
		return !errors.Is(err, unix.EADDRNOTAVAIL)
	}
	_ = c.Close()
	return true
}

// wrong says what keeps an interface from carrying packets as it did in state want;
// empty: nothing.
func (s interfaceState) wrong(want interfaceState) string {
	var out []string
	switch {
	case !s.there:
		return "it does not exist"
	case !s.up:
		out = append(out, "it is down")
	case !s.carrier:
		out = append(out, "it has no carrier")
	}
	if want.mtu != 0 && s.mtu != want.mtu {
		out = append(out, fmt.Sprintf("its MTU is %d, expected %d", s.mtu, want.mtu))
	}
	switch {
	case want.addressed && !s.addressed:
		out = append(out, "it has lost its address")
	case s.homeless: // since before it was watched
		out = append(out, "it does not have the node's radio address")
	}
	return strings.Join(out, ", ")
}

// interfaceWatch watches the radio's interface; it implements [executor.Interface].
type interfaceWatch struct {
	read func() interfaceState

	mu      sync.Mutex
	want    interfaceState
	wrong   string    // what is wrong now
	fault   string    // what was wrong last
	until   time.Time // when that was seen last
	changed notify.Notifier
}

// watchInterface watches an interface until stop. It expects the MTU, 0 for any, and
// the address, where the interface has it now.
func watchInterface(ctx context.Context, device string, address net.IP, mtu int, log *slog.Logger) (w *interfaceWatch, stop func()) {
	read := func() interfaceState { return readInterface(device, address) }
	now := read()
	if now.loopback {
		mtu = 0
	}
	w = &interfaceWatch{read: read, want: interfaceState{mtu: mtu, addressed: now.addressed}}
	ctx, cancel := context.WithCancel(ctx)
	links, addresses := make(chan netlink.LinkUpdate), make(chan netlink.AddrUpdate)
	failed := func(err error) {
		if ctx.Err() == nil {
			log.Warn("changes of the radio's interface are seen only when an attempt ends", "interface", device, "error", err)
		}
	}
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(), netlink.LinkSubscribeOptions{ErrorCallback: failed}); err != nil {
		failed(err)
		links = nil
	}
	if err := netlink.AddrSubscribeWithOptions(addresses, ctx.Done(), netlink.AddrSubscribeOptions{ErrorCallback: failed}); err != nil {
		failed(err)
		addresses = nil
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		// The library closes both channels when ctx ends, or when it can read no more.
		for links != nil || addresses != nil {
			select {
			case _, ok := <-links:
				if !ok {
					links = nil
				}
			case _, ok := <-addresses:
				if !ok {
					addresses = nil
				}
			}
			w.look(time.Now())
		}
	})
	return w, func() {
		cancel()
		watching.Wait()
	}
}

// look reads the state, and tells those who wait when it is another one.
func (w *interfaceWatch) look(now time.Time) {
	w.mu.Lock()
	wrong := w.read().wrong(w.want)
	told := wrong != w.wrong
	if w.wrong != "" || wrong != "" {
		w.fault, w.until = cmp.Or(wrong, w.wrong), now
	}
	w.wrong = wrong
	w.mu.Unlock()
	if told {
		w.changed.Notify()
	}
}

// Since implements [executor.Interface].
func (w *interfaceWatch) Since(at time.Time) (fault string, more <-chan struct{}) {
	more = w.changed.Changed()
	w.look(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == "" || w.wrong == "" && w.until.Before(at) {
		return "", more
	}
	return w.fault, more
}

// State implements [executor.Interface].
func (w *interfaceWatch) State() (fault string, changed <-chan struct{}) {
	changed = w.changed.Changed()
	w.look(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong, changed
}

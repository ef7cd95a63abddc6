package netif

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// States of sockets as the kernel numbers them (include/net/tcp_states.h): of TCP one that
// listens, of UDP one that is not connected.
const (
	stateClose  = 7
	stateListen = 10
)

// waitingAt are the sockets at a port of this node that wait for TCP or UDP, in this
// network namespace.
func waitingAt(port int) (waiting []netlink.SocketID) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for state, dump := range map[uint8]func(uint8) ([]*netlink.Socket, error){stateListen: netlink.SocketDiagTCP, stateClose: netlink.SocketDiagUDP} {
			all, _ := dump(family) // without any, nothing is known
			for _, s := range all {
				if s.State == state && int(s.ID.SourcePort) == port {
					waiting = append(waiting, s.ID)
				}
			}
		}
	}
	return waiting
}

// deaf says why none of the sockets that wait at one port hears what comes for the radio's
// address over its interface; empty: one does, or there are none.
func (w *Watch) deaf(waiting []netlink.SocketID) string {
	w.mu.Lock()
	index, radio := w.last.Index, w.want.radio
	w.mu.Unlock()
	return deaf(waiting, radio, index, func(index int) bool {
		_, err := netlink.LinkByIndex(index)
		return err == nil
	})
}

// deaf says why none of the sockets hears what comes for the radio's address over the
// interface with an index. Those at other addresses of the node are those of its other
// radio.
func deaf(sockets []netlink.SocketID, r *Radio, index int, exists func(index int) bool) (why string) {
	for i := range sockets {
		s := &sockets[i]
		at, _ := netip.AddrFromSlice(s.Source)
		at, to := at.Unmap(), int(s.Interface)
		switch {
		case to != 0 && !exists(to):
			why = fmt.Sprintf("its socket is bound to an interface that does not exist any more (index %d; %s has %d)", to, r.Device, index)
		case to != 0 && to != index && at == r.Address.Unmap().WithZone(""):
			why = fmt.Sprintf("its socket is bound to another interface (index %d; %s has %d)", to, r.Device, index)
		case !at.IsUnspecified() && !at.IsLinkLocalUnicast() && !bindable(at):
			why = fmt.Sprintf("its socket has the address %s, which this node does not have", at)
		default:
			return ""
		}
	}
	return why
}

// Package packetsocket opens packet sockets (packet(7)) on which the kernel picks
// packets by a filter. Comes in: the filter and the interface. Goes out: a socket with
// whole packets from their IP header on.
package packetsocket

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Open returns the descriptor of a socket that does not block. It gets the packets of
// an interface, 0 for all of them, for which the filter does not return 0; none comes
// before the filter is in place.
func Open(filter []bpf.Instruction, ifindex int) (fd int, err error) {
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return -1, err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	// Without a protocol the socket gets nothing until it is bound.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("%w (the agent needs CAP_NET_RAW)", err)
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err == nil {
		all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifindex})
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was sent
		return -1, err
	}
	return fd, nil
}

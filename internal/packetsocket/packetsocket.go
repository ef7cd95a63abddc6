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
	return OpenFor(unix.ETH_P_ALL, filter, ifindex)
}

// OpenFor is [Open] for packets of one protocol (ETH_P_ARP) that come in: those that
// leave, and all others, are not slowed down.
func OpenFor(protocol uint16, filter []bpf.Instruction, ifindex int) (fd int, err error) {
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return -1, err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return open(protocol, ifindex, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
}

// OpenProgram is [Open] with a program that is in the kernel already, by its descriptor
// (BPF_PROG_TYPE_SOCKET_FILTER), in place of a filter.
func OpenProgram(program, ifindex int) (fd int, err error) {
	return open(unix.ETH_P_ALL, ifindex, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, program)
	})
}

func open(protocol uint16, ifindex int, attach func(fd int) error) (fd int, err error) {
	// Without a protocol the socket gets nothing until it is bound.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("%w (the agent needs CAP_NET_RAW)", err)
	}
	if err = attach(fd); err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: Network(protocol), Ifindex: ifindex})
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was sent
		return -1, err
	}
	return fd, nil
}

// Network is a protocol's number as addresses of packet sockets have it.
func Network(protocol uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, protocol))
}

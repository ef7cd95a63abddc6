package mptcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options of SOL_MPTCP and flags, of <linux/mptcp.h>.
const (
	levelMPTCP     = 284
	optionInfo     = 1
	optionTCPInfo  = 2
	optionSubflows = 3

	flagFallback = 1 << 0
)

// ErrFallback reports a connection that is plain TCP.
var ErrFallback = errors.New("the connection fell back to plain TCP: the other end, or a device between, does not speak Multipath TCP, " +
	"or this kernel has turned it off for a while (net.mptcp.blackhole_timeout)")

// Info is what the kernel tells of a connection as a whole.
type Info struct {
	Subflows    int // beside the first
	Retransmits int64
	AckedBytes  int64 // of the stream; -1: a kernel before Linux 6.5
}

// Offsets within struct mptcp_info.
const (
	offsetSubflows    = 0
	offsetFlags       = 8
	offsetRetransmits = 44
	offsetAcked       = 72
	minimumInfo       = 40 // of Linux 5.16
)

// parseInfo reads struct mptcp_info, as much of it as the kernel has.
func parseInfo(b []byte) (Info, error) {
	if len(b) < minimumInfo {
		return Info{}, fmt.Errorf("MPTCP_INFO has %d bytes, expected at least %d", len(b), minimumInfo)
	}
	if binary.NativeEndian.Uint32(b[offsetFlags:])&flagFallback != 0 {
		return Info{}, ErrFallback
	}
	i := Info{Subflows: int(b[offsetSubflows]), AckedBytes: -1}
	if len(b) >= offsetRetransmits+4 {
		i.Retransmits = int64(binary.NativeEndian.Uint32(b[offsetRetransmits:]))
	}
	if len(b) >= offsetAcked+8 {
		i.AckedBytes = int64(binary.NativeEndian.Uint64(b[offsetAcked:]))
	}
	return i, nil
}

// ReadInfo reads MPTCP_INFO. The error is [ErrFallback] for plain TCP.
func ReadInfo(raw syscall.RawConn) (Info, error) {
	b := make([]byte, 256)
	n, err := option(raw, optionInfo, b)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOPROTOOPT):
		return Info{}, ErrFallback // the socket of a connection that fell back answers as TCP's
	case err != nil:
		return Info{}, fmt.Errorf("read MPTCP_INFO: %w", err)
	}
	return parseInfo(b[:n])
}

// Subflow is one connection of TCP below a connection of MPTCP.
type Subflow struct {
	Local, Remote netip.AddrPort
	TCP           unix.TCPInfo
}

// Subflows reads those that are there now. A subflow that has ended is not among them.
func Subflows(raw syscall.RawConn) ([]Subflow, error) {
	for range 4 {
		before, err := subflowAddresses(raw)
		if err != nil {
			return nil, err
		}
		b := make([]byte, arrayHeader+maxSubflows*int(unsafe.Sizeof(unix.TCPInfo{})))
		putHeader(b, int(unsafe.Sizeof(unix.TCPInfo{})))
		n, err := option(raw, optionTCPInfo, b)
		if err != nil {
			return nil, fmt.Errorf("read MPTCP_TCPINFO: %w", err)
		}
		infos, err := parseTCPInfos(b[:n])
		if err != nil {
			return nil, err
		}
		after, err := subflowAddresses(raw)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(before, after) || len(infos) != len(after) {
			continue // one came or went between the calls
		}
		out := make([]Subflow, len(infos))
		for i := range infos {
			out[i] = Subflow{Local: after[i].local, Remote: after[i].remote, TCP: infos[i]}
		}
		return out, nil
	}
	return nil, errors.New("the subflows changed during each of four readings")
}

// Both answers are arrays behind struct mptcp_subflow_data: its size, the number of
// subflows, the size of an element in the kernel and that of the caller.
const (
	arrayHeader = 16
	maxSubflows = 16 // the path manager allows 8 beside the first
	// pairSize is struct mptcp_subflow_addrs: two addresses of 128 bytes.
	pairSize = 256
)

// putHeader says how long the header and each element are that the caller knows.
func putHeader(b []byte, element int) {
	binary.NativeEndian.PutUint32(b, arrayHeader)
	binary.NativeEndian.PutUint32(b[12:], uint32(element))
}

type pair struct{ local, remote netip.AddrPort }

func subflowAddresses(raw syscall.RawConn) ([]pair, error) {
	b := make([]byte, arrayHeader+maxSubflows*pairSize)
	putHeader(b, pairSize)
	n, err := option(raw, optionSubflows, b)
	if err != nil {
		return nil, fmt.Errorf("read MPTCP_SUBFLOW_ADDRS: %w", err)
	}
	return parsePairs(b[:n])
}

func parsePairs(b []byte) ([]pair, error) {
	var out []pair
	err := elements(b, pairSize, func(e []byte) error {
		if len(e) < pairSize {
			return fmt.Errorf("a pair of addresses has %d bytes, expected %d", len(e), pairSize)
		}
		local, err := socketAddress(e[:pairSize/2])
		if err != nil {
			return err
		}
		remote, err := socketAddress(e[pairSize/2:])
		out = append(out, pair{local, remote})
		return err
	})
	return out, err
}

func socketAddress(b []byte) (netip.AddrPort, error) {
	port := binary.BigEndian.Uint16(b[2:])
	switch f := binary.NativeEndian.Uint16(b); f {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), nil
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), port), nil
	default:
		return netip.AddrPort{}, fmt.Errorf("a subflow's address is of family %d", f)
	}
}

func parseTCPInfos(b []byte) ([]unix.TCPInfo, error) {
	var out []unix.TCPInfo
	err := elements(b, int(unsafe.Sizeof(unix.TCPInfo{})), func(e []byte) error {
		var t unix.TCPInfo
		// What the kernel does not have stays 0.
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&t)), unsafe.Sizeof(t)), e)
		out = append(out, t)
		return nil
	})
	return out, err
}

// elements calls each with every element of an answer, of which no more than so many
// bytes were asked for.
func elements(b []byte, asked int, each func([]byte) error) error {
	if len(b) < arrayHeader {
		return fmt.Errorf("subflows: %d bytes, expected at least %d", len(b), arrayHeader)
	}
	header := int64(binary.NativeEndian.Uint32(b))
	count, size := int64(binary.NativeEndian.Uint32(b[4:])), int64(asked)
	// The kernel writes elements no longer than its own, behind each other.
	if kernel := int64(binary.NativeEndian.Uint32(b[8:])); kernel < size {
		size = kernel
	}
	if header < arrayHeader || size <= 0 || count < 0 || count > maxSubflows || header+count*size > int64(len(b)) {
		return fmt.Errorf("subflows: %d of %d bytes behind %d do not fit into an answer of %d bytes", count, size, header, len(b))
	}
	for i := range count {
		if err := each(b[header+i*size : header+(i+1)*size]); err != nil {
			return err
		}
	}
	return nil
}

// option reads an option of SOL_MPTCP into b, and how many bytes it has.
func option(raw syscall.RawConn, name int, b []byte) (n int, err error) {
	size := uint32(len(b))
	cerr := raw.Control(func(fd uintptr) {
		if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, levelMPTCP, uintptr(name),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
			err = e
		}
	})
	if cerr != nil {
		return 0, cerr
	}
	return min(int(size), len(b)), err
}

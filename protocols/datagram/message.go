package datagram

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is struct mmsghdr of recvmmsg(2) and sendmmsg(2).
type message struct {
	header unix.Msghdr
	length uint32
}

// controlSize has room for an ECN mark and a segment size.
const controlSize = 64

// envelope is what a message points to besides its data.
type envelope struct {
	_       [0]uint64 // control messages are aligned to 8 bytes
	control [controlSize]byte
	name    unix.RawSockaddrInet6 // large enough for IPv4's, too
}

func call(number, fd uintptr, messages []message) (int, syscall.Errno) {
	for {
		n, _, e := unix.Syscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(messages))), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// zones are the names of network devices by number, for link-local addresses.
// Each direction has its own.
type zones struct {
	names   map[uint32]string
	numbers map[string]uint32
}

func (z *zones) name(number uint32) string {
	name, ok := z.names[number]
	if !ok {
		name = strconv.FormatUint(uint64(number), 10)
		if i, err := net.InterfaceByIndex(int(number)); err == nil {
			name = i.Name
		}
		if z.names == nil {
			z.names = map[uint32]string{}
		}
		z.names[number] = name
	}
	return name
}

func (z *zones) number(name string) uint32 {
	number, ok := z.numbers[name]
	if !ok {
		if n, err := strconv.ParseUint(name, 10, 32); err == nil {
			number = uint32(n)
		} else if i, err := net.InterfaceByName(name); err == nil {
			number = uint32(i.Index)
		}
		if z.numbers == nil {
			z.numbers = map[string]uint32{}
		}
		z.numbers[name] = number
	}
	return number
}

func swap(port uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(make([]byte, 0, 2), port))
}

// addr is the address in a received message, IPv4 as such.
func (e *envelope) addr(z *zones) netip.AddrPort {
	switch e.name.Family {
	case unix.AF_INET:
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&e.name))
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), swap(sa.Port))
	case unix.AF_INET6:
		a := netip.AddrFrom16(e.name.Addr).Unmap()
		if e.name.Scope_id != 0 && a.Is6() {
			a = a.WithZone(z.name(e.name.Scope_id))
		}
		return netip.AddrPortFrom(a, swap(e.name.Port))
	default:
		return netip.AddrPort{}
	}
}

// setAddr puts the address into a message to be sent; inet6 says of what family
// the socket is.
func (e *envelope) setAddr(h *unix.Msghdr, a netip.AddrPort, inet6 bool, z *zones) {
	h.Name = (*byte)(unsafe.Pointer(&e.name))
	if !inet6 && a.Addr().Unmap().Is4() {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&e.name)) = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(a.Port()), Addr: a.Addr().Unmap().As4()}
		h.Namelen = unix.SizeofSockaddrInet4
		return
	}
	e.name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(a.Port()), Addr: a.Addr().As16()}
	if zone := a.Addr().Zone(); zone != "" {
		e.name.Scope_id = z.number(zone)
	}
	h.Namelen = unix.SizeofSockaddrInet6
}

// parse reads the control messages of a received message.
func (e *envelope) parse(length int) (ecn uint8, segment int) {
	control := e.control[:min(length, controlSize)]
	for len(control) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(control)))
		end := int(h.Len)
		if end < unix.SizeofCmsghdr || end > len(control) {
			break
		}
		data := control[unix.CmsgLen(0):end]
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && len(data) >= 1:
			ecn = data[0] & 3
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS && len(data) >= 4:
			ecn = uint8(binary.NativeEndian.Uint32(data) & 3)
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			segment = int(binary.NativeEndian.Uint32(data))
		}
		control = control[min(unix.CmsgSpace(len(data)), len(control)):]
	}
	return ecn, segment
}

// put appends a control message at offset and returns the offset after it.
func (e *envelope) put(offset int, level, kind int32, value []byte) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&e.control[offset]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(len(value)))
	copy(e.control[offset+unix.CmsgLen(0):], value)
	return offset + unix.CmsgSpace(len(value))
}

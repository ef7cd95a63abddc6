package datagram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// writePackets is how many packets one system call sends.
	writePackets = 256
	// A message of several packets has at most 64 (UDP_MAX_SEGMENTS up to Linux
	// 6.8) and must fit into one IP packet before it is split.
	maxSegments     = 64
	maxSegmentBytes = 65535 - 40 - 8
)

// SizeError is the error of packets that are larger than the path or device
// takes. It is EMSGSIZE.
type SizeError struct {
	// Refused are the packets' places in the batch, until the next Write.
	Refused []int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d packets are larger than the network device takes, the first at place %d: %v", len(e.Refused), e.Refused[0], unix.EMSGSIZE)
}

// Unwrap is EMSGSIZE.
func (e *SizeError) Unwrap() error { return unix.EMSGSIZE }

// writer is the sending side of a socket.
type writer struct {
	gso       bool
	connected bool
	inet6     bool
	dscp      uint32
	remote4   bool // connected to an address of IPv4
	messages  []message
	envelopes []envelope
	vectors   []unix.Iovec
	packets   []int // how many packets each message has
	zones     zones
	refused   []int

	// Of the present call.
	send  func(fd uintptr) bool
	rest  []message
	count int
	errno syscall.Errno
}

func (w *writer) prepare(s *Socket, gso bool) {
	w.gso, w.inet6, w.connected = gso, s.inet6, s.config.Remote.IsValid()
	w.remote4 = s.config.Remote.Addr().Is4()
	w.dscp = uint32(s.config.DSCP)
	w.messages, w.envelopes = make([]message, writePackets), make([]envelope, writePackets)
	w.vectors, w.packets = make([]unix.Iovec, writePackets), make([]int, writePackets)
	w.send = func(fd uintptr) bool {
		n, e := call(unix.SYS_SENDMMSG, fd, w.rest)
		if e == unix.EAGAIN {
			return false
		}
		w.count, w.errno = n, e
		return true
	}
}

// Write sends packets in the order of the batch, and returns how many it has
// dealt with; it waits while the socket's buffer is full, until Close. Where the
// error is a [SizeError], alone, all have been dealt with, and all but those
// that it names were sent. After any other error, as ECONNREFUSED or
// ENETUNREACH, packet n was not sent and those behind it were not tried.
func (s *Socket) Write(batch []Packet) (n int, err error) {
	w := &s.writer
	w.refused = w.refused[:0]
	for n < len(batch) && err == nil {
		var done int
		done, err = w.write(s.raw, batch[n:min(len(batch), n+writePackets)], n)
		n += done
	}
	if len(w.refused) > 0 {
		size := &SizeError{Refused: w.refused}
		if err == nil {
			return n, size
		}
		return n, errors.Join(err, size)
	}
	return n, err
}

// write sends packets that one system call can take. The first of them is at
// place offset of the whole batch.
func (w *writer) write(raw syscall.RawConn, batch []Packet, offset int) (done int, err error) {
	for done < len(batch) {
		messages, err := w.pack(batch[done:])
		if err != nil && messages == 0 {
			return done, err
		}
		// Until all messages are sent, or one is refused.
		for next := 0; next < messages; {
			w.rest = w.messages[next:messages]
			if err := raw.Write(w.send); err != nil {
				return done, err
			}
			if w.errno == 0 {
				for range w.count {
					done += w.packets[next]
					next++
				}
				continue
			}
			refused, e, gso := w.packets[next], w.errno, w.gso
			if !w.single(refused, e) {
				return done, errno("sendmmsg", e)
			}
			sent, err := w.each(raw, batch[done:done+refused], offset+done, e)
			done += sent
			if err != nil {
				return done, err
			}
			next++
			if w.gso != gso {
				break // the other messages are packed anew
			}
		}
	}
	return done, nil
}

// single reports whether packets of a refused message are to be tried one by
// one.
func (w *writer) single(packets int, e syscall.Errno) bool {
	switch e {
	case unix.EMSGSIZE:
		return true
	case unix.EINVAL, unix.EIO, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return packets > 1
	}
	return false
}

// each sends packets of a refused message one by one, and notes those that are
// too large.
func (w *writer) each(raw syscall.RawConn, batch []Packet, offset int, e syscall.Errno) (done int, err error) {
	gso := w.gso
	w.gso = false
	defer func() { w.gso = gso }()
	for i := range batch {
		if _, err := w.pack(batch[i : i+1]); err != nil {
			return i, err
		}
		w.rest = w.messages[:1]
		if err := raw.Write(w.send); err != nil {
			return i, err
		}
		switch {
		case w.errno == 0 && i == 0 && e != unix.EMSGSIZE:
			// It was not the size that the kernel or the device refused, but
			// that there were several packets in a message.
			gso = false
		case w.errno == unix.EMSGSIZE:
			w.refused = append(w.refused, offset+i)
		case w.errno != 0:
			return i, errno("sendmmsg", w.errno)
		}
	}
	return len(batch), nil
}

// pack puts packets into messages, and returns how many messages it made.
func (w *writer) pack(batch []Packet) (messages int, err error) {
	for start := 0; start < len(batch); messages++ {
		first := &batch[start]
		if !w.connected && !first.Addr.IsValid() {
			return messages, errNoAddress
		}
		end := start + w.run(batch[start:])
		for i := start; i < end; i++ {
			w.vectors[i].Base = unsafe.SliceData(batch[i].Data)
			w.vectors[i].SetLen(len(batch[i].Data))
		}
		e, h := &w.envelopes[messages], &w.messages[messages].header
		h.Name, h.Namelen = nil, 0
		if !w.connected {
			e.setAddr(h, first.Addr, w.inet6, &w.zones)
		}
		h.Iov = &w.vectors[start]
		h.SetIovlen(end - start)
		w.control(h, e, first, end-start)
		w.packets[messages] = end - start
		start = end
	}
	return messages, nil
}

// run is how many packets from the first on go into one message: of the same
// size, but the last may be smaller.
func (w *writer) run(batch []Packet) int {
	first := &batch[0]
	size := len(first.Data)
	if !w.gso || size == 0 {
		return 1
	}
	n, total := 1, size
	for n < len(batch) && n < maxSegments {
		p := &batch[n]
		total += len(p.Data)
		if len(p.Data) == 0 || len(p.Data) > size || total > maxSegmentBytes || p.Addr != first.Addr || p.ECN&3 != first.ECN&3 {
			break
		}
		n++
		if len(p.Data) < size {
			break
		}
	}
	return n
}

func (w *writer) control(h *unix.Msghdr, e *envelope, first *Packet, packets int) {
	length := 0
	var value [4]byte
	if ecn := first.ECN & 3; ecn != 0 {
		// The mark of one packet takes the place of the socket's whole octet.
		binary.NativeEndian.PutUint32(value[:], uint32(ecn)|w.dscp<<2)
		if w.v4(first.Addr) {
			length = e.put(length, unix.IPPROTO_IP, unix.IP_TOS, value[:])
		} else {
			length = e.put(length, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, value[:])
		}
	}
	if packets > 1 {
		binary.NativeEndian.PutUint16(value[:], uint16(len(first.Data)))
		length = e.put(length, unix.IPPROTO_UDP, unix.UDP_SEGMENT, value[:2])
	}
	h.Control = nil
	if length > 0 {
		h.Control = &e.control[0]
	}
	h.SetControllen(length)
}

func (w *writer) v4(a netip.AddrPort) bool {
	if w.connected {
		return w.remote4
	}
	return a.Addr().Unmap().Is4()
}

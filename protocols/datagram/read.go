package datagram

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// readMessages is how many messages one system call receives. With GRO each
	// of them may be 64 KiB, received into the reader's own memory.
	readMessages    = 64
	readMessagesGRO = 16
	superPacket     = 1 << 16
)

// reader is the receiving side of a socket.
type reader struct {
	gro       bool
	messages  []message
	envelopes []envelope
	vectors   []unix.Iovec
	memory    []byte // with GRO
	zones     zones
	queue     []received // with GRO: what was received and not handed out yet
	spare     []received // the queue's memory

	// Of the present call: what receive gets and returns.
	receive func(fd uintptr) bool // a field, for a closure would be allocated each time
	count   int                   // messages wanted, then received
	errno   syscall.Errno
}

// received is a message of one or more packets of equal size, but the last.
type received struct {
	data    []byte
	segment int
	addr    netip.AddrPort
	ecn     uint8
}

func (r *reader) prepare(gro bool) {
	n := readMessages
	if gro {
		n = readMessagesGRO
		r.memory = make([]byte, n*superPacket)
		r.spare = make([]received, n)
	}
	r.gro = gro
	r.messages, r.envelopes, r.vectors = make([]message, n), make([]envelope, n), make([]unix.Iovec, n)
	r.receive = func(fd uintptr) bool {
		n, e := call(unix.SYS_RECVMMSG, fd, r.messages[:r.count])
		if e == unix.EAGAIN {
			return false
		}
		r.count, r.errno = n, e
		return true
	}
}

// Read waits until there is at least one packet, and returns how many packets of
// the batch it has filled: Data, within the capacity that it has, Addr and ECN.
// A packet that is larger than the capacity is dropped. SetReadDeadline and
// Close end the wait. An error may be the answer to a packet sent before, as
// ECONNREFUSED ([Socket.Refusals]); reading goes on after it.
func (s *Socket) Read(batch []Packet) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	r := &s.reader
	for {
		var n int
		if r.gro {
			if len(r.queue) == 0 {
				if err := r.fill(s.raw); err != nil {
					return 0, err
				}
			}
			n = r.split(batch)
		} else {
			var err error
			if n, err = r.direct(s.raw, batch); err != nil {
				return 0, err
			}
		}
		if n > 0 {
			return n, nil
		}
	}
}

// wait receives into the first count messages, at least one.
func (r *reader) wait(raw syscall.RawConn, count int) (int, error) {
	for i := range count {
		h := &r.messages[i].header
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&r.envelopes[i].name)), unix.SizeofSockaddrInet6
		h.Control = &r.envelopes[i].control[0]
		h.SetControllen(controlSize)
		h.Iov = &r.vectors[i]
		h.SetIovlen(1)
		h.Flags = 0
	}
	for {
		r.count = count
		if err := raw.Read(r.receive); err != nil {
			return 0, err
		}
		// A router's report that a packet was too large (RFC 1191) ends no
		// connection; [Socket.MTU] has what the kernel made of it.
		if r.errno != unix.EMSGSIZE {
			return r.count, errno("recvmmsg", r.errno)
		}
	}
}

// direct receives into the memory of the batch.
func (r *reader) direct(raw syscall.RawConn, batch []Packet) (int, error) {
	wanted := min(len(batch), len(r.messages))
	for i := range wanted {
		data := batch[i].Data[:cap(batch[i].Data)]
		r.vectors[i].Base = unsafe.SliceData(data)
		r.vectors[i].SetLen(len(data))
	}
	got, err := r.wait(raw, wanted)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range got {
		h := &r.messages[i].header
		if h.Flags&unix.MSG_TRUNC != 0 {
			continue
		}
		p := &batch[n]
		if n != i { // behind one that was dropped: exchange their memory
			p.Data, batch[i].Data = batch[i].Data, p.Data
		}
		p.Data = p.Data[:r.messages[i].length]
		p.Addr = r.envelopes[i].addr(&r.zones)
		p.ECN, _ = r.envelopes[i].parse(int(h.Controllen))
		n++
	}
	return n, nil
}

// fill receives into the reader's own memory.
func (r *reader) fill(raw syscall.RawConn) error {
	for i := range r.vectors {
		r.vectors[i].Base = &r.memory[i*superPacket]
		r.vectors[i].SetLen(superPacket)
	}
	got, err := r.wait(raw, len(r.messages))
	if err != nil {
		return err
	}
	r.queue = r.spare[:got]
	for i := range got {
		m := &r.messages[i]
		q := received{data: r.memory[i*superPacket:][:m.length], addr: r.envelopes[i].addr(&r.zones)}
		q.ecn, q.segment = r.envelopes[i].parse(int(m.header.Controllen))
		if q.segment == 0 {
			q.segment = len(q.data)
		}
		r.queue[i] = q
	}
	return nil
}

// split hands out what was received.
func (r *reader) split(batch []Packet) int {
	n := 0
	for len(r.queue) > 0 && n < len(batch) {
		q := &r.queue[0]
		size := min(q.segment, len(q.data))
		if p := &batch[n]; size <= cap(p.Data) {
			p.Data = append(p.Data[:0], q.data[:size]...)
			p.Addr, p.ECN = q.addr, q.ecn
			n++
		}
		if q.data = q.data[size:]; len(q.data) == 0 {
			r.queue = r.queue[1:]
		}
	}
	return n
}

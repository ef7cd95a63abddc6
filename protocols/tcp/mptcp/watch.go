package mptcp

import (
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Watch follows a connection's subflows and keeps what those that have ended had
// carried when they were seen last. Its functions may be called from any goroutine.
type Watch struct {
	raw   syscall.RawConn
	paths []netip.Addr // this end's addresses

	mu   sync.Mutex
	seen map[pair]bytes
}

// bytes of one subflow.
type bytes struct{ acked, received, transmitted, retransmitted int64 }

// Path is what one radio of this end has carried so far, and the state of the subflow
// on it, the newest where there are several.
type Path struct {
	AckedBytes    int64 // of the stream, by the other end; data sent again on another path counts on both
	ReceivedBytes int64
	// TransmittedBytes counts what was sent again, of which RetransmittedBytes is what went
	// out again on the same subflow: what another subflow had sent before is new to this one.
	TransmittedBytes, RetransmittedBytes int64
	// Now is nil while no subflow is there.
	Now *unix.TCPInfo
}

// NewWatch follows a connection; paths are the addresses of this end's radios.
func NewWatch(raw syscall.RawConn, paths []netip.Addr) *Watch {
	return &Watch{raw: raw, paths: paths, seen: map[pair]bytes{}}
}

// Read returns the paths in the order of their addresses, and one more at the end for
// subflows of other addresses where there were any.
func (w *Watch) Read() ([]Path, error) {
	now, err := Subflows(w.raw)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum(now), nil
}

func (w *Watch) sum(now []Subflow) []Path {
	out := make([]Path, len(w.paths))
	for i := range now {
		s := &now[i]
		// The SYN counts for one of the acknowledged bytes (RFC 9293).
		w.seen[pair{s.Local, s.Remote}] = bytes{max(0, int64(s.TCP.Bytes_acked)-1), int64(s.TCP.Bytes_received), int64(s.TCP.Bytes_sent), int64(s.TCP.Bytes_retrans)}
		at := w.index(s.Local.Addr(), &out)
		out[at].Now = &s.TCP
	}
	for p, b := range w.seen {
		at := w.index(p.local.Addr(), &out)
		out[at].AckedBytes += b.acked
		out[at].ReceivedBytes += b.received
		out[at].TransmittedBytes += b.transmitted
		out[at].RetransmittedBytes += b.retransmitted
	}
	return out
}

// index is the place of an address's path in out, to which it adds one where the
// address is none of the paths'.
func (w *Watch) index(a netip.Addr, out *[]Path) int {
	for i, p := range w.paths {
		if p == a.Unmap() {
			return i
		}
	}
	if len(*out) == len(w.paths) {
		*out = append(*out, Path{})
	}
	return len(w.paths)
}

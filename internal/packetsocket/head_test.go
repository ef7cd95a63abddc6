package packetsocket

import (
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzHead: what comes from a network is read within its bounds.
func FuzzHead(f *testing.F) {
	f.Add(append([]byte{0x45, 9: unix.IPPROTO_UDP}, make([]byte, 14)...))
	f.Add(append([]byte{0x60, 0, 0, 0, 0, 8, unix.IPPROTO_FRAGMENT, 64}, make([]byte, 48)...))
	f.Add([]byte{0x4f})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := ParseHead(b)
		if ok && !h.Fragmented && !h.First && b[0]>>4 == 6 {
			t.Errorf("%v", h)
		}
		if ok && (!h.Source.IsValid() || !h.Destination.IsValid()) {
			t.Errorf("ends %v", h)
		}
	})
}

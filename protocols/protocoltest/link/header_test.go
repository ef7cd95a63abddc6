package link

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadHeader(t *testing.T) {
	t.Parallel()
	const client6, server6 = "2001:db8:1::1", "2001:db8:2::1"
	six := make([]byte, 66)
	six[0], six[6] = 0x60, unix.IPPROTO_TCP
	six[40+12] = 6 << 4 // a header of 24 bytes
	copy(six[8:], netip.MustParseAddr(client6).AsSlice())
	copy(six[24:], netip.MustParseAddr(server6).AsSlice())
	group := append([]byte(nil), six...)
	copy(group[24:], netip.MustParseAddr("ff02::16").AsSlice())
	sctp := udpPacket(clientAddress, 7, 0)
	sctp[9] = unix.IPPROTO_SCTP
	options := udpPacket(clientAddress, 7, 0)
	options[0] = 0x46
	other := udpPacket(clientAddress, 7, 0)
	other[9] = unix.IPPROTO_ICMP
	beyond := udpPacket(clientAddress, 7, 0)[:20]
	beyond[0] = 0x4f
	for name, c := range map[string]struct {
		packet  []byte
		source  string
		content int64
	}{
		"UDP": {udpPacket(clientAddress, 7, 0), clientAddress, 972}, "IP options": {options, clientAddress, 968},
		"SCTP": {sctp, clientAddress, 968}, "ICMP": {other, clientAddress, 980}, "TCP, IPv6": {six, client6, 2},
		"a group": {group, "", 0}, "short": {six[:30], "", 0}, "nothing": {nil, "", 0}, "not IP": {make([]byte, 60), "", 0},
		"a header beyond its end": {beyond, "", 0},
	} {
		h, ok := readHeader(c.packet)
		if ok != (c.source != "") || ok && h.source.String() != c.source || h.content != c.content {
			t.Errorf("%s: %+v %t, expected %d bytes of %q", name, h, ok, c.content, c.source)
		}
	}
}

// FuzzReadHeader: what is taken for an IP packet has a source address and no more
// content than bytes, and the rest of a packet does not change what flow it is of.
func FuzzReadHeader(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 3, 1, 2, 3, 4, 0, 8, 0, 0})
	f.Add([]byte{0x4f, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 3})
	f.Add(append([]byte{0x60, 0, 0, 0, 0, 4, 6, 64}, make([]byte, 36)...))
	f.Add([]byte{0x60})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := readHeader(b)
		if !ok {
			return
		}
		if !h.source.IsValid() {
			t.Fatal("no source")
		}
		if h.content < 0 || h.content > int64(len(b)) {
			t.Fatalf("content of %d bytes in %d", h.content, len(b))
		}
		if again, ok := readHeader(append(b[:len(b):len(b)], 1, 2, 3, 4)); len(b) >= 64 && (!ok || again.source != h.source || again.flow != h.flow) {
			t.Fatalf("flow %x became %x", h.flow, again.flow)
		}
	})
}

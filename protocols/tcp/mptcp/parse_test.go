package mptcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is what the kernel answers with: the attributes behind a generic header.
func message(attribute []byte) []byte { return append(make([]byte, genericHeader), attribute...) }

// TestEndpoint: what is encoded is read again, byte by byte as <linux/mptcp_pm.h> has it.
func TestEndpoint(t *testing.T) {
	for _, e := range []endpoint{
		{id: 192, address: netip.MustParseAddr("10.78.0.3"), port: 5001, flags: flagSignal},
		{id: 224, address: memoAddress},
		{id: 7, address: netip.MustParseAddr("2001:db8::3"), flags: flagSignal, device: 12},
	} {
		got, err := parseEndpoint(message(e.attribute().Serialize()))
		if err != nil || got != e {
			t.Errorf("%+v became %+v, %v", e, got, err)
		}
	}
	e := endpoint{id: 1, address: netip.MustParseAddr("10.78.0.3"), port: 0x1234, flags: flagSignal}
	b := e.attribute().Serialize()
	if kind := binary.NativeEndian.Uint16(b[2:]); kind != attributeAddress|unix.NLA_F_NESTED {
		t.Errorf("the attribute is of type %#x", kind)
	}
	want := []byte{6, 0, addressFamily, 0, unix.AF_INET, 0, 0, 0, 8, 0, address4, 0, 10, 78, 0, 3, 5, 0, addressID, 0, 1, 0, 0, 0,
		6, 0, addressPort, 0, 0x34, 0x12, 0, 0, 8, 0, addressFlags, 0, flagSignal, 0, 0, 0}
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && string(b[4:]) != string(want) {
		t.Errorf("encoded as % x, expected % x", b[4:], want)
	}
}

// TestInfo: flags and values are where struct mptcp_info has them, and a kernel that
// does not count the stream's bytes says so.
func TestInfo(t *testing.T) {
	b := make([]byte, 96)
	b[offsetSubflows] = 1
	binary.NativeEndian.PutUint32(b[offsetRetransmits:], 7)
	binary.NativeEndian.PutUint64(b[offsetAcked:], 1<<40)
	if i, err := parseInfo(b); err != nil || i != (Info{1, 7, 1 << 40}) {
		t.Errorf("%+v, %v", i, err)
	}
	if i, err := parseInfo(b[:48]); err != nil || i.AckedBytes != -1 || i.Retransmits != 7 {
		t.Errorf("of Linux 6.1: %+v, %v", i, err)
	}
	binary.NativeEndian.PutUint32(b[offsetFlags:], flagFallback)
	if _, err := parseInfo(b); !errors.Is(err, ErrFallback) {
		t.Errorf("with the flag of a fallback: %v", err)
	}
	if _, err := parseInfo(b[:8]); err == nil {
		t.Error("8 bytes were taken for MPTCP_INFO")
	}
}

// answer is what the kernel writes for subflows: elements of so many bytes.
func answer(count, kernel int, each []byte) []byte {
	b := make([]byte, arrayHeader, arrayHeader+len(each))
	binary.NativeEndian.PutUint32(b, arrayHeader)
	binary.NativeEndian.PutUint32(b[4:], uint32(count))
	binary.NativeEndian.PutUint32(b[8:], uint32(kernel))
	return append(b, each...)
}

func twoPairs() []byte {
	b := make([]byte, 2*pairSize)
	for i, at := range []int{0, pairSize / 2, pairSize, pairSize + pairSize/2} {
		binary.NativeEndian.PutUint16(b[at:], unix.AF_INET)
		binary.BigEndian.PutUint16(b[at+2:], uint16(5000+i))
		copy(b[at+4:], []byte{10, byte(77 + i/2), 0, byte(1 + i%2)})
	}
	return answer(2, pairSize, b)
}

func TestSubflowArrays(t *testing.T) {
	pairs, err := parsePairs(twoPairs())
	if err != nil || len(pairs) != 2 || pairs[1].local != netip.MustParseAddrPort("10.78.0.1:5002") || pairs[1].remote != netip.MustParseAddrPort("10.78.0.2:5003") {
		t.Errorf("%v, %v", pairs, err)
	}
	// An older kernel's struct is shorter: what it does not have stays 0.
	const short = 232
	b := make([]byte, 2*short)
	binary.NativeEndian.PutUint64(b[short+int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked)):], 4711)
	infos, err := parseTCPInfos(answer(2, short, b))
	if err != nil || len(infos) != 2 || infos[0].Bytes_acked != 0 || infos[1].Bytes_acked != 4711 || infos[1].Total_rto != 0 {
		t.Errorf("%d, %v", len(infos), err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "no element": answer(1, pairSize, nil), "too many": answer(1000, pairSize, make([]byte, 1000*pairSize)),
		"elements of no size": answer(1, 0, make([]byte, pairSize)), "short elements": answer(1, 8, make([]byte, 8)),
		"no family": answer(1, pairSize, make([]byte, pairSize)),
	} {
		if _, err := parsePairs(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestWatch: what an ended subflow had carried still counts, and a subflow of another
// address is beside the paths.
func TestWatch(t *testing.T) {
	one, two := netip.MustParseAddrPort("10.77.0.1:1"), netip.MustParseAddrPort("10.78.0.1:2")
	w := NewWatch(nil, []netip.Addr{one.Addr(), two.Addr()})
	flow := func(local netip.AddrPort, acked uint64) Subflow {
		return Subflow{Local: local, Remote: netip.MustParseAddrPort("10.77.0.3:3"), TCP: unix.TCPInfo{Bytes_acked: acked + 1}}
	}
	w.sum([]Subflow{flow(one, 10), flow(two, 20)})
	got := w.sum([]Subflow{flow(one, 100), flow(netip.AddrPortFrom(two.Addr(), 9), 5)})
	if len(got) != 2 || got[0].AckedBytes != 100 || got[1].AckedBytes != 25 || got[0].Now == nil || got[1].Now == nil {
		t.Errorf("%+v", got)
	}
	got = w.sum([]Subflow{flow(netip.MustParseAddrPort("192.0.2.1:1"), 3)})
	if len(got) != 3 || got[0].AckedBytes != 100 || got[0].Now != nil || got[2].AckedBytes != 3 {
		t.Errorf("%+v", got)
	}
}

// FuzzParse: no answer makes a parser fail otherwise than with an error, and elements
// lie within their answer.
func FuzzParse(f *testing.F) {
	f.Add(twoPairs())
	f.Add(message((&endpoint{id: 1, address: memoAddress, port: 1}).attribute().Serialize()))
	f.Add(answer(1, 1<<31, make([]byte, 16)))
	f.Add(make([]byte, 96))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := parseEndpoint(b); err == nil && !e.address.IsValid() {
			t.Error("an endpoint without an address")
		}
		_, _ = parseLimits(b)
		if i, err := parseInfo(b); err == nil && len(b) < minimumInfo {
			t.Errorf("%+v of %d bytes", i, len(b))
		}
		if pairs, err := parsePairs(b); err == nil && arrayHeader+len(pairs)*pairSize > len(b) {
			t.Errorf("%d pairs in %d bytes", len(pairs), len(b))
		}
		if infos, err := parseTCPInfos(b); err == nil && len(infos) > maxSubflows {
			t.Errorf("%d subflows", len(infos))
		}
	})
}

package pcapng

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func sample() []byte {
	b := AppendHeader(nil, "test", []Interface{{Name: "client-relay", Description: "first hop", BitsPerSecond: 2_000_000}, {Name: "x"}})
	for n := range 5 {
		p := make([]byte, 20+n)
		p[0] = 0x45
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		flags, comment := FlagOutbound, ""
		if n == 3 {
			flags, comment = FlagOutbound|FlagCRCError, "lost by the channel"
		}
		b = AppendPacket(b, n%2, 1_700_000_000_123_456_789+uint64(n), p, flags, comment)
	}
	return b
}

func TestBlocksAreWhole(t *testing.T) {
	b := sample()
	blocks := 0
	for len(b) > 0 {
		n := binary.LittleEndian.Uint32(b[4:])
		if n%4 != 0 || int(n) > len(b) || binary.LittleEndian.Uint32(b[n-4:]) != n {
			t.Fatalf("block %d has length %d, then %d, of %d bytes", blocks, n, binary.LittleEndian.Uint32(b[n-4:]), len(b))
		}
		b = b[n:]
		blocks++
	}
	if blocks != 8 {
		t.Errorf("%d blocks, expected a section, two interfaces and five packets", blocks)
	}
}

func TestReadByTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs tshark")
	}
	path := filepath.Join(t.TempDir(), "x.pcapng")
	if err := os.WriteFile(path, sample(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-n", "-r", path, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.comment", "-e", "frame.packet_flags_crc_error").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := `client-relay	1700000000.123456789	20		0
x	1700000000.123456790	21		0
client-relay	1700000000.123456791	22		0
x	1700000000.123456792	23	lost by the channel	1
client-relay	1700000000.123456793	24		0
`
	if string(bytes.ReplaceAll(bytes.ReplaceAll(out, []byte("False"), []byte("0")), []byte("True"), []byte("1"))) != want {
		t.Errorf("tshark reads\n%s\nexpected\n%s", out, want)
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	b, p := make([]byte, 0, 4096), make([]byte, 1400)
	if a := testing.AllocsPerRun(100, func() { b = AppendPacket(b[:0], 0, 1, p, FlagOutbound, "dropped: queue full") }); a != 0 {
		t.Errorf("%g allocations", a)
	}
}

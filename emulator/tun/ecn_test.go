package tun

import (
	"encoding/binary"
	"testing"
)

func checksum(ip []byte) uint16 {
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// FuzzMarkCongestion: a valid header stays valid, and only the mark changes.
func FuzzMarkCongestion(f *testing.F) {
	f.Add([]byte{0x45, 0x02, 0, 60, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 3})
	f.Add([]byte{0x45, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 20 {
			return
		}
		ip := append([]byte(nil), b[:20]...)
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], checksum(ip))
		was := append([]byte(nil), ip...)
		markCongestion(ip)
		if !capable(ip) || ip[1] != was[1]|3 || checksum(ip) != 0 && checksum(ip) != 0xffff {
			t.Fatalf("% x became % x, checksum %04x", was, ip, checksum(ip))
		}
		ip[1] = was[1]
		copy(ip[10:12], was[10:12])
		if string(ip) != string(was) {
			t.Fatalf("more than the mark has changed: % x", ip)
		}
	})
}

package wire

import "encoding/binary"

// Content fills b with the bytes of the stream of a seed, from offset
// on. The stream is splitmix64 in counter mode: its k-th eight bytes (from 0)
// are mix(seed + (k+1)·0x9E3779B97F4A7C15) in little-endian order, with
//
//	z = (z ^ z>>30) · 0xBF58476D1CE4E5B9
//	z = (z ^ z>>27) · 0x94D049BB133111EB
//	mix = z ^ z>>31
//
// Any position can be made without the ones before it, in any language, in a
// few lines, faster than any radio; and it does not compress.
func Content(b []byte, seed, offset uint64) {
	k := offset / 8
	if r := offset % 8; r != 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], contentWord(seed, k))
		n := copy(b, w[r:])
		b = b[n:]
		k++
	}
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, contentWord(seed, k))
		k++
	}
	if len(b) > 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], contentWord(seed, k))
		copy(b, w[:])
	}
}

// verify reports the index of the first byte of b that is not the stream of
// seed at offset, or -1 when all are.
func verify(b []byte, seed, offset uint64) int {
	var want [4096]byte
	for at := 0; at < len(b); {
		n := min(len(want), len(b)-at)
		Content(want[:n], seed, offset+uint64(at))
		if string(want[:n]) != string(b[at:at+n]) {
			for i := range n {
				if want[i] != b[at+i] {
					return at + i
				}
			}
		}
		at += n
	}
	return -1
}

func contentWord(seed, k uint64) uint64 {
	z := seed + (k+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

package wire

import (
	"bytes"
	"math"
	"testing"
)

// FuzzContent: any part of the stream is the same, however it is asked for,
// and verify finds the one byte that is not.
func FuzzContent(f *testing.F) {
	f.Add(uint64(1), uint64(5), uint16(16), uint16(3))
	f.Add(uint64(math.MaxUint64), uint64(1<<40-1), uint16(5000), uint16(4097))
	f.Fuzz(func(t *testing.T, seed, offset uint64, size, at uint16) {
		offset %= 1 << 40
		whole := make([]byte, size)
		Content(whole, seed, offset)
		parts := make([]byte, size)
		cut := 0
		if size > 0 {
			cut = int(at) % int(size)
		}
		Content(parts[:cut], seed, offset)
		Content(parts[cut:], seed, offset+uint64(cut))
		if !bytes.Equal(whole, parts) {
			t.Fatalf("seed %d offset %d size %d: made in two parts at %d it is another", seed, offset, size, cut)
		}
		if i := verify(whole, seed, offset); i != -1 {
			t.Fatalf("verify finds fault at %d", i)
		}
		if size > 0 {
			whole[cut] ^= 0x10
			if i := verify(whole, seed, offset); i != cut {
				t.Fatalf("verify finds fault at %d, expected %d", i, cut)
			}
		}
	})
}

func BenchmarkContent(b *testing.B) {
	buf := make([]byte, 32<<10)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		Content(buf, 1, 0)
	}
}

func BenchmarkVerify(b *testing.B) {
	buf := make([]byte, 32<<10)
	Content(buf, 1, 0)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if verify(buf, 1, 0) >= 0 {
			b.Fatal("not verified")
		}
	}
}

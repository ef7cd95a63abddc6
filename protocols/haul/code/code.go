// Package code is the erasure code of Haul: a systematic random linear code over GF(2^8)
// in a sliding window. Source symbols travel as they are; a repair is a linear combination
// of the symbols of a window, and each repair that arrives replaces one symbol that did
// not, whichever it is.
//
// It is the code of RFC 8681 (over GF(2^8), density threshold 15, with the sliding windows
// of RFC 8680), and differs from it in this:
//   - A coefficient is a hash of the repair's seed and the symbol's number, not the output
//     of TinyMT32 in the order of the window. A symbol has the same coefficient in every
//     window of the same seed, and both ends can leave symbols out.
//   - A repair names the symbols of its window that it leaves out.
//   - Symbols have different lengths, and a repair is as long as the longest of them; RFC
//     8681 has one length for a whole session. A symbol's length of two bytes precedes it,
//     as in RFC 8681, but no flow identifier.
//   - Symbols are numbered with 64 bits and never wrap around.
//
// The field is that of RFC 8681: polynomials modulo x^8+x^4+x^3+x^2+1.
//
// The package is pure: it knows no packets, no time and no random source. Nothing in it may
// be used by several goroutines at once.
package code

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/klauspost/reedsolomon"
)

// ID numbers source symbols: from 0, without gaps.
type ID = uint64

// Symbol is one source symbol: up to MaxSymbol bytes.
type Symbol struct {
	ID   ID
	Data []byte
}

const (
	MaxSymbol = 9000 // largest data of a symbol
	MaxWindow = 256  // most source symbols that one repair combines
	// MaxAhead is how far beyond the newest symbol that a decoder knows a repair may begin.
	// Ten times as many symbols as 100 Mbit/s and a second of delay keep under way.
	MaxAhead = 1 << 16
)

// lengthBytes is the size of the length that precedes the data of a symbol in a combination.
const lengthBytes = 2

// Repair describes one repair: which symbols it combines, and how.
type Repair struct {
	First ID     // first symbol of the range
	Count int    // 1..MaxWindow; symbols First..First+Count-1
	Skip  []byte // bitmap (bit i of byte i/8, lowest bit first): symbol First+i is not in it; symbols beyond its end are
	Seed  uint16 // of the coefficients
	Data  []byte // what Encode made of the symbols
}

// Has reports whether the repair combines symbol id.
func (r *Repair) Has(id ID) bool {
	if id < r.First || id-r.First >= uint64(max(r.Count, 0)) {
		return false
	}
	i := id - r.First
	return i/8 >= uint64(len(r.Skip)) || r.Skip[i/8]>>(i%8)&1 == 0
}

// Coefficient returns what symbol id is multiplied with in a repair of this seed: 1 to 255,
// never 0. In arithmetic modulo 2^64, with XOR as ^ and shifts that fill with zeros:
//
//	z = (id ^ seed·2^48) + 0x9E3779B97F4A7C15
//	z = (z ^ z>>30) · 0xBF58476D1CE4E5B9
//	z = (z ^ z>>27) · 0x94D049BB133111EB
//	z = z ^ z>>31
//	coefficient = 1 + ⌊255·z / 2^64⌋
//
// z is the first output of SplitMix64 in the state id ^ seed·2^48; every bit of the input
// changes every bit of it with a probability near one half.
func Coefficient(seed uint16, id ID) byte {
	z := (id ^ uint64(seed)<<48) + 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	high, _ := bits.Mul64(255, z)
	return byte(1 + high)
}

// Encode combines symbols into dst[:0], with a larger array if dst is too small, and returns
// it. The combination is the sum of coefficient times (length || data || zeros); the length
// has two bytes, the high one first. The result has 2 bytes more than the longest symbol.
// The symbols are to be those of the repair that it becomes, in ascending order; one of more
// than MaxSymbol bytes is a mistake of the program and panics.
func Encode(dst []byte, seed uint16, symbols []Symbol) []byte {
	longest := 0
	for i := range symbols {
		longest = max(longest, len(symbols[i].Data))
	}
	if longest > MaxSymbol {
		panic(fmt.Sprintf("code: Encode: a symbol has %d bytes, at most %d are allowed", longest, MaxSymbol))
	}
	size := lengthBytes + longest
	if cap(dst) < size {
		dst = make([]byte, size)
	} else {
		dst = dst[:size]
		clear(dst)
	}
	var length [lengthBytes]byte
	for i := range symbols {
		c := Coefficient(seed, symbols[i].ID)
		binary.BigEndian.PutUint16(length[:], uint16(len(symbols[i].Data)))
		addMultiple(dst, c, length[:])
		addMultiple(dst[lengthBytes:], c, symbols[i].Data)
	}
	return dst
}

var field reedsolomon.LowLevel

// addMultiple adds c times src to dst, which is at least as long.
func addMultiple(dst []byte, c byte, src []byte) { field.GalMulSliceXor(c, src, dst) }

// scale multiplies data by c, in place.
func scale(data []byte, c byte) { field.GalMulSlice(c, data, data) }

func divide(a, b byte) byte {
	quotient := [1]byte{a}
	scale(quotient[:], reedsolomon.Inv(b))
	return quotient[0]
}

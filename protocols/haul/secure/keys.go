package secure

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/flynn/noise"
)

// epochBits says when the key of a direction changes: with every 2^26 packet
// numbers. RFC 9001, appendix B.1.1, allows 2^28 packets of up to 2 KiB for one
// key of AES-GCM.
const epochBits = 26

// Keys protects the packets of one connection. Seal and Open may run at the same
// time; neither may run twice at the same time.
//
// Each direction has its own key, of Noise's Split. It is that of the packet
// numbers below 2^26. The key of later ones, whose number divided by 2^26 is e,
// is HMAC-SHA256(key, "haul epoch" | e), e in 8 bytes, big-endian.
type Keys struct {
	out, in direction
	plain   bool
}

// direction is one direction's key. The scratch is here because arguments of
// an interface's method are allocated otherwise.
type direction struct {
	key      [32]byte
	current  epoch
	previous epoch // packets that were overtaken by a change of keys
	scratch  [12]byte
	crc      uint32 // plain: what the CRC begins with
}

type epoch struct {
	number uint64
	aead   cipher.AEAD // nil: none
}

func newKeys(out, in *noise.CipherState) *Keys {
	k := &Keys{}
	k.out.key, k.in.key = out.UnsafeKey(), in.UnsafeKey()
	k.out.current, k.in.current = k.out.epoch(0), k.in.epoch(0)
	return k
}

func plainKeys(prologue, hello, answer []byte, initiator bool) *Keys {
	k := &Keys{plain: true}
	k.out.crc = crcSeed("haul initiator", prologue, hello, answer)
	k.in.crc = crcSeed("haul responder", prologue, hello, answer)
	if !initiator {
		k.out.crc, k.in.crc = k.in.crc, k.out.crc
	}
	return k
}

// Overhead is by how many bytes a sealed body is longer: 16, or 4 if plain.
func (k *Keys) Overhead() int {
	if k.plain {
		return crcSize
	}
	return tagSize
}

// Seal appends the sealed body to dst. The header is protected from change, and
// is not part of the result. A number must never be used twice. dst and body
// may share memory only if dst is body[:0]. Nothing is allocated if dst has
// room for the body and [Keys.Overhead].
func (k *Keys) Seal(dst, header []byte, number uint64, body []byte) []byte {
	d := &k.out
	if k.plain {
		sum := d.sum(header, number, body)
		return binary.BigEndian.AppendUint32(append(dst, body...), sum)
	}
	if e := number >> epochBits; e != d.current.number {
		d.current = d.epoch(e)
	}
	return d.current.aead.Seal(dst, d.nonce(number), body, header)
}

// Open appends the body of a sealed one to dst; dst = sealed[:0] opens in place.
// The header must be as it was for Seal. The error is [ErrNotAuthentic]; in
// place, the sealed bytes are lost then. Whether the number was seen before is
// asked of [Replay]. Nothing is allocated if dst has room.
func (k *Keys) Open(dst, header []byte, number uint64, sealed []byte) ([]byte, error) {
	n := len(sealed) - k.Overhead()
	if n < 0 || number == math.MaxUint64 { // Noise reserves the last nonce
		return dst, ErrNotAuthentic
	}
	d := &k.in
	if k.plain {
		if d.sum(header, number, sealed[:n]) != binary.BigEndian.Uint32(sealed[n:]) {
			return dst, ErrNotAuthentic
		}
		return append(dst, sealed[:n]...), nil
	}
	e := d.find(number >> epochBits)
	body, err := e.aead.Open(dst, d.nonce(number), sealed, header)
	if err != nil {
		return dst, ErrNotAuthentic
	}
	// Only an authentic packet changes which keys are kept.
	if e.number > d.current.number {
		d.previous, d.current = d.current, e
	}
	return body, nil
}

func (d *direction) find(number uint64) epoch {
	switch {
	case number == d.current.number:
		return d.current
	case number == d.previous.number && d.previous.aead != nil:
		return d.previous
	default:
		return d.epoch(number)
	}
}

func (d *direction) epoch(number uint64) epoch {
	key := d.key
	if number > 0 {
		mac := hmac.New(sha256.New, d.key[:])
		mac.Write(binary.BigEndian.AppendUint64([]byte("haul epoch"), number))
		mac.Sum(key[:0])
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // of 32 bytes it takes any key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // of AES it takes any
	}
	return epoch{number: number, aead: aead}
}

func (d *direction) nonce(number uint64) []byte {
	binary.BigEndian.PutUint64(d.scratch[4:], number)
	return d.scratch[:]
}

func (d *direction) sum(header []byte, number uint64, body []byte) uint32 {
	sum := crc32.Update(d.crc, castagnoli, header)
	sum = crc32.Update(sum, castagnoli, d.nonce(number)[4:])
	return crc32.Update(sum, castagnoli, body)
}

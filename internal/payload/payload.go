// Package payload makes the payload of transfers: bytes that follow from a key and that
// nobody who sees some of them can continue (AES-128 in counter mode, NIST SP 800-38A).
// A driver is given the bytes and not the key, so that its server cannot have what did
// not arrive.
//
// Comes in: a key, and how many bytes. Goes out: the bytes, and their SHA-256.
package payload

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"sync"
)

// Key selects a payload.
type Key [16]byte

// NewKey is the key of a seed, and of a secret that drivers do not have (empty: none).
func NewKey(secret []byte, seed uint64) Key {
	h := sha256.New()
	h.Write([]byte("linktrial payload v2\x00"))
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	h.Write(secret)
	return Key(h.Sum(nil)[:len(Key{})])
}

// stream is the key's stream from an offset on.
func (k Key) stream(offset int64) cipher.Stream {
	block, err := aes.NewCipher(k[:])
	if err != nil { // the length is one that AES has
		panic(err)
	}
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(offset)/aes.BlockSize)
	s := cipher.NewCTR(block, counter[:])
	var skip [aes.BlockSize]byte
	s.XORKeyStream(skip[:offset%aes.BlockSize], skip[:offset%aes.BlockSize])
	return s
}

// Fill makes the bytes of the key's payload from an offset on.
func (k Key) Fill(b []byte, offset int64) {
	clear(b)
	k.stream(offset).XORKeyStream(b, b)
}

// A driver need not have sent what it was given, and how much it has is known at its end:
// the digest of the last bytes is kept for each of some places, in bytes. More than
// [behind] is in no pipe and in no buffer of its two ends.
const (
	markEvery = 256 << 10
	behind    = 4 << 20
)

// piece is how much is made at a time, in bytes: it stays in the processor's cache.
const piece = 64 << 10

// Source is the payload of one transfer as it is handed to a driver. Reading and Digest
// may be called from different goroutines.
type Source struct {
	key  Key
	size int64

	mu    sync.Mutex
	at    int64 // made so far
	made  cipher.Stream
	sum   hash.Cloner // of all of it
	marks []mark      // the last ones, in order
}

// mark is the digest of all bytes before a place.
type mark struct {
	at  int64
	sum hash.Cloner
}

func newSum() hash.Cloner { return sha256.New().(hash.Cloner) }

// NewSource is the payload of a key, of so many bytes at most.
func NewSource(key Key, size int64) *Source {
	return &Source{key: key, size: size, made: key.stream(0), sum: newSum(), marks: []mark{{sum: newSum()}}}
}

// Read implements [io.Reader]; io.EOF comes after the last byte.
func (s *Source) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(min(int64(len(b)), s.size-s.at))
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	clear(b[:n])
	s.made.XORKeyStream(b[:n], b[:n])
	s.sum.Write(b[:n])
	s.at += int64(n)
	if s.at-s.marks[len(s.marks)-1].at >= markEvery {
		if s.marks[0].at < s.at-behind {
			s.marks = append(s.marks[:0], s.marks[1:]...)
		}
		s.marks = append(s.marks, mark{s.at, clone(s.sum)})
	}
	return n, nil
}

func clone(sum hash.Cloner) hash.Cloner {
	c, err := sum.Clone()
	if err != nil { // SHA-256 has all of its state with it
		panic(err)
	}
	return c
}

// WriteTo implements [io.WriterTo].
func (s *Source) WriteTo(w io.Writer) (written int64, err error) {
	b := make([]byte, piece)
	for {
		n, err := s.Read(b)
		if err != nil {
			return written, nil
		}
		n, err = w.Write(b[:n])
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// Digest is the SHA-256 of the first size bytes, in lower-case hexadecimal, whether they
// have been read or not.
func (s *Source) Digest(size int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := mark{sum: newSum()} // where the driver has swallowed more than pipes hold
	for _, m := range append(s.marks, mark{s.at, s.sum}) {
		if m.at <= size {
			from = m
		}
	}
	sum, stream, b := clone(from.sum), s.key.stream(from.at), make([]byte, piece)
	for at := from.at; at < size; {
		b = b[:min(piece, size-at)]
		clear(b)
		stream.XORKeyStream(b, b)
		sum.Write(b)
		at += int64(len(b))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Arrived is the payload of one transfer as a server hands it over, in order. Its zero
// value is none.
type Arrived struct {
	Bytes int64
	sum   hash.Hash
}

// Add takes the next bytes.
func (a *Arrived) Add(b []byte) {
	if a.sum == nil {
		a.sum = sha256.New()
	}
	a.sum.Write(b)
	a.Bytes += int64(len(b))
}

// Digest is the SHA-256 of all bytes so far, in lower-case hexadecimal.
func (a *Arrived) Digest() string {
	a.Add(nil)
	return hex.EncodeToString(a.sum.Sum(nil))
}

// Input is the standard input of a driver: its document in one line, and then the payload
// (nil: none).
func Input(document []byte, payload *Source) io.Reader {
	line := bytes.NewReader(append(bytes.TrimRight(document, "\n"), '\n'))
	if payload == nil {
		return line
	}
	return io.MultiReader(line, payload)
}

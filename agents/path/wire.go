package path

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"linktrial/executor/runsheet"
)

// Port is that of the responders.
const Port = runsheet.ExchangePort

// Key authenticates the messages of one run.
type Key [sha256.Size]byte

// NewKey makes the key of a run out of what its nodes have of it and others have not: the
// signature of its sheet.
func NewKey(run string, signature []byte) Key {
	m := hmac.New(sha256.New, signature)
	m.Write([]byte("linktrial path exchange\x00" + run))
	return Key(m.Sum(nil))
}

// A message is, in bytes, with numbers in network byte order:
//
//	 0  4  magic
//	 4  1  version
//	 5  1  question or answer
//	 6  2  length of the text
//	 8  2  bytes of padding that follow the message
//	10 16  nonce of the question
//	26 16  tag: the first bytes of HMAC-SHA-256 over all before it, and the text
//	42     text: JSON
//
// The padding is not authenticated: it says nothing. No answer is longer than its question,
// so that nobody gains by asking in another's name.
const (
	magic      = "LTPX"
	version    = 1
	nonceBytes = 16
	tagAt      = 26
	headBytes  = 42
	maxText    = 4096
)

type kind byte

const (
	question kind = 1
	answer   kind = 2
)

type message struct {
	kind    kind
	nonce   [nonceBytes]byte
	padding int
	text    []byte
}

func (m *message) encode(key *Key) []byte {
	b := make([]byte, headBytes, headBytes+len(m.text))
	copy(b, magic)
	b[4], b[5] = version, byte(m.kind)
	binary.BigEndian.PutUint16(b[6:], uint16(len(m.text)))
	binary.BigEndian.PutUint16(b[8:], uint16(m.padding))
	copy(b[10:], m.nonce[:])
	copy(b[tagAt:], tag(key, b[:tagAt], m.text))
	return append(b, m.text...)
}

// padded is the message and its padding.
func (m *message) padded(key *Key) []byte {
	return append(m.encode(key), make([]byte, m.padding)...)
}

// textLength reads how long a message's text is from its head.
func textLength(head []byte) (int, error) {
	switch {
	case len(head) < headBytes:
		return 0, fmt.Errorf("%d bytes, expected %d or more", len(head), headBytes)
	case string(head[:4]) != magic || head[4] != version:
		return 0, errors.New("not a message of this version")
	}
	n := int(binary.BigEndian.Uint16(head[6:]))
	if n > maxText {
		return 0, fmt.Errorf("a text of %d bytes, expected at most %d", n, maxText)
	}
	return n, nil
}

// decode reads a message without its padding.
func decode(key *Key, b []byte) (m message, err error) {
	n, err := textLength(b)
	if err != nil {
		return message{}, err
	}
	if len(b) != headBytes+n {
		return message{}, fmt.Errorf("%d bytes, expected %d", len(b), headBytes+n)
	}
	if !hmac.Equal(b[tagAt:headBytes], tag(key, b[:tagAt], b[headBytes:])) {
		return message{}, errors.New("of another run, or of nobody who takes part in it")
	}
	m = message{kind: kind(b[5]), padding: int(binary.BigEndian.Uint16(b[8:])), text: b[headBytes:]}
	copy(m.nonce[:], b[10:])
	return m, nil
}

// decodeDatagram reads a message with its padding.
func decodeDatagram(key *Key, b []byte) (message, error) {
	n, err := textLength(b)
	if err != nil {
		return message{}, err
	}
	m, err := decode(key, b[:min(len(b), headBytes+n)])
	if err == nil && len(b) != headBytes+n+m.padding {
		err = fmt.Errorf("%d bytes, expected %d", len(b), headBytes+n+m.padding)
	}
	return m, err
}

func tag(key *Key, head, text []byte) []byte {
	h := hmac.New(sha256.New, key[:])
	h.Write(head)
	h.Write(text)
	return h.Sum(nil)[:headBytes-tagAt]
}

package secure

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/flynn/noise"
)

// seed is the random bytes of one end's ephemeral key, read from the start
// each time that a handshake state is made.
type seed [keySize]byte

func (s *seed) Read(p []byte) (int, error) { return copy(p, s[:]), nil }

func draw(c Config, random io.Reader) (*seed, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := new(seed)
	if c.Plain {
		return s, nil
	}
	if random == nil {
		return nil, errors.New("no source of random bytes for an ephemeral key")
	}
	if _, err := io.ReadFull(random, s[:]); err != nil {
		return nil, fmt.Errorf("read random bytes for an ephemeral key: %w", err)
	}
	return s, nil
}

// Initiator is the end that begins: a client. Its methods must not be called at
// the same time.
type Initiator struct {
	config   Config
	prologue []byte
	seed     *seed
	payload  []byte
	hello    []byte // nil before Hello
}

// NewInitiator prepares a handshake. The prologue is what both ends know
// already and must have alike, such as a version and connection identifiers.
// Random is read here and nowhere else.
func NewInitiator(c Config, prologue []byte, random io.Reader) (*Initiator, error) {
	s, err := draw(c, random)
	if err != nil {
		return nil, err
	}
	return &Initiator{config: c, prologue: slices.Clone(prologue), seed: s}, nil
}

// Hello is the first message. Its payload is encrypted with a pre-shared key
// only; without one, anybody can read it, and a change to it is noticed when
// the answer arrives. Such a payload can be replayed: it must do no harm when
// it arrives twice. Called again with the same payload, Hello returns the same
// message; another payload needs another Initiator.
func (i *Initiator) Hello(payload []byte) ([]byte, error) {
	if i.hello != nil {
		// The same key and nonce must not encrypt two payloads.
		if !bytes.Equal(payload, i.payload) {
			return nil, errors.New("a hello with another payload exists: make another initiator")
		}
		return slices.Clone(i.hello), nil
	}
	i.payload = slices.Clone(payload)
	hello, _, err := i.write()
	if err != nil {
		return nil, err
	}
	i.hello = hello
	return slices.Clone(hello), nil
}

// write makes the hello and the Noise state after it, nil if plain.
func (i *Initiator) write() ([]byte, *noise.HandshakeState, error) {
	c := i.config
	message := make([]byte, modeSize, len(i.payload)+c.HelloOverhead())
	message[0] = c.mode()
	if c.Plain {
		message = append(message, i.payload...)
		return appendCRC(message, helloSeed(i.prologue)), nil, nil
	}
	state, err := c.noise(i.prologue, i.seed, true)
	if err != nil {
		return nil, nil, fmt.Errorf("first message of the handshake: %w", err)
	}
	if message, _, _, err = state.WriteMessage(message, i.payload); err != nil {
		return nil, nil, fmt.Errorf("first message of the handshake: %w", err)
	}
	if c.PSK == nil {
		message = appendCRC(message, helloSeed(i.prologue))
	}
	return message, state, nil
}

// Finish reads the answer and returns its payload and the keys. After an error
// the initiator is as it was, so that a genuine answer that comes later works.
func (i *Initiator) Finish(message []byte) (payload []byte, k *Keys, err error) {
	if i.hello == nil {
		return nil, nil, errors.New("an answer is read after the hello is made: call Hello first")
	}
	c := i.config
	if len(message) == modeSize && message[0] == c.mode() {
		return nil, nil, fmt.Errorf("%w: the other end could not read the hello; it has another pre-shared key", ErrMismatch)
	}
	body, err := c.body(message, c.AnswerOverhead())
	if err != nil {
		return nil, nil, fmt.Errorf("answer of the handshake: %w", err)
	}
	if c.Plain {
		if !checkCRC(message, answerSeed(i.prologue, i.hello)) {
			return nil, nil, fmt.Errorf("answer of the handshake: %w", ErrNotAuthentic)
		}
		return slices.Clone(body[:len(body)-crcSize]), plainKeys(i.prologue, i.hello, message, true), nil
	}
	// A fresh state each time: one that has read a wrong message is spoilt where
	// the key in it was of low order.
	_, state, err := i.write()
	if err != nil {
		return nil, nil, err
	}
	payload, first, second, err := state.ReadMessage(nil, body)
	if err != nil {
		return nil, nil, fmt.Errorf("answer of the handshake: %w", ErrNotAuthentic)
	}
	return payload, newKeys(first, second), nil
}

// Responder is the end that answers: a server.
type Responder struct {
	config   Config
	prologue []byte
	hello    []byte
	state    *noise.HandshakeState // nil if plain
}

// NewResponder reads an initiator's hello. It returns the hello's payload, so
// that it can be inspected before anything is answered. Random is read here and
// nowhere else.
func NewResponder(c Config, prologue, hello []byte, random io.Reader) (*Responder, []byte, error) {
	if err := c.Check(); err != nil {
		return nil, nil, err
	}
	body, err := c.body(hello, c.HelloOverhead())
	if err != nil {
		return nil, nil, fmt.Errorf("hello of the handshake: %w", err)
	}
	if c.PSK == nil {
		if !checkCRC(hello, helloSeed(prologue)) {
			return nil, nil, fmt.Errorf("hello of the handshake: %w", ErrNotAuthentic)
		}
		body = body[:len(body)-crcSize]
	}
	if c.Plain {
		return &Responder{config: c, prologue: slices.Clone(prologue), hello: slices.Clone(hello)}, slices.Clone(body), nil
	}
	s, err := draw(c, random)
	if err != nil {
		return nil, nil, err
	}
	state, err := c.noise(prologue, s, false)
	if err != nil {
		return nil, nil, fmt.Errorf("hello of the handshake: %w", err)
	}
	payload, _, _, err := state.ReadMessage(nil, body)
	if err != nil && c.PSK != nil {
		return nil, nil, fmt.Errorf("hello of the handshake: %w: the other end has another pre-shared key, or the message is %w", ErrMismatch, ErrNotAuthentic)
	} else if err != nil {
		return nil, nil, fmt.Errorf("hello of the handshake: %w", ErrNotAuthentic)
	}
	return &Responder{config: c, state: state}, payload, nil
}

// Answer is the second message; the handshake is complete with it. It is made
// once: send the same bytes again where they may have been lost.
func (r *Responder) Answer(payload []byte) ([]byte, *Keys, error) {
	c := r.config
	message := make([]byte, modeSize, len(payload)+c.AnswerOverhead())
	message[0] = c.mode()
	if c.Plain {
		message = appendCRC(append(message, payload...), answerSeed(r.prologue, r.hello))
		return message, plainKeys(r.prologue, r.hello, message, false), nil
	}
	switch {
	case r.state.MessageIndex() != 1:
		return nil, nil, errors.New("the answer of the handshake exists: send the same again")
	case len(payload) > noise.MaxMsgLen:
		return nil, nil, fmt.Errorf("answer of the handshake: payload of %d bytes, expected at most %d", len(payload), noise.MaxMsgLen)
	}
	message, first, second, err := r.state.WriteMessage(message, payload)
	if err != nil {
		// What is left: the initiator's key is of low order (RFC 7748, section 6.1).
		return nil, nil, fmt.Errorf("answer of the handshake: %w: %w", ErrNotAuthentic, err)
	}
	return message, newKeys(second, first), nil
}

// The CRCs of different messages and connections begin with different values,
// so that one is not taken for another.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcSeed is the first 4 bytes of SHA-256(label | length and bytes of each
// part). It is no CRC itself: one over a message that ends with its own CRC
// depends on little but the message's length.
func crcSeed(label string, parts ...[]byte) uint32 {
	h := sha256.New()
	h.Write([]byte(label))
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		h.Write(p)
	}
	return binary.BigEndian.Uint32(h.Sum(nil))
}

func helloSeed(prologue []byte) uint32 { return crcSeed("haul hello", prologue) }

func answerSeed(prologue, hello []byte) uint32 { return crcSeed("haul answer", prologue, hello) }

func appendCRC(message []byte, seed uint32) []byte {
	return binary.BigEndian.AppendUint32(message, crc32.Update(seed, castagnoli, message))
}

// checkCRC reports whether a message of at least 4 bytes ends with its CRC.
func checkCRC(message []byte, seed uint32) bool {
	n := len(message) - crcSize
	return crc32.Update(seed, castagnoli, message[:n]) == binary.BigEndian.Uint32(message[n:])
}

package secure

import (
	"errors"
	"fmt"

	"github.com/flynn/noise"
)

// ErrMismatch is the error of a message from an end that has another mode or
// another pre-shared key. The message may be a forgery, too: an initiator goes
// on waiting for a genuine one, and reports the mismatch if none comes.
var ErrMismatch = errors.New("security settings of the two ends differ")

// ErrNotAuthentic is the error of a message or packet that was damaged, forged,
// or made for another connection.
var ErrNotAuthentic = errors.New("not authentic: damaged, forged, or of another connection")

// Config is what both ends must have alike.
type Config struct {
	PSK   []byte // the pre-shared key, 32 bytes; nil: none
	Plain bool   // no encryption; damage is found by CRC-32C, forgery is not
}

// PSKSize is the size of a pre-shared key in bytes.
const PSKSize = 32

// The first byte of every message.
const (
	modePlain = 1
	modeNN    = 2
	modePSK   = 3
)

const (
	modeSize = 1
	keySize  = 32 // an X25519 key
	tagSize  = 16 // AES-GCM's
	crcSize  = 4
)

// Check reports what is wrong with the configuration.
func (c Config) Check() error {
	switch {
	case c.Plain && c.PSK != nil:
		return errors.New("plain mode does not use a pre-shared key: leave one of the two out")
	case c.PSK != nil && len(c.PSK) != PSKSize:
		return fmt.Errorf("pre-shared key has %d bytes, expected %d", len(c.PSK), PSKSize)
	}
	return nil
}

// HelloOverhead is by how many bytes the first message is longer than its
// payload.
func (c Config) HelloOverhead() int {
	switch c.mode() {
	case modePlain:
		return modeSize + crcSize
	case modeNN:
		return modeSize + keySize + crcSize
	default:
		return modeSize + keySize + tagSize
	}
}

// AnswerOverhead is by how many bytes the second message is longer than its
// payload.
func (c Config) AnswerOverhead() int {
	if c.Plain {
		return modeSize + crcSize
	}
	return modeSize + keySize + tagSize
}

// Refusal is a message that tells an initiator why its hello gets no answer:
// its [Initiator.Finish] returns [ErrMismatch]. It is sent in place of the
// answer when [NewResponder] returned ErrMismatch. Anybody could have made it.
func (c Config) Refusal() []byte { return []byte{c.mode()} }

func (c Config) mode() byte {
	switch {
	case c.Plain:
		return modePlain
	case c.PSK != nil:
		return modePSK
	default:
		return modeNN
	}
}

func modeName(mode byte) string {
	switch mode {
	case modePlain:
		return "does not encrypt (plain)"
	case modeNN:
		return "encrypts without a pre-shared key"
	case modePSK:
		return "encrypts with a pre-shared key"
	default:
		return fmt.Sprintf("has mode %d, which this version does not know", mode)
	}
}

// body is what follows the mode byte of a message from the other end.
func (c Config) body(message []byte, overhead int) ([]byte, error) {
	if len(message) == 0 {
		return nil, fmt.Errorf("empty message: %w", ErrNotAuthentic)
	}
	if got, own := message[0], c.mode(); got != own {
		return nil, fmt.Errorf("%w: this end %s, the other end %s", ErrMismatch, modeName(own), modeName(got))
	}
	if len(message) < overhead {
		return nil, fmt.Errorf("message of %d bytes, expected at least %d: %w", len(message), overhead, ErrNotAuthentic)
	}
	return message[modeSize:], nil
}

func (c Config) noise(prologue []byte, random *seed, initiator bool) (*noise.HandshakeState, error) {
	return noise.NewHandshakeState(noise.Config{
		CipherSuite:  suite,
		Random:       random,
		Pattern:      noise.HandshakeNN,
		Initiator:    initiator,
		Prologue:     prologue,
		PresharedKey: c.PSK, // at place 0: psk0
	})
}

var suite = noise.NewCipherSuite(noise.DH25519, noise.CipherAESGCM, noise.HashSHA256)

package secure

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	prologue = []byte("haul 1")
	psk      = bytes.Repeat([]byte{7}, PSKSize)
	modes    = map[string]Config{"plain": {Plain: true}, "nn": {}, "psk": {PSK: psk}}
)

func random(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

// handshake brings up a connection.
func handshake(tb testing.TB, c Config) (client, server *Keys) {
	tb.Helper()
	i, hello, _, answer, server := half(tb, c)
	_, client, err := i.Finish(answer)
	if err != nil {
		tb.Fatal(err)
	}
	_ = hello
	return client, server
}

func half(tb testing.TB, c Config) (i *Initiator, hello, payload, answer []byte, server *Keys) {
	tb.Helper()
	i, err := NewInitiator(c, prologue, random(1))
	if err != nil {
		tb.Fatal(err)
	}
	if hello, err = i.Hello([]byte("first data")); err != nil {
		tb.Fatal(err)
	}
	r, payload, err := NewResponder(c, prologue, hello, random(2))
	if err != nil {
		tb.Fatal(err)
	}
	if answer, server, err = r.Answer([]byte("reply")); err != nil {
		tb.Fatal(err)
	}
	return i, hello, payload, answer, server
}

func TestHandshake(t *testing.T) {
	for name, c := range modes {
		t.Run(name, func(t *testing.T) {
			i, hello, payload, answer, server := half(t, c)
			if string(payload) != "first data" {
				t.Errorf("the responder read %q", payload)
			}
			if got, want := len(hello), len("first data")+c.HelloOverhead(); got != want {
				t.Errorf("hello has %d bytes, expected %d", got, want)
			}
			if got, want := len(answer), len("reply")+c.AnswerOverhead(); got != want {
				t.Errorf("answer has %d bytes, expected %d", got, want)
			}
			if readable, want := bytes.Contains(hello, []byte("first data")), c.PSK == nil; readable != want {
				t.Errorf("payload of the hello is readable: %v, expected %v", readable, want)
			}
			if readable := bytes.Contains(answer, []byte("reply")); readable != c.Plain {
				t.Errorf("payload of the answer is readable: %v, expected %v", readable, c.Plain)
			}
			reply, client, err := i.Finish(answer)
			if err != nil || string(reply) != "reply" {
				t.Fatalf("the initiator read %q, %v", reply, err)
			}
			exchange(t, client, server)
			exchange(t, server, client)
		})
	}
}

func exchange(t *testing.T, from, to *Keys) {
	t.Helper()
	for _, number := range []uint64{0, 1, 77, 1<<26 - 1, 1 << 26, 1<<26 - 2, 1<<40 + 3, 5, math.MaxUint64 - 1} {
		for _, body := range []string{"", "x", strings.Repeat("body ", 300)} {
			sealed := from.Seal([]byte("before"), []byte("header"), number, []byte(body))[len("before"):]
			if got, want := len(sealed), len(body)+from.Overhead(); got != want {
				t.Errorf("packet has %d bytes, expected %d", got, want)
			}
			got, err := to.Open(nil, []byte("header"), number, sealed)
			if err != nil || string(got) != body {
				t.Errorf("packet %d opened as %.20q, %v", number, got, err)
			}
			got, err = to.Open(sealed[:0], []byte("header"), number, sealed)
			if err != nil || string(got) != body {
				t.Errorf("packet %d opened in place as %.20q, %v", number, got, err)
			}
		}
	}
}

func TestHelloIsTheSameAgain(t *testing.T) {
	i, hello, _, _, _ := half(t, Config{PSK: psk})
	again, err := i.Hello([]byte("first data"))
	if err != nil || !bytes.Equal(hello, again) {
		t.Errorf("the same payload gave another hello, %v", err)
	}
	if _, err := i.Hello([]byte("other data")); err == nil {
		t.Error("one key and nonce encrypted two payloads")
	}
}

// Every bit of every message counts. NN's hello has only a CRC: where a forger
// corrects it, the initiator notices with the answer.
func TestTamperedHandshake(t *testing.T) {
	for name, c := range modes {
		t.Run(name, func(t *testing.T) {
			i, hello, _, answer, _ := half(t, c)
			mutations(hello, func(m []byte) {
				if _, _, err := NewResponder(c, prologue, m, random(2)); !errors.Is(err, ErrNotAuthentic) && !errors.Is(err, ErrMismatch) {
					t.Fatalf("hello %x in place of %x: %v", m, hello, err)
				}
			})
			mutations(answer, func(m []byte) {
				if _, _, err := i.Finish(m); !errors.Is(err, ErrNotAuthentic) && !errors.Is(err, ErrMismatch) {
					t.Fatalf("answer %x in place of %x: %v", m, answer, err)
				}
			})
			if _, _, err := i.Finish(answer); err != nil {
				t.Errorf("the genuine answer after wrong ones: %v", err)
			}
			if _, _, err := NewResponder(c, []byte("haul 2"), hello, random(2)); err == nil {
				t.Error("another prologue was accepted")
			}
			if _, _, err := i.Finish(hello); err == nil {
				t.Error("the initiator accepted its own hello as the answer")
			}
			if _, _, err := NewResponder(c, prologue, answer, random(2)); err == nil && c.PSK != nil {
				t.Error("a responder accepted an answer as a hello")
			}
		})
	}
}

// mutations are all messages with one bit changed, one byte missing at the
// end, or one more.
func mutations(message []byte, f func([]byte)) {
	for i := range message {
		for bit := range 8 {
			m := bytes.Clone(message)
			m[i] ^= 1 << bit
			f(m)
		}
		f(message[:i])
	}
	f(append(bytes.Clone(message), 0))
}

func TestForgedHelloOfNN(t *testing.T) {
	c := Config{}
	i, hello, _, _, _ := half(t, c)
	forged := bytes.Clone(hello)
	forged[modeSize+keySize] ^= 1 // of the payload
	forged = appendCRC(forged[:len(forged)-crcSize], helloSeed(prologue))
	r, _, err := NewResponder(c, prologue, forged, random(2))
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := r.Answer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Finish(answer); !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("answer to a forged hello: %v", err)
	}
}

// A key of low order makes a shared secret that everybody knows.
func TestLowOrderKeys(t *testing.T) {
	for name, c := range map[string]Config{"nn": {}, "psk": {PSK: psk}} {
		t.Run(name, func(t *testing.T) {
			i, _, _, answer, _ := half(t, c)
			m := bytes.Clone(answer)
			clear(m[modeSize : modeSize+keySize])
			if _, _, err := i.Finish(m); !errors.Is(err, ErrNotAuthentic) {
				t.Errorf("answer with a key of low order: %v", err)
			}
			if _, _, err := i.Finish(answer); err != nil {
				t.Errorf("the genuine answer after it: %v", err)
			}
		})
	}
	hello := appendCRC(append([]byte{modeNN}, make([]byte, keySize)...), helloSeed(prologue))
	r, _, err := NewResponder(Config{}, prologue, hello, random(2))
	if err == nil {
		_, _, err = r.Answer(nil)
	}
	if !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("hello with a key of low order: %v", err)
	}
}

func TestAnswerOnce(t *testing.T) {
	_, hello, _, _, _ := half(t, Config{})
	r, _, err := NewResponder(Config{}, prologue, hello, random(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Answer(make([]byte, 1<<16)); err == nil {
		t.Error("a payload of 64 KiB was accepted")
	}
	if _, _, err := r.Answer(nil); err != nil {
		t.Errorf("an answer after one that was too long: %v", err)
	}
	if _, _, err := r.Answer(nil); err == nil {
		t.Error("two answers were made")
	}
}

func TestMismatch(t *testing.T) {
	configs := map[string]Config{"plain": {Plain: true}, "nn": {}, "psk": {PSK: psk}, "other psk": {PSK: bytes.Repeat([]byte{8}, PSKSize)}}
	for ours, c := range configs {
		for theirs, s := range configs {
			if ours == theirs {
				continue
			}
			t.Run(ours+" to "+theirs, func(t *testing.T) {
				i, hello, _, answer, _ := half(t, c)
				_, _, err := NewResponder(s, prologue, hello, random(2))
				if !errors.Is(err, ErrMismatch) {
					t.Errorf("the responder's error is %v", err)
				}
				if _, _, err := i.Finish(s.Refusal()); !errors.Is(err, ErrMismatch) {
					t.Errorf("the initiator's error is %v", err)
				}
				if _, _, err := i.Finish(answer); err != nil {
					t.Errorf("the genuine answer after a refusal: %v", err)
				}
			})
		}
	}
	_, _, err := NewResponder(Config{}, prologue, []byte{modePSK, 1, 2}, random(2))
	const want = "hello of the handshake: security settings of the two ends differ: this end encrypts without a pre-shared key, the other end encrypts with a pre-shared key"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, expected %s", err, want)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{{PSK: []byte{}}, {PSK: psk[:31]}, {PSK: append(psk, 1)}, {PSK: psk, Plain: true}} {
		if c.Check() == nil {
			t.Errorf("%+v was accepted", c)
		}
		if _, err := NewInitiator(c, nil, random(1)); err == nil {
			t.Errorf("an initiator with %+v was made", c)
		}
		if _, _, err := NewResponder(c, nil, nil, random(1)); err == nil {
			t.Errorf("a responder with %+v was made", c)
		}
	}
	for name, c := range modes {
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewInitiator(Config{}, nil, strings.NewReader("short")); err == nil {
		t.Error("a key was made of 5 random bytes")
	}
	if _, err := NewInitiator(Config{}, nil, nil); err == nil {
		t.Error("a key was made of no random bytes")
	}
}

func FuzzResponder(f *testing.F) {
	for _, c := range modes {
		_, hello, _, answer, _ := half(f, c)
		f.Add(hello)
		f.Add(answer)
		f.Add(c.Refusal())
	}
	type end struct {
		config Config
		i      *Initiator
		answer []byte
		hello  []byte
	}
	var ends []end
	for _, c := range modes {
		i, hello, _, answer, _ := half(f, c)
		ends = append(ends, end{c, i, answer, hello})
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, e := range ends {
			r, payload, err := NewResponder(e.config, prologue, message, random(2))
			switch {
			case err == nil:
				if len(payload) != len(message)-e.config.HelloOverhead() {
					t.Fatalf("hello of %d bytes has a payload of %d", len(message), len(payload))
				}
				if _, _, err := r.Answer(nil); err != nil && !errors.Is(err, ErrNotAuthentic) {
					t.Fatal(err)
				}
			case !errors.Is(err, ErrMismatch) && !errors.Is(err, ErrNotAuthentic):
				t.Fatal(err)
			}
			_, k, err := e.i.Finish(message)
			if (err == nil) != bytes.Equal(message, e.answer) || (err == nil) != (k != nil) {
				t.Fatalf("answer %x was accepted: %v", message, err == nil)
			}
		}
	})
}

func BenchmarkHandshake(b *testing.B) {
	for name, c := range modes {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				handshake(b, c)
			}
		})
	}
}

func ExampleConfig_Refusal() {
	client, server := Config{}, Config{PSK: bytes.Repeat([]byte{1}, PSKSize)}
	i, _ := NewInitiator(client, nil, rand.NewChaCha8([32]byte{})) // crypto/rand.Reader in earnest
	hello, _ := i.Hello(nil)
	_, _, err := NewResponder(server, nil, hello, rand.NewChaCha8([32]byte{}))
	fmt.Println(err)
	_, _, err = i.Finish(server.Refusal())
	fmt.Println(err)
	// Output:
	// hello of the handshake: security settings of the two ends differ: this end encrypts with a pre-shared key, the other end encrypts without a pre-shared key
	// answer of the handshake: security settings of the two ends differ: this end encrypts without a pre-shared key, the other end encrypts with a pre-shared key
}

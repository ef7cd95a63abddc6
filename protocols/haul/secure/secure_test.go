package secure

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
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

func TestTamperedPackets(t *testing.T) {
	for name, c := range modes {
		t.Run(name, func(t *testing.T) {
			client, server := handshake(t, c)
			header, body := []byte("header"), []byte("body of a packet")
			for _, number := range []uint64{9, 1<<26 + 9} {
				sealed := client.Seal(nil, header, number, body)
				refused := func(what string, k *Keys, header []byte, number uint64, sealed []byte) {
					t.Helper()
					if _, err := k.Open(nil, header, number, sealed); !errors.Is(err, ErrNotAuthentic) {
						t.Fatalf("%s: %v", what, err)
					}
				}
				mutations(sealed, func(m []byte) { refused("sealed bytes changed", server, header, number, m) })
				mutations(header, func(m []byte) { refused("header changed", server, m, number, sealed) })
				for bit := range 64 {
					refused("number changed", server, header, number^1<<bit, sealed)
				}
				refused("reflected to the sender", client, header, number, sealed)
				if _, err := server.Open(nil, header, number, sealed); err != nil {
					t.Errorf("the genuine packet after wrong ones: %v", err)
				}
			}
			refused := server.Seal(nil, nil, 1, body)
			if _, err := client.Open(nil, nil, math.MaxUint64, refused); err == nil {
				t.Error("the reserved number was accepted")
			}
		})
	}
}

// Packets of one connection are none of another, in plain mode too.
func TestPacketsOfAnotherConnection(t *testing.T) {
	for name, c := range modes {
		t.Run(name, func(t *testing.T) {
			client, _ := handshake(t, c)
			i, err := NewInitiator(c, prologue, random(9))
			if err != nil {
				t.Fatal(err)
			}
			hello, _ := i.Hello([]byte("first date")) // one byte differs
			r, _, err := NewResponder(c, prologue, hello, random(2))
			if err != nil {
				t.Fatal(err)
			}
			_, other, err := r.Answer([]byte("reply"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Open(nil, nil, 1, client.Seal(nil, nil, 1, []byte("body"))); err == nil {
				t.Error("a packet of another connection was accepted")
			}
		})
	}
}

// A change of keys is found by the number alone, also for packets that it
// overtook, and a forged number of a later key does not disturb the present one.
func TestEpochs(t *testing.T) {
	client, server := handshake(t, Config{})
	late := client.Seal(nil, nil, 1<<26-1, []byte("late"))
	next := client.Seal(nil, nil, 1<<26, []byte("next"))
	if bytes.Equal(late[:4], client.Seal(nil, nil, 1<<26-1, []byte("next"))[:4]) {
		t.Fatal("the test compares nothing")
	}
	for _, p := range []struct {
		number uint64
		sealed []byte
		body   string
	}{{1 << 26, next, "next"}, {1<<26 - 1, late, "late"}, {1 << 26, next, "next"}} {
		if _, err := server.Open(nil, nil, 99<<26, p.sealed); err == nil {
			t.Fatal("a packet was opened with the key of another epoch")
		}
		got, err := server.Open(nil, nil, p.number, p.sealed)
		if err != nil || string(got) != p.body {
			t.Errorf("packet %d: %q, %v", p.number, got, err)
		}
	}
	if server.in.current.number != 1 || server.in.previous.number != 0 || server.in.previous.aead == nil {
		t.Errorf("keys of epochs %d and %d are kept, expected 1 and 0", server.in.current.number, server.in.previous.number)
	}
}

func TestNoAllocations(t *testing.T) {
	for name, c := range modes {
		t.Run(name, func(t *testing.T) {
			client, server := handshake(t, c)
			header, body := make([]byte, 20), make([]byte, 1400)
			packet := make([]byte, 0, 1500)
			number := uint64(0)
			got := testing.AllocsPerRun(1000, func() {
				number++
				sealed := client.Seal(packet, header, number, body)
				if _, err := server.Open(sealed[:0], header, number, sealed); err != nil {
					t.Fatal(err)
				}
				if _, err := server.Open(sealed[:0], header, number+1, sealed); err == nil {
					t.Fatal("a packet was opened with another number")
				}
			})
			if got != 0 {
				t.Errorf("%v allocations for a packet", got)
			}
		})
	}
}

// Run with -race.
func TestSealAndOpenAtTheSameTime(t *testing.T) {
	for _, c := range modes {
		client, server := handshake(t, c)
		var packets [2][][]byte
		for n := range uint64(200) {
			packets[0] = append(packets[0], client.Seal(nil, nil, n<<20, []byte("a")))
			packets[1] = append(packets[1], server.Seal(nil, nil, n<<20, []byte("b")))
		}
		var wg sync.WaitGroup
		for i, k := range []*Keys{server, client} {
			wg.Go(func() {
				for n, p := range packets[i] {
					if _, err := k.Open(nil, nil, uint64(n)<<20, p); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for n := range uint64(200) {
					k.Seal(nil, nil, (1000+n)<<20, []byte("c"))
				}
			})
		}
		wg.Wait()
	}
}

// The window agrees with a map of all numbers, whatever their order.
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var r Replay
		seen := map[uint64]bool{}
		highest, any := uint64(0), false
		for range 20000 {
			var number uint64
			switch rng.IntN(8) {
			case 0:
				number = highest + uint64(rng.IntN(3*replayWindow))
			case 1:
				number = highest + uint64(rng.IntN(70))
			case 2: // the edge of the window
				number = highest - min(highest, uint64(replayWindow-3+rng.IntN(6)))
			default:
				number = highest - min(highest, uint64(rng.IntN(replayWindow+100)))
			}
			want := !seen[number] && (!any || number > highest || highest-number < replayWindow)
			if got := r.Check(number); got != want {
				t.Fatalf("seed %d: check of %d, highest %d: %v, expected %v", seed, number, highest, got, want)
			}
			if rng.IntN(4) == 0 {
				continue // was not authentic
			}
			r.Accept(number)
			if want {
				seen[number], any = true, true
				highest = max(highest, number)
			}
			if r.Check(number) {
				t.Fatalf("seed %d: %d would be accepted twice", seed, number)
			}
		}
	}
}

func TestReplayAtTheEnd(t *testing.T) {
	var r Replay
	for _, n := range []uint64{0, 1 << 63, math.MaxUint64 - 1, math.MaxUint64 - replayWindow} {
		if !r.Check(n) {
			t.Errorf("%d is refused", n)
		}
		r.Accept(n)
	}
	for _, n := range []uint64{0, 1 << 63, math.MaxUint64 - 1, math.MaxUint64, math.MaxUint64 - replayWindow - 1} {
		if r.Check(n) {
			t.Errorf("%d is accepted", n)
		}
	}
}

func TestCookies(t *testing.T) {
	c, err := NewCookies(random(3))
	if err != nil {
		t.Fatal(err)
	}
	from, hello := netip.MustParseAddrPort("192.0.2.1:4000"), []byte("hello")
	for _, now := range []time.Duration{0, time.Second, -time.Second, -cookiePeriod, 119 * time.Second, time.Hour, math.MaxInt64} {
		cookie := c.Make(from, hello, now)
		if len(cookie) != CookieSize {
			t.Fatalf("cookie has %d bytes", len(cookie))
		}
		if !c.Check(from, hello, cookie, now) {
			t.Errorf("at %v a cookie was refused", now)
		}
		if later := now + cookiePeriod; later > now && !c.Check(from, hello, cookie, later) {
			t.Errorf("a cookie of %v was refused two minutes later", now)
		}
		if later := now + 2*cookiePeriod; later > now && c.Check(from, hello, cookie, later) {
			t.Errorf("a cookie of %v was accepted four minutes later", now)
		}
		if c.Check(from, hello, cookie, now-cookiePeriod) {
			t.Errorf("a cookie of %v was accepted two minutes earlier", now)
		}
		mutations(cookie, func(m []byte) {
			if c.Check(from, hello, m, now) {
				t.Errorf("cookie %x was accepted in place of %x", m, cookie)
			}
		})
		for _, other := range []string{"192.0.2.1:4001", "192.0.2.2:4000", "[2001:db8::1]:4000"} {
			if c.Check(netip.MustParseAddrPort(other), hello, cookie, now) {
				t.Errorf("the cookie of %v was accepted from %s", from, other)
			}
		}
		if c.Check(from, []byte("hallo"), cookie, now) {
			t.Error("a cookie was accepted with another hello")
		}
		if mapped := netip.MustParseAddrPort("[::ffff:192.0.2.1]:4000"); !c.Check(mapped, hello, cookie, now) {
			t.Error("a cookie was refused from the same address, written as one of IPv6")
		}
	}
	other, _ := NewCookies(random(4))
	if other.Check(from, hello, c.Make(from, hello, 0), 0) {
		t.Error("a cookie of another secret was accepted")
	}
	if _, err := NewCookies(strings.NewReader("short")); err == nil {
		t.Error("a secret was made of 5 random bytes")
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

func FuzzOpen(f *testing.F) {
	type end struct {
		name   string
		keys   *Keys
		header []byte
		sealed []byte
	}
	var ends []end
	for name, c := range modes {
		client, server := handshake(f, c)
		sealed := client.Seal(nil, []byte("header"), 5, []byte("body"))
		ends = append(ends, end{name, server, []byte("header"), sealed})
		f.Add([]byte("header"), uint64(5), sealed)
	}
	f.Fuzz(func(t *testing.T, header []byte, number uint64, sealed []byte) {
		for _, e := range ends {
			if e.name == "plain" {
				// Whoever wants to can make a CRC.
				got, err := e.keys.Open(nil, header, number, sealed)
				if err == nil && len(got) != len(sealed)-crcSize {
					t.Fatalf("%d bytes were opened as %d", len(sealed), len(got))
				}
				continue
			}
			_, err := e.keys.Open(nil, header, number, sealed)
			genuine := number == 5 && bytes.Equal(header, e.header) && bytes.Equal(sealed, e.sealed)
			if (err == nil) != genuine {
				t.Fatalf("%s: packet %d %x %x was accepted: %v", e.name, number, header, sealed, err == nil)
			}
		}
	})
}

func BenchmarkPacket(b *testing.B) {
	for name, c := range modes {
		b.Run(name, func(b *testing.B) {
			client, server := handshake(b, c)
			header, body, packet := make([]byte, 12), make([]byte, 1400), make([]byte, 0, 1500)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			number := uint64(0)
			for b.Loop() {
				number++
				sealed := client.Seal(packet, header, number, body)
				if _, err := server.Open(sealed[:0], header, number, sealed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
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

func BenchmarkCookie(b *testing.B) {
	c, err := NewCookies(random(3))
	if err != nil {
		b.Fatal(err)
	}
	from, hello := netip.MustParseAddrPort("192.0.2.1:4000"), make([]byte, 100)
	cookie := c.Make(from, hello, 0)
	for b.Loop() {
		if !c.Check(from, hello, cookie, 0) {
			b.Fatal("refused")
		}
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

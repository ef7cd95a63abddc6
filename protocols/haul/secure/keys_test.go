package secure

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"
)

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

package core

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"linktrial/protocols/haul/wire"
)

// Fragments of a stream of bytes are read in order and once, in whatever order
// they arrive and however often, and all that was counted is given back.
func TestBytewiseInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := &Conn{common: common{config: Config{Buffer: 1 << 20}}}
		c.init()
		c.Bytewise(0)
		var want, got []byte
		var items []wire.Item
		for number := range uint64(4) {
			message := make([]byte, 1+r.IntN(200))
			for i := range message {
				message[i] = byte(r.Uint32())
			}
			want = append(want, message...)
			for at := 0; at < len(message); {
				n := min(1+r.IntN(60), len(message)-at)
				items = append(items, wire.Item{Kind: wire.ItemFragment, Class: wire.ReliableSequenced, Number: number, Offset: uint64(at), Data: message[at : at+n], Last: at+n == len(message)})
				at += n
			}
		}
		if seed%3 > 0 { // some exchanged, or all shuffled
			for range seed % 3 * seed % 40 {
				i := r.IntN(len(items) - 1)
				items[i], items[i+1] = items[i+1], items[i]
			}
		}
		for i := range items {
			err := c.fragmentArrived(&items[i])
			if r.IntN(4) == 0 && err == nil {
				err = c.fragmentArrived(&items[r.IntN(i+1)])
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for p, ok := c.Next(); ok; p, ok = c.Next() {
				got = append(got, p.Data...)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: read %d bytes, expected %d, or others", seed, len(got), len(want))
		}
		if c.in.buffered != 0 {
			t.Errorf("seed %d: %d bytes are counted as waiting, and all have been read", seed, c.in.buffered)
		}
	}
}

package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

var key = Tokens(0x0102030405060708, 0x1112131415161718)

func examples() []Packet {
	a := Packet{Kind: Ack, Flags: FlagCongestion | FlagEcho, Next: 1 << 31, Limit: 7, Largest: 9, Received: 8}
	a.AddRange(Range{3, 5})
	a.AddRange(Range{1, 2})
	a.AddBlock(Block{77, 200})
	return []Packet{
		{Kind: Syn, Client: 1 << 60, Window: 1 << 20, Most: 1500},
		{Kind: SynAck, Client: 1 << 60, Server: 5, Window: 1 << 20, Most: 1500},
		{Kind: Data, Flags: FlagReduced, Number: 1, Seq: 1<<32 - 1, Index: 4, Size: 10, Body: []byte("segment")},
		{Kind: FEC, Number: 2, Seq: 40, Index: 12, Size: 3, Count: 12, Last: 1, Body: []byte("fec")},
		a,
		{Kind: Ack, Next: 1},
		{Kind: Fin, Number: 4, Seq: 5},
		{Kind: Probe, Number: 4},
		{Kind: Reset},
	}
}

func TestPackets(t *testing.T) {
	for _, p := range examples() {
		b := Append([]byte("before"), &p, p.Body, &key)[len("before"):]
		var got Packet
		if err := Parse(b, &key, &got); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v\nbecame %+v (%v)", p, got, err)
		}
		other := Tokens(0x0102030405060708, 0x1112131415161719)
		if err := Parse(b, &other, &got); !errors.Is(err, ErrCheck) {
			t.Errorf("kind %d with another key: %v, expected %v", p.Kind, err, ErrCheck)
		}
		for bit := range len(b) * 8 {
			d := bytes.Clone(b)
			d[bit/8] ^= 1 << (bit % 8)
			if Parse(d, &key, &got) == nil {
				t.Errorf("kind %d with bit %d flipped is taken", p.Kind, bit)
			}
		}
		for n := range b {
			if Parse(b[:n], &key, &got) == nil {
				t.Errorf("kind %d cut to %d bytes is taken", p.Kind, n)
			}
		}
	}
}

// The lengths that docs/lttcp.md compares with TCP/IP's.
func TestLengths(t *testing.T) {
	for kind, want := range map[Kind]int{Syn: 20, SynAck: 28, Data: 17 + 1, FEC: 20 + 1, Ack: 23, Fin: 14, Probe: 10, Reset: 6} {
		p := Packet{Kind: kind, Size: 1, Count: 1, Index: 1, Last: 1}
		body := []byte{0}
		if kind != Data && kind != FEC {
			body = nil
		}
		if got := len(Append(nil, &p, body, &key)); got != want {
			t.Errorf("kind %d has %d bytes, expected %d", kind, got, want)
		}
	}
	a := Packet{Kind: Ack}
	for a.AddRange(Range{1, 2}) {
	}
	for a.AddBlock(Block{1, 2}) {
	}
	if got := len(Append(nil, &a, nil, &key)); got != MaxAck {
		t.Errorf("the longest acknowledgement has %d bytes, expected %d", got, MaxAck)
	}
}

// What cannot be is refused although its check matches.
func TestContradictions(t *testing.T) {
	for name, p := range map[string]Packet{
		"segment longer than its block's":      {Kind: Data, Size: 1, Body: []byte("two")},
		"segment without a byte":               {Kind: Data, Size: 1},
		"segment beyond the longest block":     {Kind: Data, Size: 1, Index: 254, Body: []byte("1")},
		"FEC at the place of a segment":        {Kind: FEC, Size: 1, Last: 1, Count: 5, Index: 4, Body: []byte("1")},
		"FEC of no segments":                   {Kind: FEC, Size: 1, Last: 1, Body: []byte("1")},
		"FEC shorter than its block":           {Kind: FEC, Size: 2, Last: 1, Count: 1, Index: 1, Body: []byte("1")},
		"FEC with a last segment of 0 bytes":   {Kind: FEC, Size: 1, Count: 1, Index: 1, Body: []byte("1")},
		"FEC with a last segment that is long": {Kind: FEC, Size: 1, Last: 2, Count: 1, Index: 1, Body: []byte("1")},
		"unknown flag":                         {Kind: Probe, Flags: 8},
		"unknown kind":                         {Kind: 9},
	} {
		var got Packet
		if err := Parse(Append(nil, &p, p.Body, &key), &key, &got); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, expected %v", name, err, ErrMalformed)
		}
	}
}

// Any bytes are taken only if they are what Append would have written; sealed
// ones have a check that matches, so that the fuzzer gets behind it.
func FuzzParse(f *testing.F) {
	for _, p := range examples() {
		f.Add(Append(nil, &p, p.Body, &key), false)
		f.Add(Append(nil, &p, p.Body, &key), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal {
			b = Seal(bytes.Clone(b), &key)
		}
		var p Packet
		if Parse(b, &key, &p) != nil {
			return
		}
		if again := Append(nil, &p, p.Body, &key); !bytes.Equal(again, b) {
			t.Fatalf("%x is taken as %+v, which is written as %x", b, p, again)
		}
	})
}

package code

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// script reads the operations of FuzzDecoder from its input.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *script) bytes(n int) []byte {
	n = min(n, len(s.rest))
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b
}

func (s *script) uint64() uint64 {
	var b [8]byte
	copy(b[:], s.bytes(8))
	return binary.LittleEndian.Uint64(b[:])
}

// FuzzDecoder carries out the operations that its input describes. With the first byte even,
// all symbols and repairs are honest; else anything may come.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 255, 1, 0, 10, 0, 1, 0, 0, 2, 1, 3, 0})
	f.Add([]byte{0, 20, 1, 0, 200, 0, 1, 0, 1, 0, 200, 0, 2, 0, 2, 3, 4, 40, 1, 50, 9, 2, 3, 5})
	f.Add([]byte{1, 9, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 5, 9, 9, 9, 9, 9})
	f.Add([]byte("1A20000000050000000A10000000050000000A1000000005000000AAA"))
	s := source{seed: 1, longest: 40, made: map[ID]Symbol{}}
	f.Fuzz(func(t *testing.T, input []byte) {
		in := &script{rest: input}
		honest := in.byte()%2 == 0
		d := NewDecoder(int(in.byte()) * 64)
		added := 0 // bytes of symbols that were added: these may exceed the limit
		for steps := 0; len(in.rest) > 0 && steps < 300; steps++ {
			var recovered []Symbol
			rank := d.Rank()
			switch in.byte() % 5 {
			case 0:
				id, data := fuzzSymbol(in, s, honest)
				if !d.Has(id) {
					added += symbolOverhead + lengthBytes + len(data)
				}
				recovered = d.Add(id, data)
				if !d.Has(id) && len(data) <= MaxSymbol {
					t.Fatalf("symbol %d was added and is not known", id)
				}
			case 1, 2:
				var useful bool
				recovered, useful = d.AddRepair(fuzzRepair(in, s, honest))
				if !useful && (d.Rank() > rank || recovered != nil) {
					t.Fatalf("a useless repair raised the rank from %d to %d and recovered %v", rank, d.Rank(), recovered)
				}
			case 3:
				id := ID(in.byte())
				known := d.Has(id)
				if d.Void(id); d.Has(id) != known {
					t.Fatalf("Void changed whether symbol %d is known", id)
				}
			case 4:
				below := ID(in.byte()) / 4
				if !honest && below == 0 {
					below = in.uint64()
				}
				if d.Forget(below); d.Rank() > rank {
					t.Fatal("Forget raised the rank")
				}
			}
			checkForm(t, d)
			if d.Held() > d.limit && (d.Rank() > 0 || d.Held() > d.limit+added) {
				t.Fatalf("%d bytes are held with rank %d, %d of symbols added; the limit is %d", d.Held(), d.Rank(), added, d.limit)
			}
			for _, r := range recovered {
				if !d.Has(r.ID) || len(r.Data) > MaxSymbol {
					t.Fatalf("symbol %d was recovered with %d bytes", r.ID, len(r.Data))
				}
				if honest && !bytes.Equal(r.Data, s.symbol(r.ID).Data) {
					t.Fatalf("symbol %d: recovered % x, want % x", r.ID, r.Data, s.symbol(r.ID).Data)
				}
			}
		}
		if honest && d.Damaged() != 0 {
			t.Fatalf("%d recoveries were damaged", d.Damaged())
		}
	})
}

func fuzzSymbol(in *script, s source, honest bool) (ID, []byte) {
	id := ID(in.byte())
	if honest {
		return id, s.symbol(id).Data
	}
	if id == 255 {
		id = in.uint64()
	}
	if n := int(in.byte()); n < 250 {
		return id, in.bytes(n)
	}
	return id, make([]byte, MaxSymbol+int(in.byte()%2))
}

func fuzzRepair(in *script, s source, honest bool) Repair {
	r := Repair{First: ID(in.byte()), Count: 1 + int(in.byte()), Skip: in.bytes(int(in.byte() % 8)), Seed: uint16(in.byte())}
	if honest {
		return s.repair(r.First, r.Count, r.Skip, r.Seed)
	}
	switch in.byte() {
	case 0:
		r.First = in.uint64()
	case 1:
		r.Count = int(in.uint64())
	case 2:
		r.Data = make([]byte, MaxSymbol+int(in.byte()%4))
	}
	r.Data = append(r.Data, in.bytes(int(in.byte()))...)
	return r
}

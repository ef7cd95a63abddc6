package code

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
)

// multiply is the field's product by its definition.
func multiply(a, b byte) byte {
	var product, x uint16 = 0, uint16(a)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			product ^= x
		}
		if x <<= 1; x&0x100 != 0 {
			x ^= 0x11D
		}
	}
	return byte(product)
}

func inverse(a byte) byte {
	for b := 1; b < 256; b++ {
		if multiply(a, byte(b)) == 1 {
			return byte(b)
		}
	}
	panic("0 has no inverse")
}

// reference tells by plain Gaussian elimination over coefficients which symbols follow from
// what arrived.
type reference struct {
	known map[ID]bool
	void  map[ID]bool
	rows  []map[ID]byte // reduced: each has a pivot that no other has
	pivot []ID
}

func newReference() *reference {
	return &reference{known: map[ID]bool{}, void: map[ID]bool{}}
}

func (r *reference) subtract(row, other map[ID]byte, factor byte) {
	for id, c := range other {
		if row[id] ^= multiply(factor, c); row[id] == 0 {
			delete(row, id)
		}
	}
}

func (r *reference) insert(row map[ID]byte) bool {
	maps.DeleteFunc(row, func(id ID, _ byte) bool { return r.known[id] })
	for i, p := range r.pivot {
		if c := row[p]; c != 0 {
			r.subtract(row, r.rows[i], c)
		}
	}
	if len(row) == 0 {
		return false
	}
	pivot := slices.Min(slices.Collect(maps.Keys(row)))
	factor := inverse(row[pivot])
	for id := range row {
		row[id] = multiply(row[id], factor)
	}
	for _, other := range r.rows {
		if c := other[pivot]; c != 0 {
			r.subtract(other, row, c)
		}
	}
	r.rows, r.pivot = append(r.rows, row), append(r.pivot, pivot)
	r.solve()
	return true
}

// solve makes known what has a row of its own.
func (r *reference) solve() {
	for i := 0; i < len(r.rows); i++ {
		if len(r.rows[i]) == 1 {
			r.known[r.pivot[i]] = true
			r.rows = slices.Delete(r.rows, i, i+1)
			r.pivot = slices.Delete(r.pivot, i, i+1)
			i--
		}
	}
}

// rebuild inserts rows anew after a change to them.
func (r *reference) rebuild(rows []map[ID]byte) {
	r.rows, r.pivot = nil, nil
	for _, row := range rows {
		r.insert(row)
	}
}

func (r *reference) learn(id ID) {
	r.known[id] = true
	delete(r.void, id)
	rows := r.rows
	for _, row := range rows {
		delete(row, id)
	}
	r.rebuild(slices.DeleteFunc(rows, func(row map[ID]byte) bool { return len(row) == 0 }))
}

func (r *reference) abandon(id ID) {
	if r.known[id] {
		return
	}
	r.void[id] = true
	rows := r.rows
	lost := slices.IndexFunc(rows, func(row map[ID]byte) bool { return row[id] != 0 })
	if lost < 0 {
		return
	}
	with := rows[lost]
	rows = slices.Delete(slices.Clone(rows), lost, lost+1)
	for _, row := range rows {
		if c := row[id]; c != 0 {
			r.subtract(row, with, multiply(c, inverse(with[id])))
		}
	}
	r.rebuild(rows)
}

func (r *reference) repair(p *Repair) bool {
	row := map[ID]byte{}
	for id := p.First; id < p.First+ID(p.Count); id++ {
		switch {
		case !p.Has(id) || r.known[id]:
		case r.void[id]:
			return false
		default:
			row[id] = Coefficient(p.Seed, id)
		}
	}
	return r.insert(row)
}

// source makes symbols of a sender: their data follow from their numbers, with lengths from
// 0 to longest.
type source struct {
	seed    uint64
	longest int
	made    map[ID]Symbol // if not nil: those that were made, to make them once
}

func (s source) symbol(id ID) Symbol {
	if symbol, ok := s.made[id]; ok {
		return symbol
	}
	random := rand.New(rand.NewPCG(s.seed, id))
	data := make([]byte, random.IntN(s.longest+1))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	if s.made != nil {
		s.made[id] = Symbol{ID: id, Data: data}
	}
	return Symbol{ID: id, Data: data}
}

func (s source) repair(first ID, count int, skip []byte, seed uint16) Repair {
	r := Repair{First: first, Count: count, Skip: skip, Seed: seed}
	var symbols []Symbol
	for id := first; id < first+ID(count); id++ {
		if r.Has(id) {
			symbols = append(symbols, s.symbol(id))
		}
	}
	r.Data = Encode(nil, seed, symbols)
	return r
}

// encodeSlowly is Encode by its description.
func encodeSlowly(seed uint16, symbols []Symbol) []byte {
	var sum []byte
	for _, s := range symbols {
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(s.Data))), s.Data...)
		for len(sum) < len(framed) {
			sum = append(sum, 0)
		}
		for i, b := range framed {
			sum[i] ^= multiply(Coefficient(seed, s.ID), b)
		}
	}
	return sum
}

package code

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/klauspost/reedsolomon"
)

// symbolOverhead is about what a symbol or a mark takes in memory beyond its data.
const symbolOverhead = 64

// Decoder keeps received symbols and repairs, and recovers what it can: a symbol is recovered
// as soon as it follows from what has arrived, in whatever order it did.
//
// Whatever is malformed is refused and changes nothing.
type Decoder struct {
	limit   int
	low     ID              // symbols below are forgotten
	high    ID              // one more than the newest known symbol
	symbols map[ID][]byte   // known: length || data
	void    map[ID]struct{} // given up by the sender
	system  system          // equations of what is not known
	bytes   int             // held by symbols and void
	damaged int             // repairs and recoveries that were malformed or contradicted a symbol

	window [MaxWindow][]byte // known symbols of AddRepair's repair, kept so that it need not allocate
}

// NewDecoder returns a decoder that holds up to limit bytes: symbols, which it needs to
// subtract from repairs, and the equations that repairs become; of these it also holds at
// most MaxWindow. Beyond the limit it drops equations, the ones with the oldest symbols
// first, and takes no repair that does not fit in. It never drops symbols that were added,
// even if they alone exceed the limit: Forget frees them.
func NewDecoder(limit int) *Decoder {
	return &Decoder{limit: limit, symbols: make(map[ID][]byte), void: make(map[ID]struct{}), system: newSystem()}
}

// Add takes a source symbol that arrived, and returns the symbols that are recovered through
// it, in ascending order and without itself. It copies data. The data of recovered symbols
// is the decoder's own: it never changes, and the caller must not change it.
// A symbol that is known or forgotten, or has more than MaxSymbol bytes, changes nothing.
func (d *Decoder) Add(id ID, data []byte) (recovered []Symbol) {
	if d.Has(id) || len(data) > MaxSymbol {
		return nil
	}
	value := make([]byte, lengthBytes+len(data))
	binary.BigEndian.PutUint16(value, uint16(len(data)))
	copy(value[lengthBytes:], data)
	if _, ok := d.void[id]; ok {
		delete(d.void, id)
		d.bytes -= symbolOverhead
	}
	d.keep(id, value)
	recovered = d.recover(d.system.substitute(id, value))
	d.shrink()
	return recovered
}

// AddRepair takes a repair that arrived. It returns the symbols that are recovered through
// it, as Add does, and reports whether it was useful: whether it said anything that the
// symbols and repairs before it did not. It copies r.Data and r.Skip.
//
// It refuses a repair that has no symbols or too many, whose data does not fit to its
// symbols, that begins more than MaxAhead after the newest known symbol, that has a symbol
// which is forgotten or void, or that does not fit into memory.
func (d *Decoder) AddRepair(r Repair) (recovered []Symbol, useful bool) {
	if !d.acceptable(&r) {
		return nil, false
	}
	known := d.window[:r.Count]
	defer clear(known)
	var first, last ID
	unknown := 0
	for i := range known {
		id := r.First + uint64(i)
		if !r.Has(id) {
			continue
		}
		value, ok := d.symbols[id]
		if _, void := d.void[id]; void || id < d.low {
			return nil, false
		}
		if len(value) > len(r.Data) {
			d.damaged++
			return nil, false
		}
		if known[i] = value; ok {
			continue
		}
		if unknown == 0 {
			first = id
		}
		last = id
		unknown++
	}
	if unknown == 0 || !d.makeRoom(first, equationSize(int(last-first)+1, len(r.Data))) {
		return nil, false
	}
	e := newEquation(first, int(last-first)+1, r.Data)
	for i, value := range known {
		id := r.First + uint64(i)
		if value != nil {
			addMultiple(e.data, Coefficient(r.Seed, id), value)
		} else if r.Has(id) {
			e.coefficients[id-first] = Coefficient(r.Seed, id)
		}
	}
	independent, single := d.system.insert(e)
	recovered = d.recover(single)
	d.shrink()
	return recovered, independent > 0
}

func (d *Decoder) acceptable(r *Repair) bool {
	switch {
	case r.Count < 1 || r.Count > MaxWindow,
		len(r.Data) < lengthBytes || len(r.Data) > lengthBytes+MaxSymbol,
		r.First > math.MaxUint64-MaxWindow, // the range would wrap around
		r.First+uint64(r.Count) <= d.low:
		return false
	}
	newest := max(d.low, d.high)
	return r.First <= newest || r.First-newest <= MaxAhead
}

// Void notes that the sender gave this symbol up: neither it nor a repair with it will come
// any more, and it is not recovered. As many equations with it as must are dropped: one, as
// the symbol is eliminated from the others with it. Should the symbol arrive after all, Add
// takes it. Void of a symbol that is known or forgotten changes nothing.
func (d *Decoder) Void(id ID) {
	if _, ok := d.void[id]; ok || d.Has(id) {
		return
	}
	d.system.abandon(id)
	// Without the mark, a late repair with the symbol is kept in vain; that is all.
	if d.Held()+symbolOverhead <= d.limit {
		d.void[id] = struct{}{}
		d.bytes += symbolOverhead
	}
	d.shrink()
}

// Forget frees all symbols below the given one, and the equations with them: the sender will
// not use them in repairs any more. The mark never moves back.
func (d *Decoder) Forget(below ID) {
	if below <= d.low {
		return
	}
	if below-d.low <= uint64(len(d.symbols)+len(d.void)) {
		for id := d.low; id < below; id++ {
			d.free(id)
		}
	} else {
		for id := range d.symbols {
			if id < below {
				d.free(id)
			}
		}
		for id := range d.void {
			if id < below {
				d.free(id)
			}
		}
	}
	d.low = below
	d.system.dropBelow(below)
}

// Has reports whether the symbol was received or recovered, or is forgotten.
func (d *Decoder) Has(id ID) bool {
	if id < d.low {
		return true
	}
	_, ok := d.symbols[id]
	return ok
}

// Rank returns how many independent equations it holds that did not give symbols yet. So
// many of the missing symbols need not be sent: other repairs or symbols will give them.
func (d *Decoder) Rank() int { return len(d.system.equations) }

// Held returns how many bytes it holds, with an allowance for the memory around the data.
func (d *Decoder) Held() int { return d.bytes + d.system.bytes }

// Damaged returns how many repairs and recoveries were dropped because what came out was
// malformed, or because they contradicted each other or a symbol: something was not what the
// sender had made of its symbols.
func (d *Decoder) Damaged() int { return d.damaged + d.system.damaged }

func (d *Decoder) keep(id ID, value []byte) {
	d.symbols[id] = value
	d.bytes += symbolOverhead + len(value)
	d.high = max(d.high, id+1)
}

func (d *Decoder) free(id ID) {
	if value, ok := d.symbols[id]; ok {
		delete(d.symbols, id)
		d.bytes -= symbolOverhead + len(value)
	}
	if _, ok := d.void[id]; ok {
		delete(d.void, id)
		d.bytes -= symbolOverhead
	}
}

// makeRoom drops equations with older symbols than first until size bytes and one equation
// more are within the limits, and reports whether they are.
func (d *Decoder) makeRoom(first ID, size int) bool {
	held, drop := d.Held()+size, 0
	for held > d.limit || d.Rank()-drop >= MaxWindow {
		if drop == d.Rank() || d.system.equations[drop].first >= first {
			return false
		}
		held -= d.system.equations[drop].size
		drop++
	}
	for range drop {
		d.system.remove(d.system.equations[0])
	}
	return true
}

// shrink drops the equations with the oldest symbols while the limit is exceeded.
func (d *Decoder) shrink() {
	for d.Held() > d.limit && d.Rank() > 0 {
		d.system.remove(d.system.equations[0])
	}
}

// recover takes symbols from the equations that have one symbol only. These are all that
// follow: what is subtracted with them from other equations leaves no other such equation.
func (d *Decoder) recover(single []*equation) (recovered []Symbol) {
	for _, e := range single {
		d.system.remove(e)
		value, ok := solve(e)
		if !ok {
			d.damaged++
			continue
		}
		d.keep(e.first, value)
		recovered = append(recovered, Symbol{ID: e.first, Data: value[lengthBytes:]})
		d.system.substitute(e.first, value)
	}
	slices.SortFunc(recovered, func(a, b Symbol) int { return cmp.Compare(a.ID, b.ID) })
	return recovered
}

// solve returns the symbol (length || data) of an equation that has no other.
func solve(e *equation) (value []byte, ok bool) {
	scale(e.data, reedsolomon.Inv(e.coefficients[0]))
	size := lengthBytes + int(binary.BigEndian.Uint16(e.data))
	if size > len(e.data) || slices.ContainsFunc(e.data[size:], func(b byte) bool { return b != 0 }) {
		return nil, false
	}
	value = e.data[:size:size]
	if size+size/4 < len(e.data) { // The symbol would keep an array that is longer than itself.
		value = slices.Clone(value)
	}
	return value, true
}

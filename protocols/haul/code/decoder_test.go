package code

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// exchange is a decoder beside a reference that tells what it must know.
type exchange struct {
	t         testing.TB
	source    source
	decoder   *Decoder
	reference *reference
	recovered map[ID]bool
}

func newExchange(t testing.TB, s source) *exchange {
	return &exchange{t: t, source: s, decoder: NewDecoder(1 << 30), reference: newReference(), recovered: map[ID]bool{}}
}

func (x *exchange) check(recovered []Symbol) {
	x.t.Helper()
	for _, s := range recovered {
		if x.recovered[s.ID] {
			x.t.Fatalf("symbol %d was recovered twice", s.ID)
		}
		x.recovered[s.ID] = true
		if want := x.source.symbol(s.ID); !bytes.Equal(s.Data, want.Data) {
			x.t.Fatalf("symbol %d: recovered % x, want % x", s.ID, s.Data, want.Data)
		}
	}
	if got, want := x.decoder.Rank(), len(x.reference.rows); got != want {
		x.t.Fatalf("rank %d, want %d", got, want)
	}
	for id := range x.reference.known {
		if !x.decoder.Has(id) {
			x.t.Fatalf("symbol %d follows from what arrived and is not known", id)
		}
	}
	if got, want := len(x.decoder.symbols), len(x.reference.known); got != want {
		x.t.Fatalf("%d symbols are known, want %d", got, want)
	}
	checkForm(x.t, x.decoder)
}

// checkForm checks what the code relies on inside.
func checkForm(t testing.TB, d *Decoder) {
	t.Helper()
	held := symbolOverhead * len(d.void)
	for id, value := range d.symbols {
		if id < d.low {
			t.Fatalf("symbol %d is held and forgotten", id)
		}
		held += symbolOverhead + len(value)
	}
	lasts := map[ID]bool{}
	for i, e := range d.system.equations {
		size := len(e.coefficients)
		if size < 2 || size > MaxWindow || e.coefficients[0] == 0 || e.coefficients[size-1] == 0 {
			t.Fatalf("equation %d has the coefficients % x", i, e.coefficients)
		}
		if lasts[e.last()] || d.system.byLast[e.last()] != e {
			t.Fatalf("equation %d ends with %d, as another does", i, e.last())
		}
		lasts[e.last()] = true
		if i > 0 && d.system.equations[i-1].first >= e.first {
			t.Fatalf("equation %d begins with %d, not after the one before", i, e.first)
		}
		if e.size < equationOverhead+size+len(e.data) {
			t.Fatalf("equation %d says that it takes %d bytes", i, e.size)
		}
		for j, c := range e.coefficients {
			id := e.first + ID(j)
			if _, void := d.void[id]; c != 0 && (d.Has(id) || void) {
				t.Fatalf("equation %d has symbol %d, which is known or void", i, id)
			}
		}
		held += e.size
	}
	if len(lasts) != len(d.system.byLast) || held != d.Held() {
		t.Fatalf("%d equations by last symbol, want %d; %d bytes held, want %d", len(d.system.byLast), len(lasts), d.Held(), held)
	}
}

func (x *exchange) add(id ID) {
	x.t.Helper()
	known := x.decoder.Has(id)
	if !known {
		x.reference.learn(id)
	}
	recovered := x.decoder.Add(id, x.source.symbol(id).Data)
	if known && recovered != nil {
		x.t.Fatalf("a duplicate of symbol %d recovered %d symbols", id, len(recovered))
	}
	x.recovered[id] = true
	x.check(recovered)
}

func (x *exchange) repair(r Repair) {
	x.t.Helper()
	want := x.reference.repair(&r)
	before := bytes.Clone(r.Data)
	recovered, useful := x.decoder.AddRepair(r)
	if useful != want {
		x.t.Fatalf("repair %d+%d with seed %d: useful is %v, want %v", r.First, r.Count, r.Seed, useful, want)
	}
	if !bytes.Equal(before, r.Data) {
		x.t.Fatal("AddRepair changed the repair's data")
	}
	x.check(recovered)
}

func (x *exchange) void(id ID) {
	x.t.Helper()
	x.reference.abandon(id)
	x.decoder.Void(id)
	x.check(nil)
}

func randomSkip(random *rand.Rand, count int) []byte {
	skip := make([]byte, random.IntN(count/8+2))
	for i := range skip {
		skip[i] = byte(random.Uint32() & random.Uint32())
	}
	return skip
}

// Symbols, repairs of any windows (also with the same seed) and marks arrive in any order:
// all that follows from them is recovered at once, and nothing else.
func TestRecoversWhatFollows(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		x := newExchange(t, source{seed: seed, longest: 1 + random.IntN(40), made: map[ID]Symbol{}})
		universe, seeds := 2+random.IntN(40), 1+random.IntN(1000)
		voids := random.IntN(2) * random.IntN(20)
		for range 3 * universe {
			first := random.IntN(universe)
			switch kind := random.IntN(100); {
			case kind < voids:
				x.void(ID(first))
			case kind < 30:
				x.add(ID(first))
			default:
				count := 1 + random.IntN(universe-first)
				x.repair(x.source.repair(ID(first), count, randomSkip(random, count), uint16(random.IntN(seeds))))
			}
		}
		if x.decoder.Damaged() != 0 {
			t.Fatalf("seed %d: %d recoveries were damaged", seed, x.decoder.Damaged())
		}
	}
}

// A channel loses, duplicates and reorders symbols of a window and repairs of it. When as
// many repairs have arrived as symbols are missing, hardly ever one more is needed: about one
// in 255 times.
func TestChannels(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			trials, extra, missing := 400, 0, 0
			for trial := range trials {
				e, m := channel(t, uint64(trial), loss)
				extra, missing = extra+e, missing+m
			}
			t.Logf("%d trials, %d symbols missing, %.4f repairs more than needed in a trial", trials, missing, float64(extra)/float64(trials))
			if mean := float64(extra) / float64(trials); mean >= 0.02 {
				t.Errorf("%.4f repairs more than needed in a trial, want less than 0.02", mean)
			}
		})
	}
}

func channel(t *testing.T, seed uint64, loss float64) (extra, missing int) {
	random := rand.New(rand.NewPCG(seed, uint64(loss*1000)))
	s := source{seed: seed, longest: 60}
	count := 1 + random.IntN(64)
	first := random.Uint64N(1 << 40)
	d := NewDecoder(1 << 20)
	d.Forget(first)
	sent := make([]Symbol, count)
	for i := range sent {
		sent[i] = s.symbol(first + ID(i))
	}
	var arrived []func() []Symbol
	for id := first; id < first+ID(count); id++ {
		if random.Float64() < loss {
			missing++
			continue
		}
		for range 1 + random.IntN(2) {
			arrived = append(arrived, func() []Symbol { return d.Add(id, sent[id-first].Data) })
		}
	}
	needed := missing
	repairSeed := uint16(random.Uint32())
	next := func() func() []Symbol {
		r := Repair{First: first, Count: count, Seed: repairSeed, Data: Encode(nil, repairSeed, sent)}
		repairSeed++
		return func() []Symbol { recovered, _ := d.AddRepair(r); return recovered }
	}
	for range missing {
		arrived = append(arrived, next())
	}
	random.Shuffle(len(arrived), func(i, j int) { arrived[i], arrived[j] = arrived[j], arrived[i] })
	recovered := map[ID]bool{}
	run := func(arrive func() []Symbol) {
		for _, symbol := range arrive() {
			if recovered[symbol.ID] || !bytes.Equal(symbol.Data, sent[symbol.ID-first].Data) {
				t.Fatalf("symbol %d was recovered twice or wrongly", symbol.ID)
			}
			recovered[symbol.ID] = true
		}
	}
	complete := func() bool {
		for id := first; id < first+ID(count); id++ {
			if !d.Has(id) {
				return false
			}
		}
		return true
	}
	for _, arrive := range arrived {
		run(arrive)
	}
	for !complete() {
		if extra++; extra > 5 {
			t.Fatalf("seed %d: %d of %d symbols were missing; %d repairs are not enough", seed, missing, count, needed+extra)
		}
		run(next())
	}
	if d.Rank() != 0 || d.Damaged() != 0 {
		t.Fatalf("rank %d and %d damaged after all", d.Rank(), d.Damaged())
	}
	return extra, missing
}

// A sender slides its window with what the receiver has, and sends a repair whenever symbols
// are missing that no equation stands for. All symbols arrive, for few repairs, in little
// memory.
func TestSlidingWindow(t *testing.T) {
	const count, longest, window = 5000, 60, 64
	for _, loss := range []float64{0.02, 0.2, 0.5} {
		random := rand.New(rand.NewPCG(8, uint64(loss*100)))
		s := source{seed: 8, longest: longest, made: map[ID]Symbol{}}
		d := NewDecoder(2 * window * (equationOverhead + window + lengthBytes + longest))
		low, missing, repairs, most := ID(0), 0, 0, 0
		var seed uint16
		absent := map[ID]bool{}
		take := func(recovered []Symbol) {
			for _, r := range recovered {
				if !absent[r.ID] || !bytes.Equal(r.Data, s.symbol(r.ID).Data) {
					t.Fatalf("symbol %d was not missing, or is wrong", r.ID)
				}
				delete(absent, r.ID)
			}
		}
		for id := range ID(count) {
			if random.Float64() < loss {
				absent[id] = true
				missing++
			} else {
				take(d.Add(id, s.symbol(id).Data))
			}
			for len(absent) > d.Rank() && (id%50 == 0 || id == count-1 || id-low == window-1) {
				if seed++; random.Float64() < loss {
					continue
				}
				repairs++
				recovered, _ := d.AddRepair(s.repair(low, int(id-low)+1, nil, seed))
				take(recovered)
			}
			for low <= id && d.Has(low) {
				low++
			}
			most = max(most, d.Held())
			d.Forget(low)
		}
		t.Logf("loss %g: %d missing, %d repairs, at most %d bytes held", loss, missing, repairs, most)
		if low != count || len(absent) > 0 || d.Held() != 0 || d.Damaged() != 0 {
			t.Errorf("loss %g: complete up to symbol %d, %d missing, %d bytes held, %d damaged", loss, low, len(absent), d.Held(), d.Damaged())
		}
		if float64(repairs) > 1.02*float64(missing)+3 {
			t.Errorf("loss %g: %d repairs for %d symbols", loss, repairs, missing)
		}
		if limit := window * (symbolOverhead + lengthBytes + longest + equationOverhead + window); most > limit {
			t.Errorf("loss %g: %d bytes held, want at most %d", loss, most, limit)
		}
	}
}

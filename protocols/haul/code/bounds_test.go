package code

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRefusesMalformedRepairs(t *testing.T) {
	s := source{seed: 1, longest: 20}
	d := NewDecoder(1 << 20)
	d.Forget(1000)
	d.Add(1002, make([]byte, 20))
	d.Void(1003)
	held := d.Held()
	repair := func(change func(*Repair)) Repair {
		r := Repair{First: 1000, Count: 2, Data: make([]byte, 22)}
		change(&r)
		return r
	}
	for name, r := range map[string]Repair{
		"no symbols":              repair(func(r *Repair) { r.Count = 0 }),
		"less than no symbols":    repair(func(r *Repair) { r.Count = -5 }),
		"too many symbols":        repair(func(r *Repair) { r.Count = MaxWindow + 1 }),
		"a huge count":            repair(func(r *Repair) { r.Count = 1<<63 - 1 }),
		"all skipped":             repair(func(r *Repair) { r.Skip = []byte{0xFF} }),
		"all skipped or known":    repair(func(r *Repair) { r.Count, r.Skip = 3, []byte{3} }),
		"no data":                 repair(func(r *Repair) { r.Data = nil }),
		"no length":               repair(func(r *Repair) { r.Data = []byte{1} }),
		"too long":                repair(func(r *Repair) { r.Data = make([]byte, 2+MaxSymbol+1) }),
		"all forgotten":           repair(func(r *Repair) { r.First = 900 }),
		"partly forgotten":        repair(func(r *Repair) { r.First = 999 }),
		"far ahead":               repair(func(r *Repair) { r.First = 1003 + MaxAhead + 1 }),
		"wraps around":            repair(func(r *Repair) { r.First = 1<<64 - 1 }),
		"a void symbol":           repair(func(r *Repair) { r.Count = 4 }),
		"shorter than its symbol": repair(func(r *Repair) { r.Count, r.Data = 3, make([]byte, 21) }),
	} {
		if recovered, useful := d.AddRepair(r); recovered != nil || useful || d.Rank() != 0 || d.Held() != held {
			t.Errorf("%s: recovered %v, useful %v, rank %d, %d bytes held, want nothing and %d", name, recovered, useful, d.Rank(), d.Held(), held)
		}
	}
	if d.Damaged() != 1 {
		t.Errorf("%d damaged, want the one that is shorter than its symbol", d.Damaged())
	}
	if d.Add(1005, make([]byte, MaxSymbol+1)); d.Has(1005) {
		t.Error("a symbol of more than MaxSymbol bytes was taken")
	}
	for name, r := range map[string]Repair{
		"as far ahead as may be": s.repair(1003+MaxAhead, 2, nil, 5),
		"forgotten ones skipped": s.repair(998, 4, []byte{0b0011}, 5),
		"a void one skipped":     s.repair(1001, 4, []byte{0b0110}, 5),
	} {
		if _, useful := d.AddRepair(r); !useful {
			t.Errorf("%s: not useful", name)
		}
	}
}

// A recovery whose length is impossible, or whose padding is not zero, is none.
func TestDamaged(t *testing.T) {
	for name, value := range map[string][]byte{
		"length beyond the data": {0, 4, 1, 2, 3},
		"huge length":            {0xFF, 0xFF, 1, 2, 3},
		"padding":                {0, 2, 1, 2, 3},
	} {
		d := NewDecoder(1 << 20)
		scale(value, Coefficient(3, 7))
		recovered, _ := d.AddRepair(Repair{First: 7, Count: 1, Seed: 3, Data: value})
		if recovered != nil || d.Has(7) || d.Rank() != 0 || d.Held() != 0 || d.Damaged() != 1 {
			t.Errorf("%s: recovered %v, rank %d, %d bytes held, %d damaged", name, recovered, d.Rank(), d.Held(), d.Damaged())
		}
		if recovered, _ = d.AddRepair((source{longest: 5}).repair(7, 1, nil, 4)); len(recovered) != 1 {
			t.Errorf("%s: the symbol is not recovered from an honest repair after it", name)
		}
	}
	s := source{longest: 5}
	d := NewDecoder(1 << 20)
	r := s.repair(0, 2, nil, 1)
	d.AddRepair(r)
	r.Data[0]++
	if _, useful := d.AddRepair(r); useful || d.Damaged() != 1 {
		t.Errorf("a repair that contradicts another: useful %v, %d damaged", useful, d.Damaged())
	}
	if recovered := d.Add(0, make([]byte, 1000)); recovered != nil || d.Rank() != 0 || d.Damaged() != 2 {
		t.Errorf("a symbol that contradicts a repair: recovered %v, rank %d, %d damaged", recovered, d.Rank(), d.Damaged())
	}
}

// An equation that a longer symbol contradicts is dropped wherever it has the symbol.
func TestContradictionInside(t *testing.T) {
	s := source{longest: 5}
	for id := range ID(3) {
		d := NewDecoder(1 << 20)
		d.AddRepair(s.repair(0, 3, nil, 1))
		d.Add(id, make([]byte, 100))
		if checkForm(t, d); d.Rank() != 0 || d.Damaged() != 1 {
			t.Errorf("symbol %d: rank %d, %d damaged, want the equation dropped", id, d.Rank(), d.Damaged())
		}
	}
}

// The widest windows: their last symbol is found, and Void makes none that is wider.
func TestWidestWindow(t *testing.T) {
	s := source{seed: 9, longest: 10}
	const last = MaxWindow - 1
	widest := func() *Decoder {
		d := NewDecoder(1 << 20)
		if _, useful := d.AddRepair(s.repair(0, MaxWindow, nil, 1)); !useful {
			t.Fatal("the first repair was not useful")
		}
		return d
	}
	d := widest()
	d.Add(last, s.symbol(last).Data)
	if checkForm(t, d); d.system.equations[0].last() != last-1 {
		t.Errorf("the equation ends with %d, want %d", d.system.equations[0].last(), last-1)
	}
	d = widest()
	d.AddRepair(s.repair(last, MaxWindow, nil, 2))
	d.Void(last)
	if checkForm(t, d); d.Rank() != 0 {
		t.Errorf("rank %d, want 0: together the two have more than %d symbols", d.Rank(), MaxWindow)
	}
	d = widest()
	d.AddRepair(s.repair(last, 1, nil, 2))
	d.AddRepair(s.repair(1, MaxWindow, nil, 3))
	d.Void(last - 1)
	if checkForm(t, d); d.Rank() != 0 {
		t.Errorf("rank %d, want 0: together the two have %d symbols", d.Rank(), MaxWindow+1)
	}
	d = widest()
	d.AddRepair(s.repair(100, last-99, nil, 2))
	d.Void(200)
	if checkForm(t, d); d.Rank() != 1 {
		t.Errorf("rank %d, want 1: one of two is lost", d.Rank())
	}
}

func TestVoid(t *testing.T) {
	s := source{seed: 3, longest: 100}
	d := NewDecoder(1 << 20)
	for seed := range uint16(3) {
		d.AddRepair(s.repair(10, 4, nil, seed))
	}
	d.Void(12)
	if d.Rank() != 2 || d.Has(12) {
		t.Fatalf("rank %d after Void, want 2: one equation is lost", d.Rank())
	}
	if _, useful := d.AddRepair(s.repair(10, 4, nil, 3)); useful {
		t.Error("a repair with the void symbol was useful")
	}
	// Three are missing, and two equations are there.
	recovered, useful := d.AddRepair(s.repair(10, 4, []byte{0b0100}, 4))
	if !useful || len(recovered) != 3 || recovered[0].ID != 10 || recovered[1].ID != 11 || recovered[2].ID != 13 {
		t.Fatalf("recovered %v, want 10, 11 and 13", recovered)
	}
	for _, r := range recovered {
		if !bytes.Equal(r.Data, s.symbol(r.ID).Data) {
			t.Errorf("symbol %d is wrong", r.ID)
		}
	}
	held := d.Held()
	if d.Void(10); !d.Has(10) || d.Held() != held {
		t.Error("Void of a known symbol changed something")
	}
	if d.Void(12); d.Held() != held {
		t.Error("a second Void changed something")
	}
	if d.Add(12, s.symbol(12).Data); !d.Has(12) {
		t.Error("a void symbol that arrives after all was not taken")
	}
	d.Forget(20)
	if d.Held() != 0 {
		t.Errorf("%d bytes are held after everything was forgotten", d.Held())
	}
}

func TestForget(t *testing.T) {
	s := source{seed: 4, longest: 100}
	d := NewDecoder(1 << 20)
	for id := range ID(10) {
		d.Add(id, s.symbol(id).Data)
	}
	d.Void(3)   // known: nothing
	d.Void(15)  // missing
	d.Void(600) // missing
	d.AddRepair(s.repair(10, 3, nil, 1))
	d.AddRepair(s.repair(11, 4, nil, 2))
	d.AddRepair(s.repair(13, 2, nil, 3))
	if d.Rank() != 3 {
		t.Fatalf("rank %d, want 3", d.Rank())
	}
	d.Forget(12)
	if d.Rank() != 1 || !d.Has(11) || d.Has(12) || d.Has(14) {
		t.Fatalf("rank %d, want 1: the equations with 10 and 11 are gone", d.Rank())
	}
	if d.Add(11, nil) != nil || d.Rank() != 1 {
		t.Error("a forgotten symbol changed something")
	}
	d.Forget(5) // The mark does not move back.
	if !d.Has(11) {
		t.Error("the mark moved back")
	}
	if recovered := d.Add(13, s.symbol(13).Data); len(recovered) != 1 || recovered[0].ID != 14 {
		t.Errorf("recovered %v, want 14", recovered)
	}
	d.Forget(1 << 62)
	if d.Held() != 0 || d.Rank() != 0 || len(d.symbols)+len(d.void) != 0 {
		t.Errorf("%d bytes are held after everything was forgotten", d.Held())
	}
}

func TestCopies(t *testing.T) {
	s := source{seed: 5, longest: 50}
	d := NewDecoder(1 << 20)
	data := s.symbol(0).Data
	d.Add(0, data)
	clear(data)
	one := s.repair(0, 3, nil, 1)
	d.AddRepair(one)
	clear(one.Data)
	recovered := d.Add(1, s.symbol(1).Data)
	if len(recovered) != 1 || !bytes.Equal(recovered[0].Data, s.symbol(2).Data) {
		t.Errorf("recovered %v, want symbol 2", recovered)
	}
}

func TestLimit(t *testing.T) {
	s := source{seed: 6, longest: 100}
	r := func(first ID) Repair { return s.repair(first, 4, nil, uint16(first)) }
	size := func(r Repair) int { return equationSize(r.Count, len(r.Data)) }

	// The oldest equation makes room; one that is itself the oldest is refused.
	d := NewDecoder(size(r(20)) + size(r(30)) + max(size(r(10)), size(r(40))))
	for _, first := range []ID{10, 20, 30} {
		if _, useful := d.AddRepair(r(first)); !useful {
			t.Fatalf("repair %d was not useful", first)
		}
	}
	d.AddRepair(r(40))
	firsts := func() (ids []ID) {
		for _, e := range d.system.equations {
			ids = append(ids, e.first)
		}
		return ids
	}
	if got := firsts(); !slices.Equal(got, []ID{20, 30, 40}) {
		t.Errorf("equations of %v are held, want 20, 30 and 40", got)
	}
	if _, useful := d.AddRepair(s.repair(5, 20, nil, 99)); useful || d.Rank() != 3 {
		t.Error("a repair with older symbols displaced others")
	}
	// Symbols displace all equations and exceed the limit; then no repair is taken.
	for id := ID(1000); d.Held() <= d.limit; id++ {
		d.Add(id, make([]byte, 500))
		checkForm(t, d)
	}
	if d.Rank() != 0 {
		t.Errorf("rank %d beside symbols that fill the memory", d.Rank())
	}
	if _, useful := d.AddRepair(r(2000)); useful {
		t.Error("a repair was taken although symbols fill the memory")
	}
	held := d.Held()
	if d.Void(3000); d.Held() != held {
		t.Error("Void took memory beyond the limit")
	}

	// An equation that grows: the second is subtracted from the first, which has little data.
	for _, spare := range []int{0, 200} {
		wide := Repair{Count: 3, Skip: []byte{0b010}, Seed: 1, Data: Encode(nil, 1, []Symbol{{ID: 0}, {ID: 2}})}
		long := Repair{Count: 2, Seed: 2, Data: Encode(nil, 2, []Symbol{{ID: 0}, {ID: 1, Data: make([]byte, 200)}})}
		d = NewDecoder(size(wide) + size(long) + spare)
		d.AddRepair(wide)
		d.AddRepair(long)
		if checkForm(t, d); d.Held() > d.limit || d.Rank() != 1+spare/200 {
			t.Errorf("rank %d with %d bytes held; the limit is %d", d.Rank(), d.Held(), d.limit)
		}
	}

	// At most MaxWindow equations.
	d = NewDecoder(1 << 30)
	for i := range ID(2 * MaxWindow) {
		d.AddRepair(s.repair(10*i, 2, nil, 0))
	}
	if d.Rank() != MaxWindow || d.system.equations[0].first != 10*MaxWindow {
		t.Errorf("%d equations from symbol %d, want %d from %d", d.Rank(), d.system.equations[0].first, MaxWindow, 10*MaxWindow)
	}
}

// The ranges of chains of windows stay within MaxWindow, and a new equation costs no more
// steps than the window has symbols.
func TestLongChains(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	s := source{seed: 7, longest: 4}
	d := NewDecoder(1 << 30)
	var seed uint16
	for first := ID(0); first < 3000; first += ID(random.IntN(40)) {
		for range 1 + random.IntN(10) {
			d.AddRepair(s.repair(first, 1+random.IntN(MaxWindow), nil, seed))
			seed++
		}
		if random.IntN(3) == 0 {
			d.Void(first + ID(random.IntN(MaxWindow)))
		}
		checkForm(t, d)
	}
	if d.Damaged() != 0 {
		t.Errorf("%d damaged", d.Damaged())
	}
}

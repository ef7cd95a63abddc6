package code

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Another implementation can hold itself against these: they never change.
func TestCoefficientIsSpecified(t *testing.T) {
	for _, c := range []struct {
		seed uint16
		id   ID
		want byte
	}{
		{0, 0, 226}, {0, 1, 145}, {1, 0, 162}, {1, 1, 1}, {0xFFFF, 0, 137}, {258, 1 << 40, 76}, {7, 1<<64 - 1, 197},
	} {
		if got := Coefficient(c.seed, c.id); got != c.want {
			t.Errorf("Coefficient(%d, %d) = %d, want %d", c.seed, c.id, got, c.want)
		}
	}
}

// Over small numbers, as they occur, all values but 0 are equally frequent, and each bit of
// the input changes the value in 254 of 255 cases.
func TestCoefficientIsSpread(t *testing.T) {
	var count [256]int
	const seeds, ids = 256, 1024
	for seed := range uint16(seeds) {
		for id := range ID(ids) {
			count[Coefficient(seed, id)]++
		}
	}
	if count[0] != 0 {
		t.Fatalf("%d coefficients are 0", count[0])
	}
	chi, mean := 0.0, float64(seeds*ids)/255
	for _, n := range count[1:] {
		chi += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	if chi < 170 || chi > 350 { // 254 ± 22.5
		t.Errorf("chi-square of the values is %.0f, want about 254", chi)
	}
	for bit := range 64 + 16 {
		same, trials := 0, 20000
		for i := range ID(trials) {
			seed, id := uint16(i/200), i%200
			flippedSeed, flippedID := seed, id
			if bit < 64 {
				flippedID ^= 1 << bit
			} else {
				flippedSeed ^= 1 << (bit - 64)
			}
			if Coefficient(seed, id) == Coefficient(flippedSeed, flippedID) {
				same++
			}
		}
		if same < 40 || same > 120 { // 78 ± 9
			t.Errorf("a change of bit %d leaves %d of %d coefficients, want about %d", bit, same, trials, trials/255)
		}
	}
}

func TestRepairHas(t *testing.T) {
	r := Repair{First: 100, Count: 20, Skip: []byte{0b00000001, 0b10000000}}
	var got []ID
	for id := ID(90); id < 130; id++ {
		if r.Has(id) {
			got = append(got, id)
		}
	}
	want := []ID{101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 116, 117, 118, 119}
	if !slices.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
	for _, r := range []Repair{{Count: 0}, {Count: -1}, {First: 1<<64 - 1, Count: 1, Skip: []byte{1}}} {
		if r.Has(r.First) || r.Has(r.First-1) || r.Has(r.First+1) {
			t.Errorf("%+v has a symbol", r)
		}
	}
}

func TestEncode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var dst []byte
	for trial := range 200 {
		s := source{seed: uint64(trial), longest: random.IntN(300)}
		var symbols []Symbol
		for id := range ID(1 + random.IntN(MaxWindow)) {
			if random.IntN(4) > 0 {
				symbols = append(symbols, s.symbol(1000+id))
			}
		}
		if len(symbols) == 0 {
			continue
		}
		seed := uint16(random.Uint32())
		want := encodeSlowly(seed, symbols)
		if dst = Encode(dst, seed, symbols); !bytes.Equal(dst, want) {
			t.Fatalf("trial %d: %d symbols give % x, want % x", trial, len(symbols), dst, want)
		}
	}
	if allocated := testing.AllocsPerRun(100, func() { Encode(dst, 1, []Symbol{{0, dst[:10]}, {1, nil}}) }); allocated > 0 {
		t.Errorf("Encode into a large enough array allocates %.0f times", allocated)
	}
}

func TestFieldIsThatOfTheLibrary(t *testing.T) {
	for a := range 256 {
		for b := range 256 {
			product := [1]byte{byte(a)}
			scale(product[:], byte(b))
			if want := multiply(byte(a), byte(b)); product[0] != want {
				t.Fatalf("%d times %d is %d, want %d", a, b, product[0], want)
			}
			if b != 0 && divide(product[0], byte(b)) != byte(a) {
				t.Fatalf("%d times %d divided by %d is %d", a, b, b, divide(product[0], byte(b)))
			}
		}
	}
}

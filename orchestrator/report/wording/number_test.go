package wording

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The pages' tests read the same cases (web/src/lib/number.test.ts).
func TestValuesOfPages(t *testing.T) {
	b, err := os.ReadFile("testdata/numbers.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Numbers, Percents, Rates [][]any }
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases.Numbers) < 30 || len(cases.Percents) < 10 || len(cases.Rates) < 8 {
		t.Fatalf("found %d, %d and %d cases", len(cases.Numbers), len(cases.Percents), len(cases.Rates))
	}
	number := func(v any) *float64 {
		if x, ok := v.(float64); ok {
			return &x
		}
		return nil
	}
	for _, c := range cases.Numbers {
		if got := Number(number(c[0])); got != c[1] {
			t.Errorf("number %v: got %s, want %s", c[0], got, c[1])
		}
	}
	for _, c := range cases.Percents {
		if got := Percent(number(c[0]), int(*number(c[1]))); got != c[2] {
			t.Errorf("percent %v, %v decimals: got %s, want %s", c[0], c[1], got, c[2])
		}
	}
	for _, c := range cases.Rates {
		if got := Rate(*number(c[0])); got != c[1] {
			t.Errorf("rate %v: got %s, want %s", c[0], got, c[1])
		}
	}
}

// Whatever the number, three digits of it can be read: it is never off by more than half of
// the third.
func TestThreeDigits(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 6))
	check := func(x float64) {
		text := Number(&x)
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(got-x) > 0.00501*math.Abs(x) || x != 0 && strings.Trim(text, "-0.") == "" {
			t.Errorf("%v: %s, %v", x, text, err)
		}
	}
	for range 20_000 {
		check((random.Float64() - 0.5) * math.Pow10(random.IntN(40)-20))
	}
	for _, x := range []float64{1e-300, 9.9949, 9.995, 999.5, math.MaxFloat64} {
		check(x)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := Number(&x); got != None {
			t.Errorf("%v: %s", x, got)
		}
	}
}

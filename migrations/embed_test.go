package migrations

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A migration with a number that an earlier build used would be taken for applied, in a
// database of that build.
func TestNoNumberIsUsedAgain(t *testing.T) {
	names, err := fs.Glob(Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	for _, name := range names {
		digits, _, _ := strings.Cut(name, "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || len(digits) != 5 {
			t.Errorf("%s: expected a number of five digits and an underscore first", name)
		}
		if Retired(n) {
			t.Errorf("%s: number %d was used before the baseline, expected %d or more", name, n, lastRetired+1)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 0 || slices.Min(numbers) != Baseline {
		t.Errorf("migrations %v, expected the first to be %d", numbers, Baseline)
	}
	if slices.Sort(numbers); len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("migrations %v, expected each number once", numbers)
	}
	for number, want := range map[int64]bool{0: false, 1: false, 2: true, 43: true, 44: false} {
		if Retired(number) != want {
			t.Errorf("Retired(%d) is %t", number, !want)
		}
	}
}

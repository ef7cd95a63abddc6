package audit

import "testing"

// Files of earlier versions have a fixed number of decimals and name no unit.
func TestWrittenValues(t *testing.T) {
	for _, c := range []struct {
		text  string
		least int
		want  int
	}{{"103.9624", 4, 4}, {"7.45", 4, 4}, {"0.00727539062", 4, 11}, {"7.31e-07", 4, 9}, {"213.46", 0, 2}, {"–", 0, 0}} {
		if got := decimals(c.text, c.least); got != c.want {
			t.Errorf("%s: %d decimals, expected %d", c.text, got, c.want)
		}
	}
	if same(0.0073, 0.00727539062, decimals("0.00727539062", 4)) {
		t.Error("a rounded number is taken for one of nine digits")
	}
	for header, want := range map[string]float64{"| Average |": 1, "| Average, KB/s |": 1, "| Average, B/s |": 1024, "| Average, MB/s |": 1. / 1024} {
		if got := kbpsIn(header); got != want {
			t.Errorf("%s: %v, expected %v", header, got, want)
		}
	}
}

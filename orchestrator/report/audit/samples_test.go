package audit

import (
	"fmt"
	"testing"
)

// The last sample of a transfer may be of the same moment as the one before: a sample
// that is taken between the transfer's end and the last one, seed 20261123 of a fault
// campaign on a busy machine. None may be earlier.
func TestTimesOfSamples(t *testing.T) {
	for _, c := range []struct {
		second   int
		findings int
	}{{400_443_771, 0}, {400_443_770, 1}, {400_443_772, 0}} {
		record := fmt.Sprintf(`samples {"trial":0,"attempt":1,"flow":0,"side":"client","samples":[{"elapsed_ns":400443771,"sent_bytes":2048},{"elapsed_ns":%d,"sent_bytes":2048}]}`, c.second)
		report, err := Audit(smallWith(t, record))
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range report.Checks {
			if check.Code != Samples {
				continue
			}
			if check.Objects != 2 || len(check.Findings) != c.findings {
				t.Errorf("samples of 400443771 and %d ns: looked at %d samples, findings %v, expected %d", c.second, check.Objects, check.Findings, c.findings)
			}
		}
	}
}

// What was sent again is part of what was sent, and neither goes back.
func TestBytesSentAgain(t *testing.T) {
	for values, findings := range map[string]int{
		`"transmitted_bytes":3000,"retransmitted_bytes":952`:  0,
		`"retransmitted_bytes":952`:                           0,
		`"transmitted_bytes":2999,"retransmitted_bytes":952`:  1,
		`"transmitted_bytes":3000,"retransmitted_bytes":951`:  1,
		`"transmitted_bytes":3000,"retransmitted_bytes":3001`: 1,
	} {
		record := fmt.Sprintf(`samples {"trial":0,"attempt":1,"flow":0,"side":"client","samples":[{"elapsed_ns":1,"sent_bytes":2048,"transmitted_bytes":3000,"retransmitted_bytes":952},{"elapsed_ns":2,"sent_bytes":2048,%s}]}`, values)
		report, err := Audit(smallWith(t, record))
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range report.Checks {
			if check.Code == Samples && (check.Objects != 2 || len(check.Findings) != findings) {
				t.Errorf("%s: looked at %d samples, findings %v, expected %d", values, check.Objects, check.Findings, findings)
			}
		}
	}
}

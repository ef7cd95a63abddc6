package plan_test

import (
	"strings"
	"testing"

	"linktrial/orchestrator/plan"
)

// A row of published values is of one cell, or the plan says which it could be.
func TestRowsNameTheirCell(t *testing.T) {
	const text = `name: swept
radio: transports-link
topology: point-to-point
size: [10 KB, 100 KB]
sweep:
  - {name: loss, set: channel.loss, values: [0, 0.1]}
treatments:
  - {name: tcp, protocol: tcp}
iterations: 3
seed: 1
published:
  source: a paper
  rows:
`
	const values = ", topology: point-to-point, radio: transports-link, treatment: tcp, n: 10, average: 2, maximum: 3, minimum: 1, sd: 1}\n"
	row := func(where string) string { return "    - {where: " + where + values }
	for rows, want := range map[string]string{
		"    - {" + values[2:]:                           "4 runs of the plan have transports-link at point-to-point (10 KiB · loss 0; 10 KiB · loss 0.1; …): name one of them with where",
		row("{loss: 0}"):                                 "2 runs of the plan",
		row("{loss: 0.5}"):                               "loss",
		row("{loss: 0, size: 1 KB}"):                     "no run of the plan has transports-link at point-to-point with these conditions",
		strings.Repeat(row("{loss: 0, size: 10 KB}"), 2): "given twice",
		row("{loss: 0, size: 10 KB}") + row("{loss: 0.1, size: 10 KB}"): "",
	} {
		p, err := plan.Parse(nil, "p", []byte(text+rows), testCatalog(t))
		if want == "" {
			if err != nil || len(p.Published) != 2 {
				t.Errorf("%s: %v", rows, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", rows, err, want)
		}
	}
}

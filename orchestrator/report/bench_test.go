package report

import (
	"fmt"
	"testing"

	"linktrial/executor/runsheet"
)

// big is a campaign of so many runs of four treatments, swept over a parameter.
func big(runs, iterations int) *Dataset {
	ds := campaign()
	for i := range runs {
		r := run(fmt.Sprintf("r-%d", i), fmt.Sprintf("radio-%d", i%4), fmt.Sprintf("Radio %d", i%4), "point-to-point", "Point to point", int64(1024*(1+i/4%5)), iterations, cubic, bbr, sctp, udt)
		loss := fmt.Sprintf("%.3f", float64(i/20)/1000)
		r.Sheet.Cell.Label = "loss " + loss
		r.Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: loss, Label: loss}}
		ds.Runs = append(ds.Runs, r)
	}
	return ds
}

// BenchmarkRender is every format of a campaign of 10 000 trials.
func BenchmarkRender(b *testing.B) {
	ds := big(500, 5)
	for _, f := range Formats() {
		b.Run(f, func(b *testing.B) {
			for b.Loop() {
				if _, err := Render(ds, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

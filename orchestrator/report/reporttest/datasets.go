package reporttest

import (
	"fmt"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
)

// Datasets are what the formats are tested with.
func Datasets() map[string]*report.Dataset {
	twelve := make([]Treatment, 12)
	for i := range twelve {
		n := string(rune('a' + i))
		twelve[i] = Treatment{Name: n, Label: strings.Repeat("a longer label than any ", i%3) + n, Protocol: "tcp", KBps: 10 * float64(int(1)<<i)}
	}
	hostile := NewRun("r-x", "x", `\radio{}`, "y", "a|b & 100 % $x_1^2 ~#<b>"+"\x1b[2J", 1000, 3,
		Treatment{"one", "=1+1,\"q\"\r\nnext", "p", 10, ""}, Treatment{"two", "Größe 中 ‹é› `x` *y* [z](u) --- \\\\[3cm]", "p", 20, ""},
		Treatment{"three", "", "p", 0, "no \"driver\", " + strings.Repeat("and no reason that is short ", 9)})
	none := NewRun("r-0", "mpu4", "WaveRelay MPU4", "k-lot", "K Lot", 1<<20, 4, Cubic, UDT)
	for i := range none.Trials {
		Spoil(&none.Trials[i], journal.TimedOut, "transfer-timeout", "", true)
	}
	return map[string]*report.Dataset{
		"quickstart": Campaign(Quickstart()),
		"eventful":   Eventful(),
		"swept":      Swept(),
		"probed":     Probed(),
		"compared":   Compared(),
		"stopped":    Stopped(),
		"required":   Required(),
		"places":     Places(),
		"big":        Big(60, 3),
		"one":        Campaign(NewRun("r-1", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 1, Cubic)),
		"twelve":     Campaign(NewRun("r-12", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 5, twelve...)),
		"hostile":    Campaign(hostile),
		"no-valid":   Campaign(none),
		"wide":       Wide(),
		"queued":     {Campaign: "c", Plan: "p", Runs: []report.Run{{ID: "r", State: "queued"}}},
		"empty":      {},
	}
}

// Big is a campaign of so many runs of four treatments, swept over a parameter.
func Big(runs, iterations int) *report.Dataset {
	ds := Campaign()
	for i := range runs {
		r := NewRun(fmt.Sprintf("r-%d", i), fmt.Sprintf("radio-%d", i%4), fmt.Sprintf("Radio %d", i%4), "point-to-point", "Point to point", int64(1024*(1+i/4%5)), iterations, Cubic, BBR, SCTP, UDT)
		loss := fmt.Sprintf("%.3f", float64(i/20)/1000)
		r.Sheet.Cell.Label = "loss " + loss
		r.Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: loss, Label: loss}}
		ds.Runs = append(ds.Runs, r)
	}
	return ds
}

// Wide is a campaign whose names are as long as a plan may have them, in more runs and
// treatments than a page holds.
func Wide() *report.Dataset {
	word := strings.Repeat("wide", 50)
	treatments := make([]Treatment, 15)
	for i := range treatments {
		treatments[i] = Treatment{Name: fmt.Sprintf("t-%d", i), Label: word[:200-i*13] + fmt.Sprint(i), Protocol: "tcp", KBps: 100 + float64(i)}
	}
	ds := Campaign()
	for i := range 24 {
		topology := fmt.Sprintf("topology-%d", i/9)
		r := NewRun(fmt.Sprintf("r-%d", i), fmt.Sprintf("radio-%d", i%3), "Radio "+word+", 1.5 Mbit/s", topology, word+" "+topology, 1<<20, 2, treatments...)
		label := fmt.Sprintf("loss_from_client_to_server %d, one-way delay between the nodes %s", i, word[:i*8])
		r.Sheet.Cell.Label = label
		r.Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: fmt.Sprint(i), Label: label}}
		ds.Runs = append(ds.Runs, r)
	}
	return ds
}

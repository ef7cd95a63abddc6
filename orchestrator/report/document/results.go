package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

func results(v *report.Analysis) ([]Section, error) {
	names := runNames(v)
	var parts []Section
	for _, part := range []func(*report.Analysis, []string) (Section, error){
		throughputPart, deliveryPart, sequencePart, curvesPart, probesPart,
	} {
		s, err := part(v, names)
		if err != nil {
			return nil, err
		}
		if len(s.Blocks) > 0 {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	rate := v.RateUnit()
	return append([]Section{{ID: "results", Title: "Results", Level: 1, Blocks: []Block{
		paragraph(fmt.Sprintf("Throughput is in %s; %s. A trial is valid where its last attempt succeeded and every byte was verified; throughput is of valid trials alone. Intervals have a level of 95 %%.", rate.Name, rate.Meaning())),
	}}}, parts...), nil
}

func hasRows(t *report.RunTable) bool { return len(t.Rows) > 0 }

func throughputPart(v *report.Analysis, names []string) (Section, error) {
	s := Section{ID: "results-throughput", Title: "Throughput", Level: 2}
	if !slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return hasRows(&t) }) {
		return s, nil
	}
	s.Blocks = slices.Concat(layoutTables(v, names), averages(v, names), flows(v, names))
	for _, d := range []*drawings{throughputDrawings(v), distributionDrawings(v)} {
		blocks, err := d.blocks(v)
		if err != nil {
			return s, err
		}
		s.Blocks = append(s.Blocks, blocks...)
	}
	return s, nil
}

// shownIf is a column of a value that not all campaigns have.
type shownIf struct {
	head  string
	value func(*report.Row) string
	has   func(*report.Row) bool
}

// present are the columns that any row of the runs has a value for.
func present(v *report.Analysis, all []shownIf) (out []shownIf) {
	for _, c := range all {
		if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(c.has) }) {
			out = append(out, c)
		}
	}
	return out
}

// averages are tables of the averages with their intervals, and what belongs to them.
func averages(v *report.Analysis, names []string) []Block {
	rate := v.RateUnit()
	has := func(value func(*report.Row) *float64) func(*report.Row) bool {
		return func(r *report.Row) bool { return value(r) != nil }
	}
	number := func(head string, value func(*report.Row) *float64) shownIf {
		return shownIf{head, func(r *report.Row) string { return wording.Number(value(r)) }, has(value)}
	}
	average := func(r *report.Row) *float64 { return r.AverageKBps }
	shown := present(v, []shownIf{
		{"Average, " + rate.Name, func(r *report.Row) string { return rate.Write(r.AverageKBps) }, has(average)},
		{"95 % CI, t", func(r *report.Row) string { return r.MeanCI.Text(rate.Write) }, has(average)},
		{"95 % CI, bootstrap", func(r *report.Row) string { return r.BootstrapCI.Text(rate.Write) }, func(r *report.Row) bool { return r.BootstrapCI != nil }},
		{"Median, " + rate.Name, func(r *report.Row) string { return rate.Write(r.MedianKBps) }, has(average)},
		{"Of Ideal", func(r *report.Row) string { return wording.Percent(r.ShareOfIdeal, 1) }, report.HasIdeal},
		{"Of coded bound", func(r *report.Row) string { return wording.Percent(r.ShareOfCodedBound, 1) }, report.HasCodedBound},
		number("Connect, s", func(r *report.Row) *float64 { return r.ConnectSeconds }),
		number("Retransmits", func(r *report.Row) *float64 { return r.Retransmits }),
		number("Timeouts", func(r *report.Row) *float64 { return r.Timeouts }),
	})
	if len(shown) == 0 {
		return nil
	}
	columns := []column{textColumn("Treatment")}
	for _, c := range shown {
		columns = append(columns, numberColumns(c.head)...)
	}
	var runs []ofRun
	for i := range v.Tables {
		t := &v.Tables[i]
		r := ofRun{run: i}
		for k := range t.Rows {
			if t.Rows[k].AverageKBps == nil {
				continue
			}
			cells := []string{wording.Clean(t.Rows[k].Label)}
			for _, c := range shown {
				cells = append(cells, c.value(&t.Rows[k]))
			}
			r.rows = append(r.rows, cells)
		}
		if t.BoundsUnknown != "" {
			r.notes = append(r.notes, t.BoundsUnknown)
		}
		if len(r.rows) > 0 {
			runs = append(runs, r)
		}
	}
	return tablesOf(names, "Averages of valid trials", columns, runs)
}

// flows are tables of trials with several flows.
func flows(v *report.Analysis, names []string) []Block {
	rate := v.RateUnit()
	var runs []ofRun
	for i := range v.Tables {
		r := ofRun{run: i}
		for k := range v.Tables[i].Rows {
			row := &v.Tables[i].Rows[k]
			if row.Flows == 0 {
				continue
			}
			label := wording.Clean(row.Label)
			r.rows = append(r.rows, []string{label, strconv.Itoa(row.Flows), rate.Write(row.FlowKBps), row.FlowCI.Text(rate.Write), wording.Number(row.Jain)})
			for _, p := range row.Parts {
				r.rows = append(r.rows, []string{label + ", its flows of " + wording.Clean(p.Label), strconv.Itoa(p.Flows), rate.Write(p.AverageKBps), p.CI.Text(rate.Write), ""})
			}
		}
		if len(r.rows) > 0 {
			r.notes = []string{"Flows: of one trial; a source that goes on and off counts once. Jain's index: 1 where all flows of a trial have the same throughput."}
			runs = append(runs, r)
		}
	}
	return tablesOf(names, "Throughput of a flow, in trials of several", append([]column{textColumn("Treatment")}, numberColumns("Flows", "Average of a flow, "+rate.Name, "95 % CI, t", "Jain's index")...), runs)
}

func deliveryPart(v *report.Analysis, names []string) (Section, error) {
	s := Section{ID: "results-delivery", Title: "Time to delivery", Level: 2}
	rate := v.RateUnit()
	var runs []ofRun
	horizon, several := "", false
	for i := range v.Tables {
		t := &v.Tables[i]
		if !t.Has(failedDelivery) {
			continue
		}
		r := ofRun{run: i, notes: []string{wording.Sentence(t.DeliveryLegend())}}
		for k := range t.Rows {
			if d := t.Rows[k].Delivery; d != nil {
				r.rows = append(r.rows, append([]string{wording.Clean(t.Rows[k].Label)}, d.Cells(rate)...))
			}
		}
		several = several || len(runs) > 0 && horizon != t.HorizonText()
		horizon = t.HorizonText()
		runs = append(runs, r)
	}
	if several {
		horizon = ""
	}
	s.Blocks = tablesOf(names, "Time to delivery in seconds, where trials failed", append([]column{textColumn("Treatment")}, numberColumns(report.DeliveryHeader(horizon, rate)...)...), runs)
	blocks, err := deliveryDrawings(v).blocks(v)
	s.Blocks = append(s.Blocks, blocks...)
	return s, err
}

// failedDelivery: the average leaves trials out that were not delivered.
func failedDelivery(r *report.Row) bool { return r.Failed > 0 && r.Delivery != nil }

func curvesPart(v *report.Analysis, _ []string) (Section, error) {
	s := Section{ID: "results-curves", Title: "Curves over swept parameters", Level: 2}
	var err error
	s.Blocks, err = curveDrawings(v).blocks(v)
	return s, err
}

func probesPart(v *report.Analysis, names []string) (Section, error) {
	s := Section{ID: "results-probes", Title: "Probes", Level: 2}
	speech := slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return report.HasSpeech(t.Probes) })
	var delays, capacities, messages []ofRun
	for i := range v.Tables {
		t := &v.Tables[i]
		d, c, m := probeRows(i, t, speech)
		if len(d.rows) > 0 {
			d.notes = append(cleaned(t.ProbeCaveats()), t.ProbeLegend())
			delays = append(delays, d)
		}
		if len(c.rows) > 0 {
			c.notes = []string{report.CapacityLegend}
			if len(d.rows) == 0 {
				c.notes = append(cleaned(t.ProbeCaveats()), c.notes...)
			}
			capacities = append(capacities, c)
		}
		if len(m.rows) > 0 {
			m.notes = []string{report.MessageLegend}
			messages = append(messages, m)
		}
	}
	heads := []string{"Measured", "Delay min, ms", "mean", "50 %", "95 %", "99 %", "max", "Jitter, ms", "Loss", "Longest burst", "Reordered", "Duplicated"}
	if speech {
		heads = append(heads, "MOS")
	}
	s.Blocks = slices.Concat(
		tablesOf(names, "One-way delay and loss of probes", append([]column{textColumn("Probe")}, numberColumns(heads...)...), delays),
		tablesOf(names, "Capacity", append([]column{textColumn("Search")}, numberColumns(report.CapacityHeader()...)...), capacities),
		tablesOf(names, "Messages", append([]column{textColumn("Probe")}, numberColumns(report.MessageHeader()...)...), messages))
	blocks, err := delayDrawings(v).blocks(v)
	s.Blocks = append(s.Blocks, blocks...)
	return s, err
}

// probeRows are the rows of a run's probes: their delays, what searches found, and messages.
func probeRows(run int, t *report.RunTable, speech bool) (delays, capacities, messages ofRun) {
	delays.run, capacities.run, messages.run = run, run, run
	for k := range t.Probes {
		p := &t.Probes[k]
		if p.Capacity != nil { // its packets are mostly of rates that were only tried
			capacities.rows = append(capacities.rows, append([]string{wording.Clean(p.Label)}, p.CapacityCells()...))
			continue
		}
		cells := append([]string{p.Name()}, p.Cells()...)
		if speech {
			cells = append(cells, wording.Number(p.MOS))
		}
		delays.rows = append(delays.rows, cells)
		for j := range p.Messages {
			messages.rows = append(messages.rows, append([]string{p.Name()}, p.Messages[j].Cells()...))
		}
	}
	return delays, capacities, messages
}

// cleaned are sentences of what may have texts of others.
func cleaned(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = wording.Sentence(strings.TrimSuffix(wording.Clean(s), ".")) + "."
	}
	return out
}

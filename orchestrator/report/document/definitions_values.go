package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
	"linktrial/protocols/probe/pattern"
)

// codecTexts are what the E-model takes for the codecs of patterns that are speech.
var codecTexts = map[string]string{
	pattern.G711: "G.711 with concealment of losses, " + codecText(stats.G711),
	pattern.G729: "G.729A with voice activity detection, " + codecText(stats.G729A),
}

func codecText(c stats.Codec) string {
	return fmt.Sprintf("Ie %s, Bpl %s, %s of delay of its own", exact(c.Ie), exact(c.Bpl), lasting(c.Own))
}

// mostRunRows is how many rows of single runs a table of this chapter has; of more, it has rows
// over all runs, or the worst.
const mostRunRows = 40

// bufferDelays is the table of how much later packets of a probe arrive beside transfers over
// TCP than the fastest of the same probe alone, where the clocks are known.
func bufferDelays(v *report.Analysis) []Block {
	g := grid{caption: "Buffer delay percentage, one way", heads: []string{"Run", "Radio and place", "Setting", "Treatment", "Probe", "Least delay alone, ms", "Mean delay beside, ms", "Buffer delay, %"},
		numbers: []string{"Run", "Least delay alone, ms", "Mean delay beside, ms", "Buffer delay, %"}}
	for i := range v.Tables {
		t := &v.Tables[i]
		if t.ProbeClock == nil || t.ProbeClock.Unknown != "" {
			continue
		}
		for k := range t.Rows {
			if row := &t.Rows[k]; row.OverTCP() {
				addBufferDelays(&g, v, i, row)
			}
		}
	}
	if more := len(g.rows) - mostRunRows; more > 0 {
		g.rows = g.rows[:mostRunRows]
		g.notes = []string{fmt.Sprintf("%d rows more follow from the delays in results.json.", more)}
	}
	return g.blocks()
}

func addBufferDelays(g *grid, v *report.Analysis, run int, row *report.Row) {
	t := &v.Tables[run]
	for i := range t.Probes {
		p := &t.Probes[i]
		if p.Beside != row.Treatment || p.DelayMeanMS == nil {
			continue
		}
		k := slices.IndexFunc(t.Probes, func(x report.ProbeRow) bool {
			return x.Beside == "" && x.Probe == p.Probe && x.From == p.From && x.DelayMinMS != nil && *x.DelayMinMS > 0
		})
		if k < 0 {
			continue
		}
		least := t.Probes[k].DelayMinMS
		percent := 100 * (*p.DelayMeanMS - *least) / *least
		g.add(strconv.Itoa(run+1), radioAt(t), caseOf(v, t), row.Label, p.Label, wording.Delay(least), wording.Delay(p.DelayMeanMS), wording.Decimals(&percent, 0))
	}
}

// voiceValues is the table of the quality of each probe that was speech, with the playout
// deadline that it is for. Of many, the worst are in it.
func voiceValues(v *report.Analysis) []Block {
	type call struct {
		run int
		row *report.ProbeRow
	}
	var calls []call
	for i := range v.Tables {
		for k := range v.Tables[i].Probes {
			if p := &v.Tables[i].Probes[k]; p.MOS != nil && p.RFactor != nil {
				calls = append(calls, call{i, p})
			}
		}
	}
	g := grid{caption: "Quality of voice", heads: []string{"Run", "Radio and place", "Setting", "Probe", "R", "MOS", "Playout deadline, ms", "Lost"},
		numbers: []string{"Run", "R", "MOS", "Playout deadline, ms", "Lost"},
		notes:   []string{"R, MOS and playout deadline are means over the trials."}}
	if len(calls) > mostRunRows {
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(*a.row.MOS, *b.row.MOS) })
		g.notes = append(g.notes, fmt.Sprintf("The %d with the lowest MOS of %d.", mostRunRows, len(calls)))
		calls = calls[:mostRunRows]
	}
	for _, c := range calls {
		t := &v.Tables[c.run]
		g.add(strconv.Itoa(c.run+1), radioAt(t), caseOf(v, t), c.row.Name(), wording.Decimals(c.row.RFactor, 1), wording.Decimals(c.row.MOS, 2), wording.Delay(c.row.PlayoutMS), wording.Percent(c.row.LossShare, 2))
	}
	return g.blocks()
}

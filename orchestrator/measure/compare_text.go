package measure

import (
	"fmt"
	"math"
	"strings"
	"time"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
)

// comparePlan is the name of a comparison's plan.
const comparePlan = "compare"

// text is the plan. Each value has a line that says what it follows from.
func (c *Comparison) text(b *basis, p *Proposal, iteration, connect, limit time.Duration) string {
	var list []string
	for i := range c.Protocols {
		list = append(list, c.Protocols[i].treatment())
	}
	interval := "100ms"
	if float64(p.SizeBytes)/b.fastest > 10 {
		interval = "500ms"
	}
	return fmt.Sprintf(`# Compares protocols over a link: composed by 'linktrial compare'.
# Its values follow from the measurement of the campaign %s.
name: %s
title: Compare protocols
# Radio and topology are those of the measurement.
radio: %q
topology: %q
# %s
size: %s
# The first is the one with which the others are compared.
treatments:
  - %s
# As many as fit into %s: one takes about %s, and a tenth of the time is reserve.
iterations: %d
# Each protocol follows each other one as often, so that a link that changes favours none.
order: counterbalanced
# The same seed gives the same order.
seed: 1
# connect: %s
# transfer: %s
# attempts: a transfer that fails is a result; repeating it would take time that was not reckoned.
limits: {connect: %s, transfer: %s, attempts: 1}
# At least 20 samples of a transfer.
sample_interval: %s
`, c.Campaign, comparePlan, c.Radio, c.Topology, b.whySize(), unit.FormatBytes(p.SizeBytes), strings.Join(list, "\n  - "),
		spell(c.Budget), spell(iteration), p.Iterations, b.whyConnect(), b.whyTransfer(), connect, limit, interval)
}

func (b *basis) whySize() string {
	of := fmt.Sprintf("%s carried %.4g KB/s", b.fastestLabel, b.fastest/1024)
	if b.fastestLabel == "" {
		of = fmt.Sprintf("No transfer was carried; nine tenths of the capacity are %.4g KB/s", b.fastest/1024)
	}
	trip := "the round trip is not known"
	if b.roundTrip > 0 {
		trip = fmt.Sprintf("and at least %d round trips of %s", roundTrips, milli(b.roundTrip))
	}
	return fmt.Sprintf("%s: what that carries in %s, %s, rounded up; at least %s.", of, spell(leastTime), trip, unit.FormatBytes(leastSize))
}

func (b *basis) whyConnect() string {
	if b.loss > lossy {
		return fmt.Sprintf("%.2g %% of the small packets were lost: five repetitions of a handshake's first packet.", 100*b.loss)
	}
	trip := ""
	if b.roundTrip > 0 {
		trip = fmt.Sprintf("%d round trips, and ", connectTrips)
	}
	return fmt.Sprintf("%s%d times what a handshake takes over the slower way (%s); at least %s.", trip, handshakeMargin, unit.FormatRate(b.worstBPS), spell(leastConnect))
}

func (b *basis) whyTransfer() string {
	most := fmt.Sprintf("%d times the time of the fastest protocol", tooSlow)
	if b.slowest == 0 || len(b.failed) > 0 {
		return most + ": a transfer of the measurement was not carried."
	}
	return fmt.Sprintf("%d times the time of the slowest protocol that was measured (%.4g KB/s), at most %s: what is slower has lost.", slower, b.slowest/1024, most)
}

// say is what a proposal is, how long it takes and what it can decide.
func (p *Proposal) say(c *Comparison, limit time.Duration) []string {
	out := []string{fmt.Sprintf("%s: %s of a transfer of %s each; about %s, and at most %s if every transfer takes its limit of %s.", strings.Join(p.Labels, ", "), count(p.Iterations),
		unit.FormatBytes(p.SizeBytes), spell(p.Estimated), spell(p.Bound), spell(limit))}
	if math.IsInf(p.Smallest, 0) {
		return append(out, fmt.Sprintf("It cannot decide anything: with %d protocols, differences are decided from %d iterations on. %s", len(p.Labels), p.least, p.advice()))
	}
	out = append(out, fmt.Sprintf("It decides a difference of %.1f %% between two of them with 80 %% chance, if the ratio of two protocols varies by %.0f %% from iteration to iteration. That is assumed: one transfer of each does not tell it.",
		100*p.Smallest, 100*report.AssumedSpread))
	if !p.Decides {
		out = append(out, fmt.Sprintf("It cannot decide a difference of %.0f %% in %s. %s", 100*decisive, spell(c.Budget), p.advice()))
	}
	return out
}

// advice is which budget decides.
func (p *Proposal) advice() string {
	if p.DecisiveBudget == 0 {
		return fmt.Sprintf("No comparison of at most %s decides a difference of %.0f %%: compare fewer protocols.", spell(MostBudget), 100*decisive)
	}
	return fmt.Sprintf("A budget of %s decides a difference of %.0f %%.", spell(p.DecisiveBudget), 100*decisive)
}

func count(n int) string {
	if n == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", n)
}

// milli is a short time for people.
func milli(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
}

// spell is a time for people, in the two largest units that it has.
func spell(d time.Duration) string {
	d = d.Round(time.Second)
	parts := []struct {
		n    time.Duration
		unit string
	}{{d / time.Hour, "h"}, {d % time.Hour / time.Minute, "min"}, {d % time.Minute / time.Second, "s"}}
	var out []string
	for _, p := range parts {
		if p.n > 0 && (p.unit != "s" || d < time.Hour) {
			out = append(out, fmt.Sprintf("%d %s", p.n, p.unit))
		}
	}
	if len(out) == 0 {
		return "0 s"
	}
	return strings.Join(out, " ")
}

package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

// Lengths of faults from a seed: some shorter than the time in which the control link
// notices silence (3 s), some longer.
const (
	leastFor = 500 * time.Millisecond
	mostFor  = 6 * time.Second
)

// recovery is how long the target of a fault is left alone afterwards, because it is
// being started again. It is part of what a seed means, so it does not depend on how
// long that takes.
var recovery = map[faultlog.Target]time.Duration{
	faultlog.Agent: 3 * time.Second, faultlog.Driver: time.Second, faultlog.Orchestrator: 8 * time.Second, faultlog.Database: 4 * time.Second,
	faultlog.Emulator: 2 * time.Second, faultlog.Node: 5 * time.Second, faultlog.Listener: time.Second,
}

// Random draws faults from a seed without end: the same ones at the same times for
// the same seed, settings and nodes, whatever happens in the lab.
type Random struct {
	Seed  uint64
	Every time.Duration // the mean interval between the beginnings of two faults

	Choices []Choice // among which is drawn

	rng   *rand.Rand
	draws []draw
	at    time.Duration
	until map[place]time.Duration // when what was hit may be hit again
}

// draw is a fault of a kind at one place. Every draw is as likely as any other, so
// that what is there on three nodes is hit three times as often.
type draw struct {
	Choice
	node radio.Role
}

// NewRandom draws among the given choices, all where there are none, on the given
// nodes.
func NewRandom(seed uint64, every time.Duration, choices []Choice, nodes Nodes) *Random {
	if len(choices) == 0 {
		choices = nodes.Choices()
	}
	r := &Random{Seed: seed, Every: every, Choices: choices, rng: rand.New(rand.NewPCG(seed, 0x6661756c7473)), until: map[place]time.Duration{}}
	for _, c := range choices {
		if !ofNode(c.Target) {
			r.draws = append(r.draws, draw{c, ""})
			continue
		}
		for _, n := range nodes.with(c.Target) {
			r.draws = append(r.draws, draw{c, n})
		}
	}
	return r
}

// Next returns the next fault, and false where nothing can be hit.
func (r *Random) Next() (Injection, bool) {
	if len(r.draws) == 0 {
		return Injection{}, false
	}
	r.at += time.Duration(r.rng.ExpFloat64() * float64(r.Every))
	for {
		d := r.draws[r.rng.IntN(len(r.draws))]
		i := Injection{At: r.at.Round(time.Millisecond), Kind: d.Kind, Target: d.Target, Node: d.node, Pick: r.rng.Uint32()}
		if shapeOf(d.Kind).lasts {
			i.For = (leastFor + time.Duration(r.rng.Int64N(int64(mostFor-leastFor)))).Round(10 * time.Millisecond)
		}
		if key := shapeOf(d.Kind).value; key != "" {
			values[key].def(&i)
		}
		// Where all that can be hit is hit already, a later moment is tried.
		if r.busy(i) {
			r.at += r.Every / 16
			continue
		}
		for _, p := range placesOf(i) {
			r.until[p] = i.At + i.For + recovery[p.target]
		}
		return i, true
	}
}

// busy reports whether what a fault would hit is hit then, or is part of a node that
// is.
func (r *Random) busy(i Injection) bool {
	return slices.ContainsFunc(placesOf(i), func(p place) bool { return r.until[p] > i.At }) ||
		i.Node != "" && r.until[place{faultlog.Node, i.Node}] > i.At
}

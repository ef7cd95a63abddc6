package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
)

// step is one part of a preflight, in order.
type step struct {
	words    string        // what is done, for people
	expected time.Duration // where nothing is wrong
	do       func(context.Context)
}

// How long the nodes' own checks, and those of one peer, take where nothing is wrong.
const (
	selfExpected = 3 * time.Second
	pairExpected = 4 * time.Second
	awayExpected = 4 * time.Second
)

// progress is how far a preflight is.
type progress struct {
	steps []step
	began time.Time // of the first of them
}

func (p *progress) next(now time.Time) {
	if len(p.steps) > 0 {
		p.steps = p.steps[1:]
	}
	p.began = now
}

// now returns what is done, and how long the rest takes where nothing is wrong.
func (p *progress) now(now time.Time) (words string, seconds float64) {
	for i, s := range p.steps {
		left := s.expected
		if i == 0 {
			words, left = s.words, max(time.Second, left-now.Sub(p.began))
		}
		seconds += left.Seconds()
	}
	return words, seconds
}

// steps are those of a preflight, which is told of them.
func (f *Fleet) steps(p *preflight) []step {
	var all []step
	all = append(all, step{"each node checks itself", selfExpected, func(ctx context.Context) {
		f.ask(ctx, p, f.cfg.Self, func(n *nodes.Node) *linktrialv1.PreflightRequest { return f.request(p, n, "self") }, p.nodes...)
	}})
	away := step{words: "nodes without contact are asked over the radio", do: func(ctx context.Context) {
		f.ask(ctx, p, f.cfg.Pair, func(n *nodes.Node) *linktrialv1.PreflightRequest { return f.pairs(p, n, "away", true) }, p.nodes...)
	}}
	if names := names(p.nodes, func(n *nodes.Node) bool { return !n.Connected }); len(names) > 0 {
		away.words, away.expected = fmt.Sprintf("whether %s, without contact here, answers over the radio", strings.Join(names, ", ")), awayExpected
	}
	all = append(all, away) // a node may lose contact while the nodes check themselves
	for i := range p.nodes {
		n := &p.nodes[i]
		f.mu.Lock()
		w := f.pairs(p, n, "pairs", false)
		f.mu.Unlock()
		if w != nil && n.Connected {
			all = append(all, step{fmt.Sprintf("%s checks the way to %s", n.Name, peerNames(w)), time.Duration(len(w.Peers)) * pairExpected, func(ctx context.Context) {
				f.ask(ctx, p, time.Duration(len(w.Peers))*f.cfg.Pair, func(*nodes.Node) *linktrialv1.PreflightRequest { return f.pairs(p, n, "pairs", false) }, *n)
			}})
		}
	}
	for i, x := range p.carried {
		all = append(all, step{fmt.Sprintf("one small transfer each of %s", treatmentNames(x)), x.expected(), func(ctx context.Context) { f.carry(ctx, p, x, i+1) }})
	}
	f.mu.Lock()
	p.progress = progress{all, time.Now()}
	f.mu.Unlock()
	return all
}

func names(all []nodes.Node, which func(*nodes.Node) bool) (out []string) {
	for i := range all {
		if which(&all[i]) {
			out = append(out, all[i].Name)
		}
	}
	return out
}

func peerNames(w *linktrialv1.PreflightRequest) string {
	var out []string
	for _, p := range w.Peers {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

func treatmentNames(x *transfers) string {
	var out []string
	for _, t := range x.sheet.Treatments {
		out = append(out, t.Name)
	}
	return strings.Join(out, ", ")
}

// request is what a node is asked for in every step but the transfers.
func (f *Fleet) request(p *preflight, n *nodes.Node, kind string) *linktrialv1.PreflightRequest {
	w := &linktrialv1.PreflightRequest{Id: p.id + "." + kind, Treatments: p.protocols, MtuBytes: p.mtu}
	profile := f.cfg.Catalog.Profile(cmp.Or(p.radio, n.Radio))
	if !n.Emulated && n.Radio == "" {
		profile = nil // nobody has said that its radio is that one
	}
	if w.MtuBytes == 0 && profile != nil {
		w.MtuBytes = mtuOf(profile)
	}
	var err error
	if w.RadioProfile, err = EncodeProfile(profile); err != nil {
		f.log.Error("profile cannot be sent to its node", "radio", profile.Name, "error", err)
	}
	return w
}

// pairs asks a node to check its peers: those on the same radio network that have
// contact to the orchestrator, or those that have none; nil: there are none. The fleet's
// mutex is held.
func (f *Fleet) pairs(p *preflight, n *nodes.Node, kind string, away bool) *linktrialv1.PreflightRequest {
	w := f.request(p, n, kind)
	w.PairsOnly = true
	for _, o := range p.nodes {
		if o.Name != n.Name && o.Emulated == n.Emulated && o.Lab == n.Lab && o.Radio == n.Radio && o.RadioAddress != "" && n.RadioAddress != "" && hasContact(p, o.Name) != away {
			w.Peers = append(w.Peers, &linktrialv1.PreflightPeer{Name: o.Name, RadioAddress: o.RadioAddress, Away: away})
		}
	}
	if len(w.Peers) == 0 {
		return nil
	}
	return w
}

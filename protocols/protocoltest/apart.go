package protocoltest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// apartAtOnce is how many checks that run apart run at a time.
const apartAtOnce = 6

// transfersApart is how many numbers of transfers one of them has for itself.
const transfersApart = 1000

// group is the checks that run apart, several at once beside those that run alone: most
// of their time is waiting.
type group struct {
	of   *suite
	subs []*suite
	out  []chan outcomeApart
	next int
	all  sync.WaitGroup
}

type outcomeApart struct {
	res Check
	err error
}

// beginApart starts the checks of a group; broken is why none of them can run.
func (s *suite) beginApart(ctx context.Context, checks []*check, broken string) *group {
	g := &group{of: s, subs: make([]*suite, len(checks)), out: make([]chan outcomeApart, len(checks))}
	slots := make(chan struct{}, apartAtOnce)
	for i, c := range checks {
		sub := &suite{
			target: s.target, o: s.o, ends: s.ends, limits: s.limits, command: s.command, unsupported: s.unsupported, instead: s.instead,
			transfers: s.transfers + uint64(i)*transfersApart, secret: s.secret,
		}
		g.out[i], g.subs[i] = make(chan outcomeApart, 1), sub
		loopback := s.net.loopback
		g.all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := time.Now()
			res, err := sub.checkApart(ctx, c, broken, loopback)
			res.Elapsed = time.Since(begin)
			g.out[i] <- outcomeApart{res, err}
		})
	}
	s.transfers += uint64(len(checks)) * transfersApart
	return g
}

// result waits for the next check of the group, in their order. The suite knows what all
// of their processes did when it has had the last one. The error is ctx's end, or of the
// suite.
func (g *group) result() (Check, error) {
	x := <-g.out[g.next]
	g.next++
	if g.next == len(g.out) {
		for _, sub := range g.subs {
			g.of.output = append(g.of.output, sub.output...)
			g.of.exits = append(g.of.exits, sub.exits...)
			g.of.children = append(g.of.children, sub.children...)
		}
	}
	return x.res, x.err
}

func (s *suite) checkApart(ctx context.Context, c *check, broken, loopback string) (Check, error) {
	net, err := newNetworkApart(s.ends.at, loopback)
	var sk *skipped
	if errors.As(err, &sk) {
		return Check{Name: c.name, About: c.about, Holds: c.holds, Outcome: Skipped, Detail: sk.reason}, nil
	}
	if err != nil {
		return Check{Name: c.name, About: c.about, Holds: c.holds}, err
	}
	defer net.close()
	s.net = net
	return s.check(ctx, c, broken)
}

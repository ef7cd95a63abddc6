package protocoltest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// apartAtOnce is how many checks that run apart run at a time.
const apartAtOnce = 6

// What one of them has for itself: ports, on the loopback interface, and numbers
// of transfers.
const (
	portsApart     = 16
	transfersApart = 1000
)

// runApart runs the checks of a group and reports their results in order, each
// as soon as those before it are there. The error is ctx's end, or of the suite.
func (s *suite) runApart(ctx context.Context, group []*check, broken string, report func(Check)) error {
	type outcome struct {
		res Check
		err error
	}
	out := make([]chan outcome, len(group))
	subs := make([]*suite, len(group))
	var wg sync.WaitGroup
	slots := make(chan struct{}, apartAtOnce)
	for i, c := range group {
		sub := &suite{
			target: s.target, o: s.o, command: s.command, unsupported: s.unsupported, instead: s.instead,
			ports: s.ports + i*portsApart, transfers: s.transfers + uint64(i)*transfersApart, secret: s.secret,
		}
		out[i], subs[i] = make(chan outcome, 1), sub
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := time.Now()
			res, err := sub.checkApart(ctx, c, broken, s.net)
			res.Elapsed = time.Since(begin)
			out[i] <- outcome{res, err}
		})
	}
	var failed error
	for _, o := range out {
		x := <-o
		if failed == nil && x.err == nil {
			report(x.res)
		} else if failed == nil {
			failed = x.err
		}
	}
	wg.Wait()
	for _, sub := range subs {
		s.output = append(s.output, sub.output...)
		s.exits = append(s.exits, sub.exits...)
		s.children = append(s.children, sub.children...)
	}
	s.ports += len(group) * portsApart
	s.transfers += uint64(len(group)) * transfersApart
	return failed
}

func (s *suite) checkApart(ctx context.Context, c *check, broken string, home *network) (Check, error) {
	net, err := newNetworkApart(home.loopback)
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

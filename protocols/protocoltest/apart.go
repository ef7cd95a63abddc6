package protocoltest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// apart are the checks that run in a network of their own, with a [wire], and
// several of them at once: most of their time is waiting.
var apart = map[string]bool{
	"local-address": true, "unknown-fields": true, "refused": true, "no-route": true, "no-such-address": true, "ipv6": true, "ready-open": true,
	"stop-early": true, "prompt-exit": true, "first-byte-limit": true, "header-limit": true, "silent-peer": true, "server-limit": true,
	"long-outage": true, "answer-kept": true, "broken-off": true, "lossy-link": true,
}

// apartAtOnce is how many of them run at a time.
const apartAtOnce = 6

// portsApart is the number of ports that one of them has on the loopback interface.
const portsApart = 16

// outcome is a check that has run.
type outcome struct {
	res Check
	err error
}

// runApart runs the checks of a group and returns their results in order.
func (s *suite) runApart(ctx context.Context, group []*check, broken string) []outcome {
	out := make([]outcome, len(group))
	subs := make([]*suite, len(group))
	var wg sync.WaitGroup
	slots := make(chan struct{}, apartAtOnce)
	for i, c := range group {
		sub := &suite{
			target: s.target, o: s.o, command: s.command, unsupported: s.unsupported, instead: s.instead,
			ports: s.ports + i*portsApart, transfers: s.transfers + uint64(i)*1000,
		}
		subs[i] = sub
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := time.Now()
			out[i].res, out[i].err = sub.checkApart(ctx, c, broken, s.net)
			out[i].res.Elapsed = time.Since(begin)
		})
	}
	wg.Wait()
	for _, sub := range subs {
		s.output = append(s.output, sub.output...)
		s.exits = append(s.exits, sub.exits...)
		s.children = append(s.children, sub.children...)
	}
	s.ports += len(group) * portsApart
	s.transfers += uint64(len(group)) * 1000
	return out
}

func (s *suite) checkApart(ctx context.Context, c *check, broken string, home *network) (Check, error) {
	net, err := newWireNetwork(home.loopback, s.ports)
	var sk *skipped
	if errors.As(err, &sk) {
		return Check{Name: c.name, About: c.about, Holds: Holds(c.name), Outcome: Skipped, Detail: sk.reason}, nil
	}
	if err != nil {
		return Check{Name: c.name, About: c.about}, err
	}
	defer net.close()
	s.net = net
	return s.check(ctx, c, broken)
}

package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/contract"
)

func checkRelayIdleLimit(ctx context.Context, s *suite) (string, error) {
	const limit = 2 * time.Second
	limits := &contract.Limits{ConnectMS: connectMS, TransferMS: limit.Milliseconds()}
	return s.eachWay(ctx, wayOf{limits: limits}, func(w *way) (string, error) {
		for {
			took, late, err := w.idle(ctx, limit)
			switch {
			case late && ctx.Err() == nil: // this machine let the suite itself wait too long
				continue
			case err != nil:
				return "", err
			}
			return fmt.Sprintf("reset after %s", took.Round(time.Millisecond)), nil
		}
	})
}

// idle moves bytes for longer than twice the limit, and then none. late: a pause
// between two bytes was too long.
func (w *way) idle(ctx context.Context, limit time.Duration) (took time.Duration, late bool, err error) {
	p, err := w.connect()
	if err != nil {
		return 0, false, err
	}
	defer p.close()
	last := time.Now()
	for begin := last; time.Since(begin) < 2*limit+limit/4; {
		if err := wait(ctx, limit/5); err != nil {
			return 0, false, err
		}
		if err := p.patient(w.s.o.Patience); err != nil {
			return 0, false, err
		}
		err := pass(p.server, p.client, "alive")
		late, last = late || time.Since(last) > limit/2, time.Now()
		if err != nil {
			return 0, late, fmt.Errorf("a connection on which a byte moves every %s, with limits.transfer_ms of %s: %w", limit/5, limit, err)
		}
	}
	if err := p.patient(2*limit + w.s.o.Patience); err != nil {
		return 0, false, err
	}
	if err := readsReset(p.client); err != nil {
		return 0, false, fmt.Errorf("no byte moves for limits.transfer_ms of %s: the client: %w", limit, err)
	}
	if took = time.Since(last); took < limit*9/10 {
		return 0, false, fmt.Errorf("reset %s after the last byte, limits.transfer_ms is %s", took, limit)
	}
	if err := readsReset(p.server); err != nil {
		return 0, false, fmt.Errorf("no byte moves for limits.transfer_ms of %s: the server: %w", limit, err)
	}
	return took, false, nil
}

func checkRelayLeavesNothing(ctx context.Context, s *suite) (string, error) {
	n := 100
	if s.o.Quick {
		n = 20
	}
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		var before []int
		for _, r := range w.relays {
			before = append(before, sockets(r))
		}
		for i := range n {
			p, err := w.carrying()
			if err == nil && i%2 == 0 {
				err = errors.Join(ended(p.client, p.server), ended(p.server, p.client))
			}
			if err != nil {
				return "", fmt.Errorf("connection %d: %w", i+1, err)
			}
			if i%2 == 1 {
				reset(p.client)
			}
			p.close()
		}
		for i, r := range w.relays {
			left, err := s.settled(ctx, r, before[i])
			if err != nil {
				return "", err
			}
			if left > before[i] {
				return "", fmt.Errorf("relay %d has %d sockets after %d connections that have all ended, and had %d before", i+1, left, n, before[i])
			}
		}
		return fmt.Sprintf("%d connections", n), nil
	})
}

func checkRelayIdle(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.connect()
		if err != nil {
			return "", err
		}
		err = errors.Join(ended(p.client, p.server), ended(p.server, p.client))
		p.close()
		if err != nil {
			return "", err
		}
		detail := ""
		for _, r := range w.relays {
			if detail, err = s.becomesIdle(ctx, r, "relay", "connection"); err != nil {
				return "", err
			}
		}
		return detail, nil
	})
}

func checkRelayStop(ctx context.Context, s *suite) (string, error) {
	early, send, err := s.waiting(&contract.Parameters{Role: contract.RoleRelay})
	if err != nil {
		return "", err
	}
	early.early = true
	if err := s.asleep(ctx, early); err != nil {
		return "", err
	}
	early.terminate()
	err = early.wait(ctx, s.o.waits.stop)
	_ = send() // to nobody
	if err != nil {
		return "", fmt.Errorf("SIGTERM while the relay waits for its document: %w", err)
	}
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.carrying()
		if err != nil {
			return "", err
		}
		defer p.close()
		begin := time.Now()
		w.relays[0].terminate()
		if err := s.stopped(ctx, w.relays[0]); err != nil {
			return "", fmt.Errorf("a relay with a connection: %w", err)
		}
		took := time.Since(begin)
		if err := p.patient(s.o.Patience); err != nil {
			return "", err
		}
		if err := readsReset(p.client); err != nil {
			return "", fmt.Errorf("SIGTERM: the client: %w", err)
		}
		if err := readsReset(p.server); err != nil {
			return "", fmt.Errorf("SIGTERM: the server: %w", err)
		}
		if c, err := w.dial(); err == nil {
			_ = c.Close()
			return "", errors.New("the port of a relay that was stopped is still open")
		}
		for _, r := range w.relays[1:] {
			r.terminate()
			if err := s.stopped(ctx, r); err != nil {
				return "", fmt.Errorf("a relay without a connection: %w", err)
			}
		}
		return fmt.Sprintf("after %s with a connection", took.Round(time.Millisecond)), nil
	})
}

func checkRelayKilled(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.carrying()
		if err != nil {
			return "", err
		}
		defer p.close()
		w.relays[0].kill()
		if err := w.relays[0].wait(ctx, s.o.waits.stop); err != nil {
			return "", err
		}
		if err := p.patient(s.o.Patience); err != nil {
			return "", err
		}
		if err := readsReset(p.client); err != nil {
			return "", fmt.Errorf("SIGKILL: the client: %w", err)
		}
		// Behind another protocol nobody can say so any more.
		if len(w.relays) == 1 {
			if err := readsReset(p.server); err != nil {
				return "", fmt.Errorf("SIGKILL: the server: %w", err)
			}
		}
		return "", nil
	})
}

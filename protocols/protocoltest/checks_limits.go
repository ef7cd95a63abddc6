package protocoltest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// brisk is a link that no driver fills a processor with.
var brisk = link.Conditions{BitsPerSecond: 20_000_000, Backlog: 32 << 10}

// checkSilentPeer cuts the link for good in a transfer: each end has only its
// own limit to notice.
func checkSilentPeer(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	l.Both(brisk)
	sp := s.serverParams()
	sp.Limits.TransferMS = 2500
	p := s.clientParams(sp.Local.Port, endless)
	p.Limits.TransferMS = 2000
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	l.Both(link.Conditions{Cut: true})
	cut := time.Now()
	for _, end := range []struct {
		d     *proc
		limit int64
	}{{c, p.Limits.TransferMS}, {srv, sp.Limits.TransferMS}} {
		limit := time.Duration(end.limit) * time.Millisecond
		e, err := end.d.await(ctx, time.Until(cut.Add(limit+s.o.waits.limit)), "error event", about(contract.KindError, p.Transfer.ID))
		if err != nil {
			return "", fmt.Errorf("the link was cut for good in a transfer, limits.transfer_ms of the %s is %d: %w", end.d.name, end.limit, err)
		}
		if e.Code != contract.CodeTransferTimeout {
			return "", fmt.Errorf("the link was cut for good in a transfer: the %s said %s (%s), expected transfer-timeout after limits.transfer_ms (%d)", end.d.name, e.Code, e.Message, end.limit)
		}
		// Its clock started after the client's process.
		if after := e.at.Sub(c.began); after < limit {
			return "", fmt.Errorf("the %s said transfer-timeout %s after the client had started, its limits.transfer_ms is %d", end.d.name, after.Round(time.Millisecond), end.limit)
		}
	}
	if _, err := s.failure(ctx, c, s.o.waits.exit, contract.CodeTransferTimeout); err != nil {
		return "", err
	}
	l.Both(link.Conditions{})
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	return "", nil
}

// checkFirstByteLimit: the server's process is stopped, so that a connection may
// come about and nothing comes over it.
func checkFirstByteLimit(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	if _, err := s.pause(ctx, srv); err != nil {
		return "", err
	}
	defer srv.resume()
	p := s.clientParams(sp.Local.Port, little())
	p.Limits.ConnectMS = 1000
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	limit := time.Duration(p.Limits.ConnectMS) * time.Millisecond
	if _, err := s.failure(ctx, c, limit+s.o.waits.limit+s.o.waits.exit, contract.CodeConnectTimeout); err != nil {
		return "", fmt.Errorf("a server that does not send R, limits.connect_ms is %d: %w", p.Limits.ConnectMS, err)
	}
	took := time.Since(c.began)
	if took < limit {
		return "", fmt.Errorf("connect-timeout after %s, limits.connect_ms is %d", took.Round(time.Millisecond), p.Limits.ConnectMS)
	}
	srv.resume()
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	return "after " + took.Round(time.Millisecond).String(), nil
}

// headerTries is how many clients checkHeaderLimit starts: the n-th one's
// packets after the n-th are held back. With one of these numbers, the handshake
// is complete and the header is held, whatever the protocol.
const headerTries = 6

// checkHeaderLimit: clients whose header arrives long after the server's
// limits.connect_ms must not be served.
func checkHeaderLimit(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	sp := s.serverParams()
	sp.Limits.ConnectMS = 1000
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	l.Up.Change(link.Conditions{Hold: func(p link.Packet) bool { return p.Number > p.Flow }})
	ps, cs := [headerTries]*contract.Parameters{}, [headerTries]*proc{}
	for i := range headerTries {
		ps[i] = s.clientParams(sp.Local.Port, little())
		ps[i].Limits = contract.Limits{ConnectMS: 2000 + s.o.waits.limit.Milliseconds(), TransferMS: transferMS}
		if cs[i], err = s.begin(ps[i]); err != nil {
			return "", err
		}
	}
	// Their programs start at once, which takes its time.
	for _, c := range cs {
		if _, err := c.await(ctx, s.o.waits.ready, "ready event", kind(contract.KindReady)); err != nil {
			return "", err
		}
	}
	held, waiting, err := s.headless(ctx, srv, cs[:], ps[:], time.Duration(sp.Limits.ConnectMS)*time.Millisecond)
	if err != nil {
		return "", err
	}
	l.Up.Release()
	for _, i := range waiting {
		if err := cs[i].wait(ctx, s.o.waits.limit); err != nil && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if srv.find(about(contract.KindConnected, ps[i].Transfer.ID)) != nil {
			return "", fmt.Errorf("a header that arrived %s after the connection was served; the server's limits.connect_ms is %d, so it ends the connection by then", held.Round(100*time.Millisecond), sp.Limits.ConnectMS)
		}
	}
	// A client that was killed may have been served: its transfer has an outcome.
	e := srv.find(func(e *seen) bool {
		return e.Event.Event == contract.KindError && (e.Transfer == "" || slices.ContainsFunc(waiting, func(i int) bool { return ps[i].Transfer.ID == e.Transfer }))
	})
	if e != nil {
		return "", fmt.Errorf("a connection that ended before its header is for the log alone, but the server wrote an event; it said %s: %s", e.Code, e.Message)
	}
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	return fmt.Sprintf("%d connections without a header were ended", len(waiting)), nil
}

// headless waits until the server's limit has passed, and returns the clients
// that have R and whose header the server has not. A server that keeps its limit
// breaks off within it, and these clients hear of that and end: packets to them
// are not held. One that goes on is waited for as long as the server may take.
func (s *suite) headless(ctx context.Context, srv *proc, cs []*proc, ps []*contract.Parameters, limit time.Duration) (held time.Duration, waiting []int, err error) {
	most := limit + s.o.waits.limit
	begin := time.Now()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		var connected int
		waiting, held = nil, 0
		for i, c := range cs {
			e := c.find(kind(contract.KindConnected))
			if e == nil || srv.find(about(contract.KindConnected, ps[i].Transfer.ID)) != nil {
				continue
			}
			connected++
			select {
			case <-c.ended:
				waiting = append(waiting, i)
				continue
			default:
			}
			if since := time.Since(e.at); since >= most {
				held, done = max(held, since), true
				waiting = append(waiting, i)
			}
		}
		since := time.Since(begin)
		// Twice the limit: some client may be connected later than the first.
		done = done || since >= 2*limit && connected > 0 && len(waiting) == connected || since >= most && connected == 0
	}
	if len(waiting) == 0 {
		return held, nil, skip("none of %d clients was connected without its header having arrived", len(cs))
	}
	for i, c := range cs {
		if !slices.Contains(waiting, i) {
			c.kill() // it hangs in its handshake, or has not waited for long enough
		}
	}
	return held, waiting, nil
}

package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/contract"
)

// lost are the ways a client may call the loss of its server.
var lost = []contract.Code{contract.CodeReset, contract.CodeTransferTimeout, contract.CodeUnreachable, contract.CodeConnectRefused}

// lossMS limits a transfer whose other end is gone: a protocol over UDP may
// have no other way to notice.
func (s *suite) lossMS() int64 {
	if s.o.Quick {
		return 4_000
	}
	return 20_000
}

func checkLateServer(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.clientParams(sp.Local.Port, little())
	p.Limits.ConnectMS = 1000
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	limit := time.Duration(p.Limits.ConnectMS) * time.Millisecond
	code, err := s.failure(ctx, c, limit+s.o.Patience, contract.CodeConnectRefused, contract.CodeConnectTimeout)
	if err != nil {
		return "", err
	}
	took := time.Since(c.began)
	if code == contract.CodeConnectTimeout && took < limit {
		return "", fmt.Errorf("connect-timeout after %s, the limit is %s", took, limit)
	}
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("once the server was there: %w", err)
	}
	return fmt.Sprintf("%s after %s", code, took.Round(time.Millisecond)), nil
}

// running starts a server and an endless transfer, and waits until both ends
// say that it runs.
func (s *suite) running(ctx context.Context, sp, p *contract.Parameters) (srv, c *proc, err error) {
	if srv, err = s.serve(ctx, sp); err != nil {
		return nil, nil, err
	}
	if c, err = s.begin(p); err != nil {
		return nil, nil, err
	}
	for _, d := range []*proc{c, srv} {
		if _, err = d.await(ctx, connectMS*time.Millisecond+s.o.Patience, "connected event", about(contract.KindConnected, p.Transfer.ID)); err != nil {
			return nil, nil, err
		}
	}
	return srv, c, nil
}

func checkClientKilled(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	sp.Limits.TransferMS = s.lossMS()
	p := s.clientParams(sp.Local.Port, endless)
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	c.kill()
	begin := time.Now()
	<-c.ended
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	e, err := srv.await(ctx, time.Duration(sp.Limits.TransferMS)*time.Millisecond+s.o.Patience, "error event for the killed client's transfer", about(contract.KindError, p.Transfer.ID))
	if err != nil {
		return "", err
	}
	if srv.find(about(contract.KindResult, p.Transfer.ID)) != nil {
		return "", errors.New("the server gave a result for a transfer that was cut short")
	}
	return fmt.Sprintf("%s after %s", e.Code, e.at.Sub(begin).Round(time.Millisecond)), nil
}

func checkServerKilled(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.clientParams(sp.Local.Port, endless)
	p.Limits.TransferMS = s.lossMS()
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	srv.kill()
	begin := time.Now()
	<-srv.ended
	code, err := s.failure(ctx, c, time.Duration(p.Limits.TransferMS)*time.Millisecond+s.o.Patience, lost...)
	if err != nil {
		return "", err
	}
	took := time.Since(begin)
	again, err := s.serve(ctx, sp)
	if err != nil {
		return "", fmt.Errorf("a new server on the same port: %w", err)
	}
	if _, err := s.transfer(ctx, again, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("a new server on the same port: %w", err)
	}
	return fmt.Sprintf("%s after %s", code, took.Round(time.Millisecond)), nil
}

func checkTransferLimit(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.clientParams(sp.Local.Port, endless)
	p.Limits = contract.Limits{ConnectMS: 3000, TransferMS: 500}
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	if _, err := s.failure(ctx, c, s.within(p), contract.CodeTransferTimeout); err != nil {
		return "", err
	}
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	return "", nil
}

// cutLink drops everything between the ends until the returned function is called.
func (s *suite) cutLink() (restore func() error, err error) {
	if s.net.loopback != "" {
		return nil, skip("the loopback interface cannot be cut: %s", s.net.loopback)
	}
	if err := s.net.cut(); err != nil {
		return nil, fmt.Errorf("cut the link: %w", err)
	}
	return s.net.restore, nil
}

func checkConnectLimit(ctx context.Context, s *suite) (detail string, err error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	restore, err := s.cutLink()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, restore()) }()
	p := s.clientParams(sp.Local.Port, little())
	p.Limits.ConnectMS = 1500
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	limit := time.Duration(p.Limits.ConnectMS) * time.Millisecond
	code, err := s.failure(ctx, c, limit+s.o.Patience, contract.CodeConnectTimeout)
	if err != nil {
		return "", err
	}
	took := time.Since(c.began)
	if took < limit {
		return "", fmt.Errorf("%s after %s, but the limit is %s: the link might have come back", code, took, limit)
	}
	// A connect that begins while the link is down must use it once it is up.
	p = s.clientParams(sp.Local.Port, little())
	p.Limits.ConnectMS = 30_000
	if c, err = s.begin(p); err != nil {
		return "", err
	}
	if _, err := c.await(ctx, s.o.Patience, "ready event", kind(contract.KindReady)); err != nil {
		return "", err
	}
	time.Sleep(200 * time.Millisecond) // so that the first attempt is lost; sooner only makes the check weaker
	if err := restore(); err != nil {
		return "", err
	}
	r, err := s.wellDone(ctx, srv, c, p)
	if err != nil {
		return "", fmt.Errorf("a connect during an outage: %w", err)
	}
	return fmt.Sprintf("%s after %s; a connect begun in an outage took %s", code, took.Round(time.Millisecond), time.Duration(r.ConnectNS).Round(time.Millisecond)), nil
}

func checkLinkCut(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	// Twice the outage again for a timer that has backed off, and a minute for the rest.
	sp.Limits.TransferMS = 3*s.o.Cut.Milliseconds() + 60_000
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	for size := s.large(); ; size *= 4 {
		p := s.clientParams(sp.Local.Port, size)
		p.Limits.TransferMS = sp.Limits.TransferMS
		detail, done, err := s.cutDuring(ctx, srv, p)
		if err != nil {
			return "", err
		}
		if done {
			if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
				return "", fmt.Errorf("the next transfer: %w", err)
			}
			return detail, nil
		}
		if size > 1<<34 {
			return "", fmt.Errorf("no transfer was slow enough to be cut, not even %d bytes", size)
		}
	}
}

// cutDuring cuts the link while a transfer runs; done is false where the
// transfer was over before the cut.
func (s *suite) cutDuring(ctx context.Context, srv *proc, p *contract.Parameters) (detail string, done bool, err error) {
	c, err := s.begin(p)
	if err != nil {
		return "", false, err
	}
	if _, err := srv.await(ctx, connectMS*time.Millisecond, "connected event", about(contract.KindConnected, p.Transfer.ID)); err != nil {
		return "", false, err
	}
	restore, err := s.cutLink()
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	cut := time.Now()
	// What was under way still arrives; after that there is silence.
	over := func() bool { return c.find(kind(contract.KindResult)) != nil }
	ended := c.ended
	for !over() && time.Since(cut) < s.o.Cut {
		select {
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-ended:
			if over() {
				return "", false, nil
			}
			ended = nil // it gave up in the outage; its server has to live through the rest
		case <-time.After(max(0, min(s.o.Cut-time.Since(cut), 50*time.Millisecond))):
		}
	}
	if over() {
		return "", false, nil
	}
	if err := restore(); err != nil {
		return "", false, err
	}
	up := time.Now()
	if err := c.wait(ctx, s.within(p)); err != nil {
		return "", false, err
	}
	if c.code != contract.ExitOK {
		return "", false, fmt.Errorf("the transfer did not survive an outage of %s, and limits.transfer_ms is %d: the client ended with %s %s after the cut%s", s.o.Cut, p.Limits.TransferMS, c.ending(), time.Since(cut).Round(100*time.Millisecond), c.lastError())
	}
	r, err := s.wellDone(ctx, srv, c, p)
	if err != nil {
		return "", false, err
	}
	if elapsed := time.Duration(r.ElapsedNS); elapsed < s.o.Cut {
		return "", false, fmt.Errorf("the client reports %s for a transfer through an outage of %s", elapsed, s.o.Cut)
	}
	return fmt.Sprintf("cut for %s, done %s after it", s.o.Cut, time.Since(up).Round(100*time.Millisecond)), true, nil
}

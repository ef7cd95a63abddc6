package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// fromServer are a client's parameters of a probe that the server sends; it skips
// where the driver has none.
func (s *suite) fromServer(port int, lasts time.Duration) (*contract.Parameters, error) {
	if !s.target.Manifest.Has(contract.FeatureFromServer) {
		return nil, skip("the manifest does not declare the feature %s", contract.FeatureFromServer)
	}
	p := s.probeParams(port, lasts)
	p.Transfer.FromServer = true
	return p, nil
}

func checkFromServer(ctx context.Context, s *suite) (string, error) {
	const lasts = 1500 * time.Millisecond
	sp := s.serverParams()
	p, err := s.fromServer(sp.Local.Port, lasts)
	if err != nil {
		return "", err
	}
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	r, err := s.whole(ctx, srv, p)
	if err != nil {
		return "", err
	}
	// The server's clock begins before the client's; on this path not much before.
	if took := time.Duration(r.ElapsedNS); took < lasts-lasts/4 {
		return "", fmt.Errorf("a probe of %s took %s", lasts, took)
	}
	return oneClock(r)
}

// fetched begins a probe that the server sends until it is ended, and waits for packets.
func (s *suite) fetched(ctx context.Context, sp *contract.Parameters) (srv, c *proc, p *contract.Parameters, err error) {
	if p, err = s.fromServer(sp.Local.Port, 0); err != nil {
		return nil, nil, nil, err
	}
	p.Limits.TransferMS = s.lossMS() + contract.ProbeDrainMS
	if srv, c, err = s.running(ctx, sp, p); err == nil {
		err = s.underWay(ctx, c, p)
	}
	return srv, c, p, err
}

func checkFromServerEnded(ctx context.Context, s *suite) (string, error) {
	srv, c, p, err := s.fetched(ctx, s.serverParams())
	if err != nil {
		return "", err
	}
	begin := time.Now()
	c.terminate()
	r, err := s.probed(ctx, srv, c, p)
	if err != nil {
		return "", fmt.Errorf("after SIGTERM: %w", err)
	}
	return fmt.Sprintf("%s after SIGTERM", time.Since(begin).Round(time.Millisecond)), lostNothing(r.Probe)
}

func checkBothWays(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, c, p, err := s.fetched(ctx, sp)
	if err != nil {
		return "", err
	}
	if _, err := s.wholeProbe(ctx, srv, sp.Local.Port, time.Second); err != nil {
		return "", fmt.Errorf("from the client: %w", err)
	}
	c.terminate()
	r, err := s.probed(ctx, srv, c, p)
	if err == nil {
		err = lostNothing(r.Probe)
	}
	if err == nil && r.Probe.Strays > 0 {
		err = fmt.Errorf("%d strays: packets of another probe", r.Probe.Strays)
	}
	if err != nil {
		return "", fmt.Errorf("from the server: %w", err)
	}
	return "", nil
}

func checkFromServerClientKilled(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, c, p, err := s.fetched(ctx, sp)
	if err != nil {
		return "", err
	}
	c.kill()
	if _, err := srv.await(ctx, s.o.Patience, "error event for the killed client's probe", about(contract.KindError, p.Transfer.ID)); err != nil {
		return "", err
	}
	next, err := s.fromServer(sp.Local.Port, 300*time.Millisecond)
	if err != nil {
		return "", err
	}
	_, err = s.whole(ctx, srv, next)
	return "", err
}

func checkFromServerStop(ctx context.Context, s *suite) (string, error) {
	srv, c, p, err := s.fetched(ctx, s.serverParams())
	if err != nil {
		return "", err
	}
	srv.terminate()
	if err := s.stopped(ctx, srv); err != nil {
		return "", err
	}
	if e := srv.find(about(contract.KindError, p.Transfer.ID)); e == nil || e.Code != contract.CodeAborted {
		return "", errors.New("no error event with aborted for the running probe")
	}
	_, err = s.failure(ctx, c, time.Duration(p.Limits.TransferMS)*time.Millisecond+s.o.Patience, lost...)
	return "", err
}

func checkFromServerLossyLink(ctx context.Context, s *suite) (string, error) {
	l, err := s.needLink()
	if err != nil {
		return "", err
	}
	sp := s.serverParams()
	p, err := s.fromServer(sp.Local.Port, 5*time.Second)
	if err != nil {
		return "", err
	}
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	const delay = 100 * time.Millisecond
	l.Both(link.Conditions{BitsPerSecond: 256_000, Delay: delay, Loss: 0.1, Duplicate: 0.2, Reorder: 0.1})
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	r, err := s.probed(ctx, srv, c, p)
	if err != nil {
		return "", err
	}
	_, down := l.Traffic()
	return likeTheLink(r.Probe, &down, delay)
}

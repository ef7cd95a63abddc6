package protocoltest

import (
	"context"
	"fmt"
	"time"

	"linktrial/protocols/contract"
)

// flipped starts a server that expects one byte of every payload to be another
// (verify_flip_at).
func (s *suite) flipped(ctx context.Context, at int64) (*proc, int, error) {
	sp := s.serverParams()
	sp.VerifyFlipAt = &at
	srv, err := s.serve(ctx, sp)
	return srv, sp.Local.Port, err
}

// checkLateByte has one byte wrong at the end of a payload: of all that a
// server does to verify, only a comparison of everything finds it.
func checkLateByte(ctx context.Context, s *suite) (string, error) {
	const size, at = mib + 3, mib + 2
	srv, port, err := s.flipped(ctx, at)
	if err != nil {
		return "", err
	}
	forms := []int64{0}
	if s.target.Manifest.Has(contract.FeatureDuration) {
		forms = append(forms, time.Hour.Milliseconds()) // in chunks, which the size ends
	}
	for _, ms := range forms {
		p := s.clientParams(port, size)
		p.Transfer.DurationMS = ms
		if err := s.rejected(ctx, srv, p); err != nil {
			return "", fmt.Errorf("a server that was told by verify_flip_at to find byte %d of %d wrong: %w", at, size, err)
		}
	}
	if _, err := s.transfer(ctx, srv, port, at); err != nil {
		return "", fmt.Errorf("a payload of %d bytes, which ends before the byte that verify_flip_at names: %w", at, err)
	}
	return fmt.Sprintf("the last of %d bytes", size), nil
}

// checkReadsOn has an early byte wrong in a payload that no buffer holds: the
// client, which listens only when all is written, gets its answer only from a
// server that reads to the end.
func checkReadsOn(ctx context.Context, s *suite) (string, error) {
	const at = 100
	srv, port, err := s.flipped(ctx, at)
	if err != nil {
		return "", err
	}
	p := s.clientParams(port, s.large())
	if err := s.rejected(ctx, srv, p); err != nil {
		return "", fmt.Errorf("byte %d of %d is wrong, and a server has to read to the end before it answers: %w", at, p.Transfer.SizeBytes, err)
	}
	if _, err := s.transfer(ctx, srv, port, at); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	return fmt.Sprintf("%d MiB after byte %d", p.Transfer.SizeBytes/mib, at), nil
}

// rejected runs a transfer whose payload the server must find wrong.
func (s *suite) rejected(ctx context.Context, srv *proc, p *contract.Parameters) error {
	c, err := s.begin(p)
	if err != nil {
		return err
	}
	if _, err := s.failure(ctx, c, s.within(p), contract.CodeCorrupted); err != nil {
		return err
	}
	e, err := srv.await(ctx, s.o.Patience, "error event for the transfer", about(contract.KindError, p.Transfer.ID))
	if err != nil {
		return err
	}
	if e.Code != contract.CodeCorrupted {
		return fmt.Errorf("the server said %s (%s), expected corrupted", e.Code, e.Message)
	}
	if srv.find(about(contract.KindResult, p.Transfer.ID)) != nil {
		return fmt.Errorf("the server gave a result for a payload of %d bytes that it had to reject", p.Transfer.SizeBytes)
	}
	return nil
}

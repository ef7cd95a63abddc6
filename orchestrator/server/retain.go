package server

import (
	"context"
	"sync"
)

// keepStore starts what the store needs while the orchestrator runs: asking a database
// that takes no changes until it does, and deleting old samples where the configuration
// bounds their age.
func (s *Server) keepStore(cfg Config) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.store.WatchWrites(ctx, cfg.Logger) })
	if cfg.KeepSamples > 0 {
		running.Go(func() { s.store.Retain(ctx, cfg.KeepSamples, cfg.Logger) })
	}
	s.stopKeeping = func() {
		cancel()
		running.Wait()
	}
}

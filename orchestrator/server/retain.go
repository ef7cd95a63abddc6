package server

import "context"

// retain starts deleting old samples where the configuration bounds their age.
func (s *Server) retain(cfg Config) {
	if cfg.KeepSamples <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.store.Retain(ctx, cfg.KeepSamples, cfg.Logger)
	}()
	s.stopRetaining = func() {
		cancel()
		<-ended
	}
}

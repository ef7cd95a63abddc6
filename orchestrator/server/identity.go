package server

import (
	"context"

	"linktrial/internal/loopback"
	"linktrial/orchestrator/authority"
)

// modeOf is how an orchestrator on an address meets those who call.
func modeOf(ctx context.Context, cfg Config, host string) authority.Mode {
	switch {
	case cfg.TLS, !cfg.Open && !loopback.Only(ctx, host):
		return authority.ModeTLS
	case loopback.Only(ctx, host):
		return authority.ModeLoopback
	}
	return authority.ModeOpen
}

// openAuthority reads the authority, or makes it, where the orchestrator speaks TLS.
func (s *Server) openAuthority(ctx context.Context, cfg Config) (*authority.Authority, error) {
	a, err := authority.Open(ctx, authority.Config{
		Mode: s.mode, DataDir: cfg.DataDir, Store: s.store, Listen: s.Addr(), Names: cfg.TLSNames, CertFile: cfg.TLSCert, KeyFile: cfg.TLSKey,
		Version: cfg.Version, Logger: cfg.Logger, Contacts: s.contacts, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	switch s.mode {
	case authority.ModeTLS:
		s.log.Info("nodes are known by certificates of this authority", "fingerprint", a.Fingerprint())
	case authority.ModeOpen:
		s.log.Warn("OPEN: this orchestrator speaks without encryption and obeys whoever reaches it; only for a network that is closed to others", "address", s.Addr())
	}
	return a, nil
}

func (s *Server) contacts() map[string]authority.Contact {
	out := map[string]authority.Contact{}
	for _, n := range s.engine.Nodes.List() {
		if !n.Virtual {
			out[n.Name] = authority.Contact{Last: n.LastContact, Connected: n.Connected}
		}
	}
	return out
}

// Authority is what knows the nodes.
func (s *Server) Authority() *authority.Authority { return s.identity }

// URL is where the orchestrator answers.
func (s *Server) URL() string {
	if s.mode == authority.ModeTLS {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

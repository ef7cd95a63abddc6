package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"linktrial/internal/discovery"
	"linktrial/internal/loopback"
	"linktrial/internal/radiomark"
	"linktrial/orchestrator/security/admission"
	"linktrial/orchestrator/security/authority"
	"linktrial/orchestrator/security/joining"
)

// modeOf returns whether an orchestrator on an address uses TLS, and whom it serves.
func modeOf(ctx context.Context, cfg Config, host string) authority.Mode {
	switch {
	case cfg.TLS, !cfg.Open && !loopback.Only(ctx, host):
		return authority.ModeTLS
	case loopback.Only(ctx, host):
		return authority.ModeLoopback
	}
	return authority.ModeOpen
}

// openAuthority opens the certificate authority; where the orchestrator uses TLS
// and has none yet, it makes one.
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
		s.log.Warn("OPEN: this orchestrator works without encryption and accepts commands from everybody who reaches it; use it only on a network that is closed to others", "address", s.Addr())
	}
	return a, nil
}

// openHosts returns the names under which the orchestrator answers.
func (s *Server) openHosts(cfg Config) *admission.Hosts {
	names := slices.Concat([]string{cfg.Listen}, cfg.TLSNames, cfg.AllowHosts)
	return admission.NewHosts(names, s.identity.Certifies, s.log)
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

// Authority returns the certificate authority of the nodes.
func (s *Server) Authority() *authority.Authority { return s.identity }

// URL returns the address at which the orchestrator answers.
func (s *Server) URL() string {
	if s.mode == authority.ModeTLS {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// openJoining lets laptops join by a code. Those on the network find the orchestrator while
// one is open.
func (s *Server) openJoining(cfg Config) *joining.Joining {
	return joining.New(joining.Config{Authority: s.identity, Version: cfg.Version, Logger: cfg.Logger, Now: cfg.Now, Announce: func() (func(), error) {
		at, err := netip.ParseAddrPort(s.Addr())
		if err != nil {
			return nil, fmt.Errorf("address of this orchestrator: %w", err)
		}
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name of this machine: %w", err)
		}
		return discovery.Announce(discovery.Service{Instance: name, ID: s.identity.Fingerprint()[:16], Version: cfg.Version, Port: int(at.Port()), Only: at.Addr(), Unused: cfg.notAnnouncedOn})
	}})
}

// notAnnouncedOn reports whether laptops that join do not find the orchestrator on an
// interface: a radio's, whether the configuration names it or this machine's agent set it up.
func (c *Config) notAnnouncedOn(i net.Interface) bool {
	return c.NotAnnouncedOn != nil && c.NotAnnouncedOn(i) || radiomark.On(i)
}

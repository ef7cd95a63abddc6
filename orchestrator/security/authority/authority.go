package authority

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"linktrial/internal/identity"
	"linktrial/orchestrator/security/authority/authoritydb"
	"linktrial/orchestrator/store"
)

// Mode is how the orchestrator can be reached, and how nodes are known.
type Mode int

// Modes.
const (
	ModeLoopback Mode = iota // plain, reachable from this machine alone
	ModeOpen                 // plain, reachable from others
	ModeTLS                  // encrypted, nodes show certificates
)

// Config of an [Authority].
type Config struct {
	Mode    Mode
	DataDir string // the authority's files are in [Folder] below it; used with [ModeTLS]
	Store   *store.Store
	Listen  string   // HOST:PORT
	Names   []string // more names and addresses that the orchestrator is called by
	// CertFile and KeyFile are a certificate of the operator's own that people's
	// programs see instead of the authority's; nodes see the authority's.
	CertFile, KeyFile string
	Version           string
	Logger            *slog.Logger
	// Contacts returns when each node last had contact, by name; nil: never.
	Contacts func() map[string]Contact
	Now      func() time.Time // nil: time.Now
}

// Contact is when a node last called.
type Contact struct {
	Last      time.Time
	Connected bool
}

// Errors of enrolment that callers branch on.
var (
	ErrToken   = errors.New("the token is refused")
	ErrRequest = errors.New("the certificate request is refused")
	ErrUnknown = errors.New("no such node")
	ErrPlain   = errors.New("this orchestrator asks no node who it is")
	ErrName    = errors.New("not a node's name")
)

// Authority signs for one orchestrator. Its methods may be called from several goroutines.
type Authority struct {
	cfg   Config
	db    *authoritydb.Queries
	log   *slog.Logger
	now   func() time.Time
	dir   string
	keys  pair
	names []string
	own   *tls.Certificate // of the operator; nil: none

	serverMu sync.Mutex
	server   *tls.Certificate

	change  sync.Mutex // held while identities change, so that memory follows the database in order
	records records
}

// Open reads the authority, or makes it; in the plain modes there is none, and
// calls that need one say so.
func Open(ctx context.Context, cfg Config) (*Authority, error) {
	a := &Authority{cfg: cfg, db: authoritydb.New(cfg.Store), log: cfg.Logger, now: cfg.Now, dir: filepath.Join(cfg.DataDir, Folder)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	if cfg.Mode != ModeTLS {
		return a, nil
	}
	if cfg.DataDir == "" {
		return nil, errors.New("the authority needs a data folder")
	}
	now := a.now()
	var err error
	if a.keys, err = openKeys(a.dir, now); err != nil {
		return nil, err
	}
	local, err := localNames(cfg.Listen)
	if err != nil {
		return nil, err
	}
	a.names = union(local, cfg.Names)
	if cfg.CertFile != "" || cfg.KeyFile != "" {
		if a.own, err = loadOwn(cfg.CertFile, cfg.KeyFile, now); err != nil {
			return nil, err
		}
	}
	if err := a.openServer(); err != nil {
		return nil, err
	}
	return a, a.records.load(ctx, a.db, now)
}

// Mode returns the mode that the authority was opened with.
func (a *Authority) Mode() Mode { return a.cfg.Mode }

// Certificate is the authority's; nil in the plain modes.
func (a *Authority) Certificate() *x509.Certificate { return a.keys.cert }

// Fingerprint is the SHA-256 of the authority's certificate, in hex; empty in
// the plain modes.
func (a *Authority) Fingerprint() string {
	if a.keys.cert == nil {
		return ""
	}
	return identity.FormatFingerprint(identity.Fingerprint(a.keys.cert))
}

// ServerTLS is the configuration to listen with; nil in the plain modes. Who
// asks for the orchestrator by the name that nodes use is asked for a
// certificate; browsers are not.
func (a *Authority) ServerTLS() *tls.Config {
	if a.cfg.Mode != ModeTLS {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.keys.cert)
	people := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: a.serverCertificate, Time: a.now}
	if a.own != nil {
		people.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.own, nil }
	}
	nodes := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, GetCertificate: a.serverCertificate, Time: a.now,
		// Whether it is valid, the guard says, in words: a handshake that fails
		// tells a node nothing that it could repeat to a person.
		ClientAuth: tls.RequestClientCert, ClientCAs: pool}
	a.resumable(nodes)
	outer := people.Clone()
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == identity.OrchestratorName {
			return nodes, nil
		}
		return people, nil
	}
	return outer
}

// CheckMode returns [ErrPlain], with the reason, in the modes in which nodes have no
// certificates.
func (a *Authority) CheckMode() error {
	switch a.cfg.Mode {
	case ModeLoopback:
		return fmt.Errorf("%w: it listens on the loopback, without encryption; start it with --listen on an address that nodes reach", ErrPlain)
	case ModeOpen:
		return fmt.Errorf("%w: it was started with --open", ErrPlain)
	}
	return nil
}

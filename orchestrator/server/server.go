package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"linktrial/internal/service"
	"linktrial/internal/watchdog"
	"linktrial/orchestrator/backup"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/library"
	"linktrial/orchestrator/liveness"
	"linktrial/orchestrator/notification"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/rpc"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/admission"
	"linktrial/orchestrator/security/authority"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/store"
	"linktrial/web"
)

// DefaultListen is where agents and people look for the orchestrator.
const DefaultListen = "127.0.0.1:7700"

// Config says where to listen and where data is kept.
type Config struct {
	Listen      string // empty: [DefaultListen]; port 0 takes a free one
	DatabaseURL string // empty: a private PostgreSQL in DataDir
	DataDir     string // for the private PostgreSQL
	// BeforeDatabase is called with the folder of the private PostgreSQL before that is
	// started, when no other orchestrator uses it; nil: nothing is to be done.
	BeforeDatabase func(dir string) error
	Catalog        *catalog.Catalog
	Plans          fs.FS // shipped plans, *.yaml; nil: none
	// Lab returns the lab of this machine for an orchestrator that listens at addr;
	// its error says why there is none. nil: there is none.
	Lab     func(addr string) (rpc.Lab, error)
	Drivers rpc.Drivers // nil: none can be asked or checked here
	Version string
	Logger  *slog.Logger
	// On an address that other machines reach, the orchestrator uses TLS and works
	// with enrolled nodes only. Open turns that off, for a network that is closed to
	// others; TLS turns it on for the loopback too.
	Open, TLS bool
	TLSNames  []string // more names and addresses under which it is reached
	// AllowHosts are names, beyond the one of Listen and those of the certificate,
	// that requests may have as their host.
	AllowHosts []string
	// TLSCert and TLSKey are files with a certificate of the operator's own, for
	// people's programs.
	TLSCert, TLSKey string
	Now             func() time.Time // the clock by which certificates and tokens expire; nil: time.Now
	// NotAnnouncedOn reports whether an interface is one on which laptops that join do not
	// find the orchestrator, such as the radio's; nil: they do on each but those that this
	// machine's agent set up as radios.
	NotAnnouncedOn func(net.Interface) bool
	// Login requires people to log in on the loopback too; with TLS they always must.
	Login bool
	// OpenID is the OpenID Connect provider at which people can log in, too.
	OpenID OpenID
	// SecondFactor has the roles for which local accounts need a second factor.
	SecondFactor []string
	// Setup makes a token for a new admin, for when the admin's password is lost.
	Setup bool
	// KeepSamples is how long the samples of runs that have ended are kept; 0 is for ever.
	KeepSamples time.Duration
	// Loop and Status are those of [campaign.Config]: what the service manager is told.
	Loop   *watchdog.Loop
	Status func(text string)
	// Bounds of what callers may take; nil: those of the mode.
	Bounds *admission.Bounds
	// Waits of the campaign engine; zero means its defaults.
	Waits campaign.Waits
	// Settle is how long scheduled plans wait after the start, so that nodes can
	// connect again; zero means the library's default.
	Settle time.Duration
}

// Server is a running orchestrator.
type Server struct {
	log      *slog.Logger
	services service.Group
	claim    *postgres.Claim
	store    *store.Store
	engine   *campaign.Engine
	identity *authority.Authority
	trust    *signing.Trust
	access   *access.Access
	gate     *admission.Gate
	hosts    *admission.Hosts
	http     *http.Server // nil: the start has not got so far
	listener net.Listener
	served   chan error
	mode     authority.Mode
}

// Start starts everything and returns once calls are answered. Where something
// fails, it stops what it has started.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Catalog == nil {
		return nil, errors.New("the orchestrator needs a catalog")
	}
	s := &Server{log: cfg.Logger, services: service.Group{Logger: cfg.Logger}, served: make(chan error, 1)}
	if err := s.start(ctx, cfg); err != nil {
		// Also where ctx has ended, what was started must be stopped.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		return nil, errors.Join(err, s.Stop(stop))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, cfg Config) error {
	// The port first: a start that cannot succeed should not make a database.
	if err := s.listen(ctx, cfg); err != nil {
		return err
	}
	s.services.Add("port", func() { _ = s.listener.Close() }) // it is closed already where calls were answered
	if err := s.openStore(ctx, cfg); err != nil {
		return err
	}
	if err := s.store.NoteWindows(ctx, cfg.Logger); err != nil {
		cfg.Logger.Error("values of earlier attempts are missing; the next start tries again", "error", err)
	}
	s.keepStore(ctx, cfg)
	keys, err := openKeys(cfg.DataDir)
	if err != nil {
		return err
	}
	if err := s.openAccess(ctx, cfg, keys); err != nil {
		return err
	}
	// Before the engine, which must stop first: polls and streams end with it.
	s.services.AddContext("calls", s.stopHTTP)
	if s.engine, err = campaign.Start(ctx, campaign.Config{Store: s.store, Logger: cfg.Logger, Waits: cfg.Waits, Sign: keys.Sign, Loop: cfg.Loop, Status: cfg.Status}); err != nil {
		return err
	}
	s.services.Add("campaign engine", s.engine.Stop)
	s.trust = signing.New(signing.Config{Keys: keys, Store: s.store, Catalog: cfg.Catalog, Nodes: s.engine.Nodes.List, Logger: cfg.Logger})
	s.gate = admission.New(*cmp.Or(cfg.Bounds, boundsOf(s.mode)), cfg.Logger)
	m := newMetrics(s.engine, s.gate)
	services, err := s.startServices(ctx, cfg, m)
	if err != nil {
		return err
	}
	if cfg.DataDir != "" {
		services.DayFolder, services.Backup = filepath.Join(cfg.DataDir, "closed-day"), backupOf(cfg, keys)
		services.EvidenceFolder = filepath.Join(cfg.DataDir, "evidence")
	}
	s.hosts = s.openHosts(cfg)
	s.serve(s.routes(cfg, services, m))
	return nil
}

// backupOf writes backups of this orchestrator while it works.
func backupOf(cfg Config, keys *signing.Keyring) func(ctx context.Context, out string) (string, error) {
	return func(ctx context.Context, out string) (string, error) {
		_, err := backup.Create(ctx, backup.Source{DataDir: cfg.DataDir, DatabaseURL: cfg.DatabaseURL}, out, cfg.Version, time.Now(), keys)
		return keys.Fingerprint(), err
	}
}

// openStore starts the private database where none is given, and opens the store.
func (s *Server) openStore(ctx context.Context, cfg Config) error {
	url, claimed, role := cfg.DatabaseURL, cfg.DatabaseURL, ""
	if url == "" {
		if cfg.DataDir == "" {
			return errors.New("a private database needs a data folder")
		}
		unlock, err := postgres.Lock(cfg.DataDir, postgres.UserOrchestrator)
		if err != nil {
			return err
		}
		s.services.Add("lock of the data folder", unlock)
		if cfg.BeforeDatabase != nil {
			if err := cfg.BeforeDatabase(filepath.Join(cfg.DataDir, postgres.Folder)); err != nil {
				return err
			}
		}
		private, err := postgres.Start(ctx, postgres.Config{DataDir: cfg.DataDir, Logger: cfg.Logger})
		if err != nil {
			return err
		}
		s.services.AddContext("PostgreSQL", private.Stop)
		url, claimed, role = private.URL(), private.WorkerURL(), postgres.Worker
	}
	// Before the schema is migrated: another orchestrator may be using the database.
	var err error
	if s.claim, err = postgres.TakeClaim(ctx, claimed, postgres.UserOrchestrator, cfg.Logger); err != nil {
		return err
	}
	s.services.Add("claim on the database", s.claim.Release)
	if role == "" { // somebody else's database, whose roles are theirs
		s.store, err = store.Open(ctx, url, cfg.Logger)
	} else {
		s.store, err = store.OpenAs(ctx, url, role, cfg.Logger)
	}
	if err == nil {
		s.services.Add("store", s.store.Close)
	}
	return err
}

// keepStore asks a database that takes no changes until it does, and deletes old samples
// where the configuration bounds their age.
func (s *Server) keepStore(ctx context.Context, cfg Config) {
	loops := []func(context.Context){func(ctx context.Context) { s.store.WatchWrites(ctx, cfg.Logger) }}
	if cfg.KeepSamples > 0 {
		loops = append(loops, func(ctx context.Context) { s.store.Retain(ctx, cfg.KeepSamples, cfg.Logger) })
	}
	s.services.Add("upkeep of the store", service.Go(context.WithoutCancel(ctx), loops...))
}

// startServices starts what the services call, and returns their configuration.
func (s *Server) startServices(ctx context.Context, cfg Config, m *metrics) (rpc.Config, error) {
	in := ingest.New(ingest.Config{Store: s.store, Logger: cfg.Logger, Stored: func(d ingest.Delta) {
		m.stored(d)
		s.engine.Stored(d)
	}})
	preflights, err := fleet.Start(ctx, fleet.Config{Store: s.store, Nodes: s.engine.Nodes, Catalog: cfg.Catalog, Version: cfg.Version, Logger: cfg.Logger})
	if err != nil {
		return rpc.Config{}, err
	}
	s.services.Add("preflights", preflights.Stop)
	m.register(&state{store: s.store, engine: s.engine, fleet: preflights, version: cfg.Version, log: cfg.Logger})
	launcher := &launch.Launcher{Catalog: cfg.Catalog, Engine: s.engine, Fleet: preflights, Trust: s.trust}
	services := rpc.Config{Launcher: launcher, Engine: s.engine, Ingest: in, Store: s.store, Catalog: cfg.Catalog, Fleet: preflights, Trust: s.trust, Access: s.access, Drivers: cfg.Drivers, Version: cfg.Version, Logger: cfg.Logger, DatabaseLost: s.claim.Lost,
		Delivered: m.delivered, OverBound: m.refused, Options: []connect.HandlerOption{connect.WithInterceptors(m.counted(), s.access.Interceptor())}}
	services.Library, err = library.Start(ctx, library.Config{Store: s.store, Catalog: cfg.Catalog, Shipped: cfg.Plans, Launcher: launcher, Ahead: s.engine.Nodes.RunsUnderWay, Logger: cfg.Logger, Settle: cfg.Settle})
	if err != nil {
		return rpc.Config{}, err
	}
	s.services.Add("library", services.Library.Stop)
	services.Notifier, err = notification.Start(ctx, notification.Config{Store: s.store, Nodes: s.engine.Nodes.List, Health: preflights.Health, Changed: s.engine.Live.Changed,
		DataDir: cfg.DataDir, Version: cfg.Version, Pages: s.pages(cfg), Logger: cfg.Logger})
	if err != nil {
		return rpc.Config{}, err
	}
	s.services.Add("notifications", services.Notifier.Stop)
	services.Lab, services.NoLab = s.lab(cfg)
	if s.identity, err = s.openAuthority(ctx, cfg); err != nil {
		return rpc.Config{}, err
	}
	services.Authority = s.identity
	services.Joining = s.openJoining(cfg)
	s.services.Add("joining", services.Joining.Stop)
	return services, nil
}

// routes returns what answers each path of the HTTP server.
func (s *Server) routes(cfg Config, services rpc.Config, m *metrics) *http.ServeMux {
	mux := http.NewServeMux()
	rpc.Mount(mux, services)
	s.access.Mount(mux)
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /metrics", m.handler())
	ui, err := web.Handler()
	if err != nil {
		cfg.Logger.Warn("no web interface", "reason", err)
		mux.HandleFunc("GET /{$}", front(cfg.Version, err))
	} else {
		mux.Handle("/", ui)
	}
	mux.Handle(web.HandbookPath, handbook(cfg.Logger))
	return mux
}

// Bounds of a connection. A request's header has a cookie or a token, and a browser
// has some dozen requests under way.
const (
	maxHeader  = 16 << 10 // bytes
	maxStreams = 100
)

// boundsOf returns what callers may take. Where nobody is asked who they are, all may
// be at one address: a lab's nodes, and the people beside them.
func boundsOf(mode authority.Mode) *admission.Bounds {
	b := admission.DefaultBounds()
	if mode != authority.ModeTLS {
		b.UnknownConnections, b.UnknownCalls, b.AllUnknownCalls = b.Connections, b.Connections, 2*b.Connections
	}
	return &b
}

// serve starts the HTTP server.
func (s *Server) serve(routes *http.ServeMux) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	// gRPC needs HTTP/2, which without TLS must be spoken from the first byte.
	protocols.SetUnencryptedHTTP2(s.identity.Mode() != authority.ModeTLS)
	s.http = &http.Server{
		Handler: s.gate.Handler(s.hosts.Handler(s.identity.Handler(s.access.Guard(routes)))), TLSConfig: s.identity.ServerTLS(), Protocols: &protocols,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return access.WithConn(admission.WithConn(liveness.WithConn(ctx, c), c))
		},
	}
	listener := s.gate.Listener(s.listener)
	go func() {
		if s.http.TLSConfig != nil {
			s.served <- s.http.ServeTLS(authority.TellPlain(listener, s.hosts, s.log), "", "")
			return
		}
		s.served <- s.http.Serve(listener)
	}()
}

// openKeys opens the key ring of the data folder. Without a folder the key lasts
// as long as the process.
func openKeys(dataDir string) (*signing.Keyring, error) {
	if dataDir == "" {
		return signing.Ephemeral()
	}
	return signing.Open(signing.Dir(dataDir))
}

// openAccess requires people to log in where other machines reach the
// orchestrator, or where the configuration asks for it.
func (s *Server) openAccess(ctx context.Context, cfg Config, keys *signing.Keyring) error {
	required := cfg.Login || s.mode == authority.ModeTLS
	factor := map[access.Role]bool{}
	for _, name := range cfg.SecondFactor {
		role, err := access.ParseRole(name)
		if err != nil {
			return fmt.Errorf("--second-factor: %w", err)
		}
		factor[role] = true
	}
	if len(factor) > 0 && !required {
		return errors.New("--second-factor takes people who log in: start the orchestrator with --login, too")
	}
	p, err := cfg.OpenID.open(required, cfg.Logger)
	if err != nil {
		return err
	}
	a, err := access.New(ctx, access.Config{Store: s.store, Required: required, SecondFactor: factor, Provider: p, OpenToNetwork: s.mode == authority.ModeOpen && !cfg.Login,
		LocalUsers: access.LocalUsers(), LocalAdmins: access.LocalAdmins(), DataDir: cfg.DataDir, Setup: cfg.Setup, Signer: keys, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	s.access = a
	s.services.AddContext("access", func(context.Context) error { return s.access.Close() })
	s.access.Start(ctx)
	return nil
}

// pages returns the address of the pages as it is known here, for links in messages: the first
// name that the certificate was given, or the loopback. Empty: others reach it by a name that
// only they know.
func (s *Server) pages(cfg Config) string {
	_, port, err := net.SplitHostPort(s.Addr())
	switch {
	case err != nil:
		return ""
	case s.mode == authority.ModeTLS && len(cfg.TLSNames) > 0:
		return "https://" + net.JoinHostPort(cfg.TLSNames[0], port)
	case s.mode == authority.ModeLoopback:
		return "http://" + s.Addr()
	}
	return ""
}

// lab returns the lab of this machine, or why there is none.
func (s *Server) lab(cfg Config) (rpc.Lab, string) {
	switch {
	case cfg.Lab == nil:
		return nil, "this orchestrator was started without a lab: start one with 'linktrial serve'"
	case s.mode == authority.ModeLoopback:
	case cfg.TLS:
		return nil, "the orchestrator works with enrolled nodes only: a lab is offered where it listens without TLS on the loopback"
	default:
		return nil, fmt.Sprintf("the orchestrator listens on %s, where other machines reach it: a lab is offered only on the loopback, because bringing one up needs root", cfg.Listen)
	}
	l, err := cfg.Lab(s.Addr())
	if err != nil {
		return nil, err.Error()
	}
	return l, ""
}

func (s *Server) listen(ctx context.Context, cfg Config) error {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return fmt.Errorf("address %q, expected HOST:PORT such as %s", cfg.Listen, DefaultListen)
	}
	for _, name := range cfg.AllowHosts {
		if err := admission.CheckHostName(name); err != nil {
			return fmt.Errorf("--allow-host: %w", err)
		}
	}
	s.mode = modeOf(ctx, cfg, host)
	if s.mode == authority.ModeOpen && cfg.Login {
		return fmt.Errorf("--login with --open would send passwords to %s without encryption: leave --open out, and the orchestrator speaks TLS and requires people to log in", cfg.Listen)
	}
	if s.mode == authority.ModeTLS && cfg.DataDir == "" {
		return fmt.Errorf("%s is reachable from other machines, and the authority that issues the certificates of nodes needs a data folder", cfg.Listen)
	}
	lc := net.ListenConfig{KeepAliveConfig: liveness.Probes}
	s.listener, err = lc.Listen(ctx, "tcp", cfg.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %s on %s is in use, perhaps by another orchestrator: stop it ('ss -ltnp sport = :%s' names it), or choose another port with --listen", port, host, port)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %s may not be opened by this user: choose one above 1023 with --listen", port)
	case err != nil:
		return fmt.Errorf("listen on %s: %w", cfg.Listen, err)
	}
	return nil
}

// Addr returns the HOST:PORT that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Admission returns what callers take now, and what was refused.
func (s *Server) Admission() admission.Counts { return s.gate.Counts() }

// Displaced returns a channel that is closed when another program has claimed the
// database while this orchestrator was cut off from it; DisplacedBy then says who. The
// orchestrator must be stopped then: two would overwrite each other's runs.
func (s *Server) Displaced() <-chan struct{} { return s.claim.Taken() }

// DisplacedBy returns who has the database now; nil: this orchestrator.
func (s *Server) DisplacedBy() error { return s.claim.TakenBy() }

// Stop ends polls and streams, waits for calls in progress, and stops what
// Start started; where ctx ends first, connections are cut.
func (s *Server) Stop(ctx context.Context) error { return s.services.Stop(ctx) }

// stopHTTP waits for the calls in progress.
func (s *Server) stopHTTP(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	var errs []error
	if err := s.http.Shutdown(ctx); err != nil {
		errs = append(errs, fmt.Errorf("connections were cut: %w", err), s.http.Close())
	}
	if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// HealthLimit is how long /healthz waits for the database before it reports an
// error. A caller must wait longer, or it does not learn the reason.
const HealthLimit = 3 * time.Second

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), HealthLimit)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		s.log.Error("health check failed", "error", err)
		http.Error(w, "the database does not answer"+reply.Since(s.claim.Lost())+": nothing is lost, nodes continue and keep what they measure", http.StatusServiceUnavailable)
		return
	}
	if u := s.store.Unwritable(); u != nil {
		http.Error(w, "the database "+u.Why+reply.Since(u.Since)+": nothing is lost, nodes continue and keep what they measure, and deliver it when that is repaired", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// front returns the page of a binary that was built without the web interface.
func front(version string, why error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, `Linktrial %s: the orchestrator is running.

No pages: %s. From a shell:

  linktrial nodes           the nodes that have connected
  linktrial run start PLAN  run a plan on them, and watch it
  linktrial run list        all runs, newest first
  linktrial results         the newest results
  linktrial --help          the rest

For programs: the API of api/proto, as gRPC, gRPC-Web or JSON over HTTP, for example
  curl -H 'Content-Type: application/json' -d '{}' http://HOST:PORT/linktrial.v1.OperatorService/ListRuns

/healthz reports whether the database answers, /metrics is for Prometheus.
`, version, why)
	}
}

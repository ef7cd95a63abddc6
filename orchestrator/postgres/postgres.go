package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config says where the private database lives.
type Config struct {
	// DataDir gets the folder "postgres" with the database. One orchestrator
	// at a time may use it: the caller holds its lock ([Lock]).
	DataDir string
	Logger  *slog.Logger
}

// Folder is the folder of the database in the data folder.
const Folder = "postgres"

// Server is a running private PostgreSQL.
type Server struct {
	cfg    Config
	bin    binaries
	owner  *owner // nil: this process's own user
	data   string
	socket string // folder
	scrap  string // removed at the end; empty where the socket lies in the data folder
	log    *slog.Logger

	mu       sync.Mutex
	current  *child
	stopping bool
	wake     chan struct{} // closed by Stop
	done     chan struct{} // closed when watch has ended
}

const (
	superuser = "linktrial"
	// Worker is the role that an orchestrator works as. It owns nothing: what it may do
	// the owner of the schema has granted it, who is the superuser ([Server.URL]).
	Worker   = "linktrial_worker"
	database = "linktrial"
	// maxSocketDir keeps the socket's path within the 107 bytes that
	// sockaddr_un has (unix(7)).
	maxSocketDir  = 107 - len("/.s.PGSQL.5432")
	readyWithin   = 60 * time.Second // recovery after a crash included
	fastShutdown  = 15 * time.Second
	leftoverGrace = 10 * time.Second

	// Pauses before a server that ended by itself is started again. There is no bound
	// on how often: a disk that is full is emptied some time.
	restartPause    = 100 * time.Millisecond
	restartPauseMax = 5 * time.Second
	steadyAfter     = 10 * time.Second // a server that ran so long is not in a crash loop
)

// Start makes the database where there is none, ends a server that a killed
// orchestrator left behind, starts PostgreSQL and returns once it answers.
// The child is killed by the kernel when this process dies.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s := &Server{cfg: cfg, data: filepath.Join(dir, Folder), log: log, wake: make(chan struct{}), done: make(chan struct{})}
	want, err := dataVersion(s.data)
	if err != nil {
		return nil, err
	}
	if s.bin, err = usual().find(want); err != nil {
		return nil, err
	}
	if s.owner, err = serverOwner(s.data); err != nil {
		return nil, err
	}
	if err := s.owner.checkPath(dir); err != nil {
		return nil, err
	}
	if err := s.owner.checkPrograms(s.bin.dir); err != nil {
		return nil, err
	}
	if want == 0 {
		if err := s.initialise(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.endLeftover(ctx); err != nil {
		return nil, err
	}
	if err := s.makeSocketDir(dir); err != nil {
		return nil, err
	}
	c, err := s.launchUntilReady(ctx)
	if err == nil {
		if err = s.createDatabase(ctx); err != nil {
			c.kill()
		}
	}
	if err != nil {
		s.removeScrap()
		return nil, err
	}
	s.current = c
	go s.watch(c)
	return s, nil
}

// URL is how to connect, as a database's superuser.
func (s *Server) URL() string { return s.DatabaseURL(database) }

// WorkerURL is how to connect as [Worker].
func (s *Server) WorkerURL() string { return s.roleURL(database, Worker) }

// DatabaseURL is [Server.URL] for another database of the server.
func (s *Server) DatabaseURL(name string) string { return s.roleURL(name, superuser) }

func (s *Server) roleURL(name, role string) string { return socketURL(s.socket, name, role) }

// socketURL is how to connect to a database over the socket in a folder. PostgreSQL's URLs
// have no "+" for a blank, unlike those of HTML forms (PostgreSQL's documentation,
// Connection URIs), so that a folder with a blank in its name would not be found.
func socketURL(socket, name, role string) string {
	q := url.Values{"host": {socket}, "user": {role}}
	return (&url.URL{Scheme: "postgres", Path: "/" + name, RawQuery: strings.ReplaceAll(q.Encode(), "+", "%20")}).String()
}

// dataVersion is the major version that made the database, 0 where there is none.
func dataVersion(data string) (int, error) {
	b, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(data); err == nil {
			return 0, fmt.Errorf("folder %s exists but holds no PostgreSQL database: move it away", data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("private database: %w", err)
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("private database: PG_VERSION in %s is %q", data, b)
	}
	return v, nil
}

// makeSocketDir makes the folder that alone guards the database: whoever may
// enter it is trusted.
func (s *Server) makeSocketDir(dir string) error {
	s.socket = filepath.Join(dir, "postgres-socket")
	// A comma separates folders in PostgreSQL's setting and hosts in its URLs.
	if len(s.socket) > maxSocketDir || strings.Contains(s.socket, ",") {
		scrap, err := os.MkdirTemp("", "linktrial-postgres-")
		if err != nil {
			return fmt.Errorf("folder for the database's socket: %w", err)
		}
		s.socket, s.scrap = scrap, scrap
	} else {
		// The lock file beside a killed server's socket would keep the next one out.
		if err := os.RemoveAll(s.socket); err != nil {
			return fmt.Errorf("folder for the database's socket: %w", err)
		}
		if err := os.Mkdir(s.socket, 0o700); err != nil {
			return fmt.Errorf("folder for the database's socket: %w", err)
		}
	}
	if err := os.Chmod(s.socket, 0o700); err != nil {
		return fmt.Errorf("folder for the database's socket: %w", err)
	}
	return s.owner.own(s.socket)
}

func (s *Server) removeScrap() {
	if s.scrap != "" {
		os.RemoveAll(s.scrap)
	}
}

// settings are lean, because the database shares a laptop with trials, and
// durable, because what an agent was told is stored must stay so.
func (s *Server) settings() []string {
	set := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": s.socket,
		"unix_socket_permissions": "0700",
		"shared_buffers":          "32MB",
		"max_connections":         "40",
		"fsync":                   "on",
		"synchronous_commit":      "on",
		"full_page_writes":        "on",
		"wal_level":               "minimal",
		"max_wal_senders":         "0",
		"min_wal_size":            "32MB",
		"max_wal_size":            "512MB",
		"jit":                     "off",
		"log_min_messages":        "warning",
		"logging_collector":       "off",
		// After a crash, one call instead of opening and syncing each of some thousand files:
		// on a busy disk that took minutes, in which nobody could use the database.
		"recovery_init_sync_method": "syncfs",
		"timezone":                  "UTC",
		"log_timezone":              "UTC",
	}
	if s.bin.hasTimescale() {
		set["shared_preload_libraries"] = "timescaledb"
		set["timescaledb.telemetry_level"] = "off"
	}
	args := []string{"-D", s.data}
	for k, v := range set {
		args = append(args, "-c", k+"="+v)
	}
	return args
}

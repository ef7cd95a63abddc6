// Package runner starts protocol drivers as plain processes: it finds their
// manifests in a folder, asks each whether it can run on this node, and ends
// what an earlier, killed agent left running.
//
// Comes in: a folder of drivers, contract parameters. Goes out: running processes
// ([executor.Process]), the state of each driver and the digest of what it is
// made of.
package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"linktrial/agents/radioonly"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/driverdigest"
	"linktrial/internal/driverfolder"
	"linktrial/internal/inputfile"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// Config of a [Runner].
type Config struct {
	Dir string // of drivers: <Dir>/<name>/driver.yaml; can be a list of such folders, as PATH has it
	// PIDDir has a file for each running process, so that [Runner.Sweep] finds
	// them after a crash; empty: there are no files.
	PIDDir string
	// Confined drivers run with less than this process may ([confine]); DriverReads
	// are files and folders that they read beyond the system's and their own, DriverUser
	// the number of the user that they run as; 0: the machine's choice.
	Confined    bool
	DriverReads []string
	DriverUser  uint32
	// RadioOnly keeps confined drivers to the node's radios, where it can be; nil: they
	// reach what the node reaches.
	RadioOnly *radioonly.Filter
	Logger    *slog.Logger
}

// Runner starts the drivers of a folder.
type Runner struct {
	cfg Config

	digests driverdigest.Cache
	unheld  sync.Once // it was said that drivers reach more than the radios

	mu        sync.Mutex
	manifests map[string]cachedManifest
}

// cachedManifest is a manifest and the digest of the folder that it was read from.
type cachedManifest struct {
	manifest *contract.Manifest
	digest   driverdigest.Digest
}

// New returns a runner. It reads nothing yet.
func New(cfg Config) *Runner {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner{cfg: cfg, manifests: map[string]cachedManifest{}}
}

// folder is a driver's folder as it is now.
func (r *Runner) folder(name string) (*driverdigest.Folder, error) {
	if !contract.ValidName(name) {
		return nil, fmt.Errorf("protocol %q: %w", name, executor.ErrNoDriver)
	}
	dir, found := driverfolder.Find(r.cfg.Dir, name)
	if !found {
		return nil, r.noDriver(name)
	}
	return r.digests.Folder(dir)
}

func (r *Runner) noDriver(name string) error {
	return fmt.Errorf("protocol %s: %w in %s (--drivers adds a folder)", name, executor.ErrNoDriver, driverfolder.Shown(r.cfg.Dir))
}

// Digest names a driver by all that its folder has now. The error wraps
// [executor.ErrNoDriver] where there is no driver of that name.
func (r *Runner) Digest(_ context.Context, name string) (driverdigest.Digest, error) {
	f, err := r.folder(name)
	if err != nil {
		return "", err
	}
	return f.Digest, nil
}

// Newest returns the file of a driver's folder that changed last, and when.
func (r *Runner) Newest(name string) (file string, at time.Time) {
	f, err := r.folder(name)
	if err != nil {
		return "", time.Time{}
	}
	return f.Newest, f.NewestAt
}

// manifest is <dir>/<name>/driver.yaml as it is now.
func (r *Runner) manifest(name string) (*contract.Manifest, error) {
	f, err := r.folder(name)
	if errors.Is(err, executor.ErrNoDriver) {
		return nil, err
	}
	if err != nil { // no digest: it can be queried, and no run sheet will name it
		return r.readManifest(name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.manifests[name]; ok && have.digest == f.Digest {
		return have.manifest, nil
	}
	m, err := r.readManifest(name)
	if err == nil {
		r.manifests[name] = cachedManifest{m, f.Digest}
	}
	return m, err
}

func (r *Runner) readManifest(name string) (*contract.Manifest, error) {
	if !contract.ValidName(name) {
		return nil, fmt.Errorf("protocol %q: %w", name, executor.ErrNoDriver)
	}
	dir, found := driverfolder.Find(r.cfg.Dir, name)
	if !found {
		return nil, r.noDriver(name)
	}
	file := filepath.Join(dir, driverfolder.Manifest)
	b, err := inputfile.Read(file, yamldoc.MaxText)
	if errors.Is(err, os.ErrNotExist) {
		return nil, r.noDriver(name) // it has gone meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("protocol %s: %w", name, err)
	}
	m, err := contract.ParseManifest(file, b)
	if err != nil {
		return nil, fmt.Errorf("protocol %s: %w: %w", name, executor.ErrNoDriver, err)
	}
	if m.Name != name {
		return nil, fmt.Errorf("protocol %s: %w: its folder's manifest is of %q", name, executor.ErrNoDriver, m.Name)
	}
	return m, nil
}

// program is the path of a manifest's program, and the driver's folder.
func (r *Runner) program(m *contract.Manifest) (path, dir string, err error) {
	dir, found := driverfolder.Find(r.cfg.Dir, m.Name)
	if !found {
		return "", "", r.noDriver(m.Name)
	}
	path = m.Command[0]
	switch {
	case !strings.Contains(path, "/"):
		if path, err = exec.LookPath(path); err != nil {
			err = fmt.Errorf("%w: %w", executor.ErrBrokenDriver, err)
		}
	case !filepath.IsAbs(path):
		path, err = filepath.Abs(filepath.Join(dir, path))
	}
	return path, dir, err
}

// HasProgram reports whether the folder has a driver's manifest and its program.
// A manifest that cannot be read counts as a driver here: its query reports why.
func (r *Runner) HasProgram(name string) bool {
	m, err := r.manifest(name)
	if err != nil {
		return !errors.Is(err, executor.ErrNoDriver)
	}
	path, _, err := r.program(m)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

// State is one driver as it is on this node.
type State struct {
	Manifest *contract.Manifest // nil where it could not be read
	Dir      string             // the driver's folder; "" of an image
	Driver   journal.Driver     // Unsupported is why it does not run here
	Choices  map[string][]string
}

// Remarks are the driver's details about single values of its options:
// "option=value", and what it says of that value (docs/driver-contract.md).
func (s State) Remarks() map[string]string {
	out := map[string]string{}
	for key, text := range s.Driver.Detail {
		if strings.Contains(key, "=") {
			out[key] = text
		}
	}
	return out
}

// Runs reports whether the driver can run on this node.
func (s State) Runs() bool { return s.Driver.Unsupported == "" }

// List reads and queries every driver of a folder, in the order of their
// names. A driver that cannot run is in the list with the reason. Each query
// takes at most [contract.QueryPatience].
func List(ctx context.Context, dir string) ([]State, error) {
	return New(Config{Dir: dir}).List(ctx)
}

// List is [List] with the runner's folder.
func (r *Runner) List(ctx context.Context) ([]State, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	states := make([]State, len(names))
	for i, name := range names {
		states[i] = r.Query(ctx, name)
	}
	return states, ctx.Err()
}

// names are the folder's drivers, sorted.
func (r *Runner) names() ([]string, error) {
	return driverfolder.Names(r.cfg.Dir)
}

// Manifests reads the manifests of the folder, in the order of their names,
// without those that cannot be read: queries of their drivers report why.
func (r *Runner) Manifests() ([]*contract.Manifest, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	var out []*contract.Manifest
	for _, name := range names {
		if m, err := r.manifest(name); err == nil {
			out = append(out, m)
		}
	}
	return out, nil
}

// Query asks one driver whether it can run here.
func (r *Runner) Query(ctx context.Context, name string) State {
	s := State{Driver: journal.Driver{Name: name}}
	no := func(format string, args ...any) State {
		s.Driver.Unsupported = fmt.Sprintf(format, args...)
		return s
	}
	m, err := r.manifest(name)
	if err != nil {
		return no("%v", err)
	}
	s.Manifest, s.Driver.Version = m, m.Version
	path, dir, err := r.program(m)
	if err != nil {
		return no("%v", err)
	}
	s.Dir = dir
	s.Driver.SHA256 = r.identify(&s, path)
	if s.Driver.SHA256 == "" {
		if s.Driver.SHA256, err = fileHash(path); err != nil {
			return no("%v", err)
		}
	}
	return Query(ctx, r, s)
}

// Query starts a driver that has been found in the role of a query, and completes
// its state with what it reports. It takes at most [contract.QueryPatience].
func Query(ctx context.Context, r executor.Runner, s State) State {
	no := func(format string, args ...any) State {
		s.Driver.Unsupported = fmt.Sprintf(format, args...)
		return s
	}
	p, err := r.Start(ctx, s.Driver.Name, &contract.Parameters{Contract: contract.Version, Role: contract.RoleQuery, Options: map[string]any{}}, nil)
	if err != nil {
		return no("%v", err)
	}
	limit := time.AfterFunc(contract.QueryPatience, p.Kill)
	defer limit.Stop()
	cancel := context.AfterFunc(ctx, p.Kill)
	defer cancel()
	// One line is all; a driver that writes more is ended.
	out, _ := io.ReadAll(io.LimitReader(p.Output(), contract.MaxLine))
	p.Output().Close()
	if len(out) == contract.MaxLine {
		p.Kill()
	}
	<-p.Done()
	level := ""
	if c, ok := p.(interface{ Confinement() string }); ok {
		level = c.Confinement()
	}
	if !limit.Stop() && ctx.Err() == nil {
		return no("its query did not end within %s", contract.QueryPatience)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	e, err := contract.ParseEvent([]byte(line))
	switch {
	case ctx.Err() != nil:
		return no("its query was interrupted")
	case err != nil:
		return no("its query ended with %s and said %.120q; its log ends with: %s", p.Exit(), line, lastLine(p.Log()))
	case e.Event == contract.KindError:
		return no("%s", e.Message)
	case e.Event != contract.KindReady || p.Exit().Code != contract.ExitOK:
		return no("its query ended with %s after a %s event", p.Exit(), e.Event)
	}
	s.Driver.Implementation, s.Driver.Detail, s.Choices = e.Info.Implementation, e.Info.Detail, e.Info.Choices
	if level != "" {
		s.Driver.Detail = maps.Clone(s.Driver.Detail)
		if s.Driver.Detail == nil {
			s.Driver.Detail = map[string]string{}
		}
		s.Driver.Detail["confinement"] = level
	}
	return s
}

// identify sets the driver's digest, and returns the hash of its program where
// that lies in the driver's folder.
func (r *Runner) identify(s *State, program string) string {
	f, err := r.folder(s.Driver.Name)
	if err != nil {
		return ""
	}
	s.Driver.Digest = string(f.Digest)
	rel, err := filepath.Rel(s.Dir, program)
	if err != nil {
		return ""
	}
	return f.Files[filepath.ToSlash(rel)]
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Package docker starts protocol drivers as containers: it finds their images
// on this node's engine, asks each whether it can run here, and removes what an
// earlier, killed agent left behind.
//
// A driver's container joins the network namespace in which the agent and the
// radio's interface are, so that its packets take the way that those of a plain
// process take: an interface of the container's own in front of the radio would
// be another path. What it sends leaves by the radio's interface alone
// ([Config.Device]). It has the capabilities that its manifest asks for and no
// others, a root file system that it cannot write, and bounds on memory,
// processor time and processes. Its first process is the engine's init, which ends when
// the driver does; the kernel ends all others of the PID namespace before that is reported.
//
// Comes in: the engine's images with [LabelProtocol], contract parameters. Goes
// out: running containers ([executor.Process]) and the state of each driver.
package docker

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"linktrial/agents/radioonly"
	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/driverdigest"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// Labels of images and containers.
const (
	// LabelProtocol marks an image as a driver's, with the protocol's name.
	LabelProtocol = "linktrial.protocol"
	// LabelAgent is on every container of a runner, with [Config.Agent].
	LabelAgent = "linktrial.agent"
	// LabelRole is on a driver's container: server, client or query; on the one
	// that holds the network, "network".
	LabelRole = "linktrial.role"
	// LabelTransfer is on a client's container: the identity of the transfer,
	// which the journal gives for every flow of an attempt.
	LabelTransfer = "linktrial.transfer"
)

// ManifestPath is where an image has its driver's manifest. The manifest's
// command is relative to its folder.
const ManifestPath = "/driver.yaml"

// What a driver may use whose manifest sets no bound. An engine with fewer
// processors gives all it has.
const (
	DefaultMemoryBytes = 512 << 20
	DefaultCPUs        = 2
	DefaultProcesses   = 64
)

// Config of a [Runner].
type Config struct {
	// Agent distinguishes this agent's containers from others' on the same engine;
	// it stays the same over restarts.
	Agent string
	// StateDir keeps a number that is added to Agent, because one engine may serve
	// several nodes of the same name; empty: the name is unique. Containers also get
	// their folders for logs of transfers there, and without it none.
	StateDir string
	// Host of the engine, as "unix:///run/docker.sock"; empty: DOCKER_HOST, else
	// the engine's usual socket.
	Host string
	// Holder is the program, statically linked, that holds the network for
	// drivers, and the arguments that make it call [Hold]. It is not needed where
	// this process is a container of the same engine.
	Holder []string
	// Images are the images to use by protocol; for the others, the engine's
	// image with the protocol's label.
	Images map[string]string
	// Device is the radio's interface in the network namespace of this process:
	// what drivers send leaves by it, by that of a second radio which parameters name,
	// and by no other, but for what they send each other within the node. Empty:
	// drivers reach all that the namespace reaches.
	Device string
	// RadioOnly is the filter that keeps them to it; nil: one of Agent's own.
	RadioOnly *radioonly.Filter
	Logger    *slog.Logger
}

// Runner starts the drivers whose images an engine has.
type Runner struct {
	cfg    Config
	engine *client.Client
	cpus   float64 // of the engine

	// seccomp profiles of drivers, "" where they are not confined: without and with CAP_NET_ADMIN
	plainSockets, adminSockets string

	radioOnly *radioonly.Filter

	hidden atomic.Bool // the engine does not see StateDir

	mu       sync.Mutex
	drivers  map[string]image             // by protocol
	network  string                       // container whose network the drivers join
	held     bool                         // the network's container is the runner's own
	unknown  map[string]bool              // capabilities that the engine does not know
	prepared map[string]preparedContainer // by transfer
	running  map[string]*driver           // by container
	closing  sync.WaitGroup

	endEvents func() // ends listening to the engine's events; of mu, nil: nobody listens
}

// image is a driver's image, pinned by its identity.
type image struct {
	id, name string
	user     string // of the image
	manifest *contract.Manifest
}

// New connects to the engine. Where none answers, the error names the remedy.
func New(ctx context.Context, cfg Config) (*Runner, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if cfg.Agent, err = label(cfg); err != nil {
		return nil, err
	}
	options := []client.Opt{client.FromEnv}
	if cfg.Host != "" {
		options = append(options, client.WithHost(cfg.Host))
	}
	engine, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	info, err := engine.Info(asking, client.InfoOptions{})
	if err != nil {
		_ = engine.Close() // no call is under way
		return nil, fmt.Errorf("container engine at %s does not answer: start it, or let the agent run drivers as processes (--runner exec): %w", engine.DaemonHost(), err)
	}
	if err := removeLogs(cfg.StateDir); err != nil {
		_ = engine.Close() // no call is under way
		return nil, err
	}
	r := &Runner{cfg: cfg, radioOnly: cmp.Or(cfg.RadioOnly, radioonly.New(cfg.Agent, cfg.Device)), engine: engine, cpus: float64(info.Info.NCPU), drivers: map[string]image{}, prepared: map[string]preparedContainer{}, unknown: map[string]bool{}, running: map[string]*driver{}}
	if cfg.Device != "" {
		var err1, err2 error
		r.plainSockets, err1 = socketProfile(false)
		r.adminSockets, err2 = socketProfile(true)
		if err := errors.Join(err1, err2); err != nil {
			_ = engine.Close() // no call is under way
			return nil, err
		}
	}
	return r, nil
}

// Close removes this runner's containers and ends the connection.
func (r *Runner) Close(ctx context.Context) error {
	err := r.Sweep(ctx) // ends what still runs
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.closing.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // the engine hangs; closing the connection ends the rest
		err = errors.Join(err, ctx.Err())
	}
	r.mu.Lock()
	end := r.endEvents
	r.mu.Unlock()
	if end != nil {
		end()
	}
	return errors.Join(err, r.radioOnly.Remove(), r.engine.Close())
}

// Sweep removes every container of this agent, running or not: after a crash
// those of the agent's earlier start.
func (r *Runner) Sweep(ctx context.Context) error {
	r.mu.Lock()
	r.network, r.held = "", false
	r.prepared = map[string]preparedContainer{}
	r.mu.Unlock()
	list, err := r.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", LabelAgent+"="+r.cfg.Agent)})
	if err != nil {
		return fmt.Errorf("containers left by an earlier agent: %w", err)
	}
	for _, c := range list.Items {
		r.cfg.Logger.Info("container is removed", "container", short(c.ID), "protocol", c.Labels[LabelProtocol], "role", c.Labels[LabelRole], "state", string(c.State))
		if err := r.remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) remove(ctx context.Context, id string) error {
	_, err := r.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !notFound(err) && !strings.Contains(err.Error(), "already in progress") {
		return fmt.Errorf("remove container %s: %w", short(id), err)
	}
	return nil
}

// List looks for images of drivers, pins each and queries it, in the order of
// the protocols' names. A driver that cannot run is in the list with the reason.
func (r *Runner) List(ctx context.Context) ([]runner.State, error) {
	states, err := r.Images(ctx)
	if err != nil {
		return nil, err
	}
	for i, s := range states {
		if s.Runs() {
			states[i] = runner.Query(ctx, r, s)
		}
	}
	return states, ctx.Err()
}

// Images is List without the queries: no image is run.
func (r *Runner) Images(ctx context.Context) ([]runner.State, error) {
	found, err := r.find(ctx)
	if err != nil {
		return nil, err
	}
	var states []runner.State
	for _, name := range slices.Sorted(maps.Keys(found)) {
		states = append(states, r.identify(ctx, name, found[name]))
	}
	return states, ctx.Err()
}

// find returns the references of images by protocol.
func (r *Runner) find(ctx context.Context) (map[string][]string, error) {
	list, err := r.engine.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("label", LabelProtocol).Add("dangling", "false")})
	if err != nil {
		return nil, fmt.Errorf("images of drivers: %w", err)
	}
	found := map[string][]string{}
	for _, i := range list.Items {
		if len(i.RepoTags) > 0 {
			name := i.Labels[LabelProtocol]
			found[name] = append(found[name], choose(i.RepoTags)[0])
		}
	}
	for name, refs := range found {
		found[name] = choose(refs)
	}
	for name, ref := range r.cfg.Images {
		found[name] = []string{ref}
	}
	return found, nil
}

// choose takes the one image that is tagged latest out of several.
func choose(refs []string) []string {
	sort.Strings(refs)
	var latest []string
	for _, ref := range refs {
		if strings.HasSuffix(ref, ":latest") {
			latest = append(latest, ref)
		}
	}
	if len(latest) == 1 {
		return latest
	}
	return refs
}

// identify pins the one image of a protocol.
func (r *Runner) identify(ctx context.Context, name string, refs []string) runner.State {
	s := runner.State{Driver: journal.Driver{Name: name}}
	if len(refs) > 1 {
		s.Driver.Unsupported = fmt.Sprintf("several images carry it: %s; tag one of them latest, or name one with --image %s=IMAGE", strings.Join(refs, ", "), name)
		return s
	}
	i, err := r.pin(ctx, name, refs[0])
	if err != nil {
		s.Driver.Unsupported = err.Error()
		return s
	}
	digest, err := driverdigest.OfImage(i.id)
	if err != nil {
		s.Driver.Unsupported = err.Error()
		return s
	}
	s.Manifest, s.Driver.Version, s.Driver.Digest = i.manifest, i.manifest.Version, string(digest)
	s.Driver.SHA256 = strings.TrimPrefix(i.id, "sha256:")
	return s
}

// pin reads an image's identity and manifest; from then on the protocol is run
// from that identity, whatever becomes of the name.
func (r *Runner) pin(ctx context.Context, name, ref string) (image, error) {
	found, err := r.engine.ImageInspect(ctx, ref)
	if err != nil {
		return image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	r.mu.Lock()
	have, ok := r.drivers[name]
	r.mu.Unlock()
	if ok && have.id == found.ID {
		return have, nil
	}
	m, err := r.readManifest(ctx, found.ID, ref)
	if err != nil {
		return image{}, err
	}
	if name != "" && m.Name != name {
		return image{}, fmt.Errorf("image %s: its label names the protocol %q and its %s %q", ref, name, ManifestPath, m.Name)
	}
	i := image{id: found.ID, name: ref, manifest: m}
	if found.Config != nil {
		i.user = found.Config.User
	}
	r.mu.Lock()
	r.drivers[m.Name] = i
	r.mu.Unlock()
	return i, nil
}

// readManifest takes it out of a container that is made for that and never started.
func (r *Runner) readManifest(ctx context.Context, id, ref string) (*contract.Manifest, error) {
	made, err := r.engine.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: id, Cmd: []string{"-"}, Labels: map[string]string{LabelAgent: r.cfg.Agent}},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	// Also where ctx has ended meanwhile.
	defer func() { _ = r.remove(context.WithoutCancel(ctx), made.ID) }()
	copied, err := r.engine.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: ManifestPath})
	if err != nil {
		return nil, fmt.Errorf("image %s: expected the driver's manifest at %s: %w", ref, ManifestPath, err)
	}
	defer copied.Content.Close()
	return manifestOf(copied.Content, ref)
}

// manifestOf reads the manifest in the archive that the engine makes of one file.
func manifestOf(archive io.Reader, ref string) (*contract.Manifest, error) {
	in := tar.NewReader(archive)
	h, err := in.Next()
	if err == nil && (h.Typeflag != tar.TypeReg || h.Size > yamldoc.MaxText) {
		err = fmt.Errorf("a regular file of at most %s, found type %q of %d bytes", unit.FormatBytes(yamldoc.MaxText), h.Typeflag, h.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: expected the driver's manifest at %s: %w", ref, ManifestPath, err)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("image %s: %s: %w", ref, ManifestPath, err)
	}
	return contract.ParseManifest(ref+":"+ManifestPath, b)
}

// Digest names a driver by its image. The error wraps [executor.ErrNoDriver]
// where no image carries the protocol.
func (r *Runner) Digest(ctx context.Context, protocol string) (driverdigest.Digest, error) {
	i, err := r.image(ctx, protocol)
	if err != nil {
		return "", err
	}
	return driverdigest.OfImage(i.id)
}

// image is the pinned one of a protocol.
func (r *Runner) image(ctx context.Context, protocol string) (image, error) {
	r.mu.Lock()
	i, ok := r.drivers[protocol]
	r.mu.Unlock()
	if ok {
		return i, nil
	}
	found, err := r.find(ctx)
	if err != nil {
		return image{}, err
	}
	refs := found[protocol]
	if len(refs) != 1 {
		return image{}, fmt.Errorf("protocol %s: %w: %d images of the engine carry it", protocol, executor.ErrNoDriver, len(refs))
	}
	if i, err = r.pin(ctx, protocol, refs[0]); err != nil {
		return image{}, fmt.Errorf("protocol %s: %w: %w", protocol, executor.ErrNoDriver, err)
	}
	return i, nil
}

func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

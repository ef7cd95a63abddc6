package docker

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/internal/driverdigest"
	"linktrial/protocols/contract"
)

// Mixed runs drivers as plain processes, and as containers those of which the
// folder of drivers has a manifest that names an image, and no program.
type Mixed struct {
	processes *runner.Runner
	cfg       Config // of containers; its images are those of the manifests

	mu         sync.Mutex
	containers *Runner
	images     map[string]string // by protocol, of the manifests without a program
}

// NewMixed returns a runner over a folder's drivers. The engine is connected
// to only where a driver needs one. The folder's manifests name the images: cfg
// must name none.
func NewMixed(processes *runner.Runner, cfg Config) (*Mixed, error) {
	if len(cfg.Images) > 0 {
		protocol := slices.Min(slices.Collect(maps.Keys(cfg.Images)))
		return nil, fmt.Errorf("--image %s=%s: expected only with --runner docker; with --runner exec the manifests in the folder of drivers name the images", protocol, cfg.Images[protocol])
	}
	return &Mixed{processes: processes, cfg: cfg, images: map[string]string{}}, nil
}

// List reads and queries every driver, in the order of their names. Where an
// image is needed and no engine answers, the driver is in the list with that.
func (e *Mixed) List(ctx context.Context) ([]runner.State, error) {
	states, err := e.processes.List(ctx)
	if err != nil {
		return nil, err
	}
	images := e.setImages(manifestsOf(states))
	for i, s := range states {
		if s.Manifest == nil || images[s.Manifest.Name] == "" {
			continue
		}
		r, err := e.engine(ctx)
		if err != nil {
			states[i].Driver.Unsupported = err.Error()
			continue
		}
		if states[i] = r.identify(ctx, s.Manifest.Name, []string{s.Manifest.Image}); states[i].Runs() {
			states[i] = runner.Query(ctx, r, states[i])
		}
	}
	return states, ctx.Err()
}

// engine connects once; after a failure, the next call tries again.
func (e *Mixed) engine(ctx context.Context) (*Runner, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.containers != nil {
		return e.containers, nil
	}
	cfg := e.cfg
	cfg.Images = e.images
	r, err := New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := r.Sweep(ctx); err != nil {
		return nil, err
	}
	e.containers = r
	return r, nil
}

// runnerOf is the runner of a protocol's containers; nil: it is a plain process.
func (e *Mixed) runnerOf(ctx context.Context, protocol string) (*Runner, error) {
	e.mu.Lock()
	image := e.images[protocol]
	e.mu.Unlock()
	if image == "" || e.processes.HasProgram(protocol) {
		return nil, nil
	}
	return e.engine(ctx)
}

// Start implements [executor.Runner].
func (e *Mixed) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	r, err := e.runnerOf(ctx, protocol)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return e.processes.Start(ctx, protocol, p, payload)
	}
	return r.Start(ctx, protocol, p, payload)
}

// Prepare implements [executor.Preparer].
func (e *Mixed) Prepare(ctx context.Context, protocol, transfer string) (release func()) {
	r, err := e.runnerOf(ctx, protocol)
	if err != nil || r == nil {
		return func() {} // Start reports what is wrong
	}
	return r.Prepare(ctx, protocol, transfer)
}

// Digest names a driver by its folder, or by its image.
func (e *Mixed) Digest(ctx context.Context, protocol string) (driverdigest.Digest, error) {
	r, err := e.runnerOf(ctx, protocol)
	if err != nil {
		return "", err
	}
	if r == nil {
		return e.processes.Digest(ctx, protocol)
	}
	return r.Digest(ctx, protocol)
}

// Newest returns the file of a driver's folder that changed last, and when; ""
// for a driver that runs as an image.
func (e *Mixed) Newest(protocol string) (file string, at time.Time) {
	if !e.processes.HasProgram(protocol) {
		return "", time.Time{}
	}
	return e.processes.Newest(protocol)
}

// Sweep ends what an earlier agent left running.
func (e *Mixed) Sweep(ctx context.Context) error { return e.processes.Sweep(ctx) }

// Close removes the containers of this runner.
func (e *Mixed) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.containers == nil {
		return nil
	}
	return e.containers.Close(ctx)
}

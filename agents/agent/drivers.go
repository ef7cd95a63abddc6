package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"linktrial/agents/radioonly"
	"linktrial/agents/runner"
	"linktrial/agents/runner/docker"
	"linktrial/executor"
	"linktrial/internal/driverdigest"
)

// runnable is what starts the node's drivers, in whatever way.
type runnable interface {
	executor.Runner
	List(ctx context.Context) ([]runner.State, error)
	Digest(ctx context.Context, protocol string) (driverdigest.Digest, error)
	Sweep(ctx context.Context) error
}

// DriversConfig is how drivers are run.
type DriversConfig struct {
	Runner string // [RunnerExec], the default, or [RunnerDocker]
	// Engine is the address of the container engine, as "unix:///run/docker.sock";
	// empty: DOCKER_HOST, else the engine's usual socket.
	Engine string
	// Images are the images to use by protocol; for the others, those of the engine
	// that are labelled as a driver's.
	Images map[string]string
	// HoldNetwork are the arguments with which this very program calls [docker.Hold].
	HoldNetwork []string
	// Unconfined drivers, as processes, may do all that the agent may. Reads are
	// files and folders that confined ones read beyond the system's and their own.
	Unconfined bool
	Reads      []string
	// User is the number of the user that confined ones run as; 0: the machine's choice.
	User uint32
}

// Kinds of runner.
const (
	// RunnerExec runs drivers as plain processes; as containers only those of
	// which the folder has a manifest that names an image, and no program.
	RunnerExec = "exec"
	// RunnerDocker runs the images of a container engine.
	RunnerDocker = "docker"
)

// network is which packets a protocol sends, as the manifest of its driver says: "tcp",
// "udp" or "sctp"; empty: there is no such driver.
func (a *agent) network(protocol string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.drivers {
		if s.Driver.Name == protocol && s.Manifest != nil {
			return s.Manifest.Network
		}
	}
	return ""
}

// closeLimit bounds the removal of containers at an agent's end.
const closeLimit = 20 * time.Second

// openDrivers returns the runner of a configuration, whose drivers are kept to the radios;
// release ends what it holds.
func openDrivers(ctx context.Context, cfg Config, radios *radioonly.Filter) (runnable, func(), error) {
	containers := docker.Config{Agent: cfg.Name, StateDir: cfg.StateDir, Host: cfg.Drivers.Engine, Images: cfg.Drivers.Images, Device: cfg.Device, RadioOnly: radios, Logger: cfg.Logger}
	if self, err := os.Executable(); err == nil {
		containers.Holder = append([]string{self}, cfg.Drivers.HoldNetwork...)
	}
	type closer interface{ Close(context.Context) error }
	release := func(c closer) func() {
		return func() {
			// The agent's own context has ended by now.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
			defer cancel()
			if err := c.Close(ctx); err != nil {
				cfg.Logger.Error("containers of drivers could not be removed", "error", err)
			}
		}
	}
	processes := runner.New(runner.Config{Dir: cfg.DriversDir, PIDDir: cfg.pidDir(), Confined: !cfg.Drivers.Unconfined, DriverReads: cfg.Drivers.Reads, DriverUser: cfg.Drivers.User, RadioOnly: radios, Logger: cfg.Logger})
	switch cfg.Drivers.Runner {
	case "", RunnerExec:
		either, err := docker.NewMixed(processes, containers)
		if err != nil {
			return nil, nil, err
		}
		closed := release(either)
		return either, func() {
			closed()
			if err := radios.Remove(); err != nil {
				cfg.Logger.Debug("packet filter of drivers", "error", err) // of a kernel without one
			}
		}, nil
	case RunnerDocker:
		// An earlier start may have run processes.
		if err := processes.Sweep(ctx); err != nil {
			return nil, nil, err
		}
		r, err := docker.New(ctx, containers)
		if err != nil {
			return nil, nil, err
		}
		return r, release(r), nil
	default:
		return nil, nil, fmt.Errorf("runner %q, expected %s or %s", cfg.Drivers.Runner, RunnerExec, RunnerDocker)
	}
}

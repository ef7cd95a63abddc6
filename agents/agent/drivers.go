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

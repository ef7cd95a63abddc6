package node

import (
	"context"

	"github.com/spf13/cobra"

	"linktrial/agents/agent"
	"linktrial/agents/runner/docker"
	"linktrial/lab/join"
)

// runJoined runs an agent once the emulated radio is in its network, and keeps
// the radio there for as long as the agent runs.
func runJoined(ctx context.Context, socket string, cfg agent.Config) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	up, joined := make(chan struct{}), make(chan error, 1)
	go func() {
		err := join.Node(ctx, socket, cfg.Role, func() { close(up) }, cfg.Logger)
		cancel(err)
		joined <- err
	}()
	select {
	case <-up:
	case err := <-joined:
		return err
	}
	err := agent.Run(ctx, cfg)
	cancel(nil)
	if jerr := <-joined; err == nil {
		err = jerr
	}
	return err
}

const holdNetwork = "hold-network"

func newHoldNetwork() *cobra.Command {
	return &cobra.Command{
		Use:    holdNetwork + " FILE",
		Short:  "Hold a network namespace for containers until a signal ends it (started by an agent)",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(_ *cobra.Command, args []string) error { return docker.Hold(args[0]) },
	}
}

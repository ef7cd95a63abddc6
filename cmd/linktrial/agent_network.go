package main

import (
	"github.com/spf13/cobra"

	"linktrial/agents/runner/docker"
)

const holdNetwork = "hold-network"

func newHoldNetwork() *cobra.Command {
	return &cobra.Command{
		Use:    holdNetwork + " FILE",
		Short:  "Hold a network namespace for containers until told to stop (started by an agent)",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(_ *cobra.Command, args []string) error { return docker.Hold(args[0]) },
	}
}

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"linktrial/emulator/bench"
	"linktrial/lab/netns"
)

func newBench(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "bench",
		Short: "Measure the emulator's rate and delay error, and the most it carries",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := netns.Possible(); err != nil {
				return err
			}
			fmt.Println("emulated radio")
			return bench.Run(cmd.Context(), os.Stdout)
		},
	}
}

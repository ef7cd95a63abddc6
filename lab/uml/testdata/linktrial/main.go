// Command linktrial is what the tests boot guests with: the hidden
// subcommands of the product's binary that run inside a guest.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"linktrial/agents/agent"
	"linktrial/agents/trust"
	"linktrial/emulator/tun"
	"linktrial/internal/vitals"
	"linktrial/lab/uml/guest"
)

func main() {
	vitals.Serve()
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "linktrial:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 4 && args[0] == "lab" && args[1] == "guest":
		return guest.Main(ctx, guest.Config{Dir: args[2], Job: args[3], Agent: []string{"lab", "guest-agent"}, Emulator: []string{"lab", "emulate"}})
	case len(args) == 2 && args[0] == "lab" && args[1] == "guest-agent":
		return runAgent(ctx)
	case len(args) == 2 && args[0] == "lab" && args[1] == "emulate":
		var cfg tun.Config
		if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
			return err
		}
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		cfg.Ready = func() { fmt.Println("ready") }
		return tun.Run(ctx, cfg)
	}
	return fmt.Errorf("unknown arguments %q", args)
}

func runAgent(ctx context.Context) error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var a guest.Agent
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if err := a.View.Enter(); err != nil {
		return err
	}
	finish := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in)
		close(finish)
	}()
	return agent.RunSheet(ctx, agent.Config{
		Name: a.Name, Role: a.Role, StateDir: a.StateDir, DriversDir: a.View.DriverFolders(), Device: a.Device,
		RadioAddress: a.RadioAddress, RadioControl: a.RadioControl, Place: a.Place, Faults: a.Faults, Trust: trust.Config{File: a.Trust}, FloorBytes: -1,
		Drivers: agent.DriversConfig{User: a.View.User},
		Version: "test", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, a.Run, a.Sheet, finish)
}

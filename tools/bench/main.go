// Command bench measures Linktrial itself, with real packets through real namespaces:
// emulated radio, drivers, executor, store, pages, agents, TLS. The results in the
// documentation come from it.
//
// Comes in: the sections to measure, and the built program, from which it starts what has to
// be a process of its own. Goes out: tables.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/checkout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default comes back: a second one ends at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", terminal.Printable(err.Error()))
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	program, err := builtProgram()
	if err != nil {
		return err
	}
	return newBench(&setting.Settings{Program: program}).ExecuteContext(ctx)
}

// binVariable names the folder of the built program and its drivers.
const binVariable = "LINKTRIAL_BIN"

// builtProgram is where make build puts linktrial; it may not be there.
func builtProgram() (string, error) {
	dir := os.Getenv(binVariable)
	if dir == "" {
		root, err := checkout.Root()
		if err != nil {
			return "", fmt.Errorf("%w; %s can name the folder of the built program", err, binVariable)
		}
		dir = filepath.Join(root, "bin")
	}
	return filepath.Abs(filepath.Join(dir, "linktrial"))
}

// versionOf asks the built program for its version.
func versionOf(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: run make build first, or name the folder of linktrial with %s", err, binVariable)
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "linktrial version "), nil
}

//go:build kernels

package inside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/e2e/kernels/machine"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest"
	"linktrial/protocols/tcp/socket"
)

// treatment is one row: a driver with options.
type treatment struct {
	driver, name string
	values       map[string]any
}

// windowBytes is about the bandwidth-delay product of the bad link, for the
// congestion control that holds it.
const windowBytes = 8000

// TestDrivers runs these checks for everything that a driver takes from the kernel,
// and brings along to it. What is brought along comes first: where the kernel has
// a congestion control of the name, the driver takes the kernel's.
func TestDrivers(t *testing.T) {
	for _, c := range []treatment{
		{"tcp", "TCP radio, eBPF", map[string]any{"congestion": "radio", "window": windowBytes}},
		{"tcp", "TCP westwood, eBPF", map[string]any{"congestion": "westwood"}},
		{"tcp", "TCP veno, eBPF", map[string]any{"congestion": "veno"}},
	} {
		c.try(t, socket.FromEBPF)
	}
	try(t, "drivers", "TCP radio_newrto, eBPF", func(*testing.T) ([]string, error) { return nil, refused("radio_newrto", "needs Linux 6.15") })
	ours := measure(t, socket.FromEBPF)
	for _, m := range []string{"tcp_westwood", "tcp_veno"} {
		if err := loadModule(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []treatment{
		{"tcp", "TCP cubic", map[string]any{"congestion": "cubic"}},
		{"tcp", "TCP reno", map[string]any{"congestion": "reno"}},
		{"tcp", "TCP westwood", map[string]any{"congestion": "westwood"}},
		{"tcp", "TCP veno", map[string]any{"congestion": "veno"}},
		{"tcp", "TCP vegas", map[string]any{"congestion": "vegas"}},
		{"tcp", "TCP bbr", map[string]any{"congestion": "bbr"}},
	} {
		c.try(t, socket.FromKernel)
	}
	try(t, "drivers", "MPTCP", func(t *testing.T) ([]string, error) {
		return conformance(t.Context(), t, "tcp", map[string]any{"multipath": true}, carries)
	})
	hold(t, ours, measure(t, socket.FromKernel))
	for _, c := range []treatment{
		{"sctp", "SCTP of the kernel", map[string]any{"stack": "kernel"}},
		{"sctp", "SCTP of usrsctp", map[string]any{"stack": "userland"}},
	} {
		c.try(t, "")
	}
}

// try reports one row. origin is where the congestion control must come from.
func (c treatment) try(t *testing.T, origin string) {
	try(t, "drivers", c.name, func(t *testing.T) ([]string, error) {
		if origin != "" {
			w := netem(t, conditions{})
			server, err := serve(w, c.driver, c.values)
			if err != nil {
				return nil, err
			}
			defer server.stop()
			r, err := transfer(t.Context(), w, server, c.driver, c.values, 1<<16, 1)
			if err != nil {
				return nil, err
			}
			if err := origins(r, c.values["congestion"], origin); err != nil {
				return nil, err
			}
		}
		only := carries
		if origin == socket.FromEBPF {
			only = carriesFew
		}
		return conformance(t.Context(), t, c.driver, c.values, only)
	})
}

// origins holds what the result says of the congestion control against what it must be.
func origins(r *contract.Result, name any, origin string) error {
	if r.Info == nil || r.Info.Detail["congestion"] != name || r.Info.Detail["congestion_from"] != origin {
		return fmt.Errorf("the result's info is %+v, expected congestion %s, %s", r.Info, name, origin)
	}
	return nil
}

// refused starts a server whose congestion control this kernel cannot have. It
// must say so, with the reason; the error is then a [notSupported].
func refused(congestion, reason string) error {
	g, err := launch("tcp", "", parameters(contract.RoleServer, map[string]any{"congestion": congestion}))
	if err != nil {
		return err
	}
	_, err = g.until(contract.KindReady)
	if err == nil {
		g.stop()
		return fmt.Errorf("a server with %s is ready, expected that the kernel cannot have it", congestion)
	}
	_ = g.cmd.Wait() // its exit code says how
	var said *failure
	if !errors.As(err, &said) || said.code != contract.CodeUnsupported || !strings.Contains(said.message, reason) || g.cmd.ProcessState.ExitCode() != contract.ExitUnsupported {
		return fmt.Errorf("a server with %s ended with exit code %d: %w; expected %s because it %s", congestion, g.cmd.ProcessState.ExitCode(), err, contract.CodeUnsupported, reason)
	}
	return &notSupported{said.message}
}

// loadModule loads a module that the machine has, and that its first process has not loaded.
func loadModule(name string) error {
	b, err := os.ReadFile(filepath.Join(machine.ModuleFolder, name+".ko"))
	if err != nil {
		return err
	}
	if err := unix.InitModule(b, ""); err != nil {
		return fmt.Errorf("load the module %s: %w", name, err)
	}
	return nil
}

// conformance runs checks of the suite. The values are how many passed, the
// 1 MiB transfer and the one over the bad link.
func conformance(ctx context.Context, t *testing.T, driver string, values map[string]any, only []string) ([]string, error) {
	target, err := protocoltest.Load(filepath.Join(drivers, driver))
	if err != nil {
		return nil, err
	}
	passed := 0
	detail := map[string]string{}
	var failed error
	r, err := protocoltest.Run(ctx, target, protocoltest.Options{Quick: true, Only: only, Values: maps.Clone(values), Progress: func(c protocoltest.Check) {
		t.Logf("%-8s %-18s %6.2f s  %s", c.Outcome, c.Name, c.Elapsed.Seconds(), c.Detail)
		detail[c.Name] = c.Detail
		switch c.Outcome {
		case protocoltest.Passed:
			passed++
		case protocoltest.Failed:
			failed = errors.Join(failed, fmt.Errorf("check %s: %s", c.Name, c.Detail))
		case protocoltest.Skipped:
			failed = errors.Join(failed, fmt.Errorf("check %s was skipped: %s", c.Name, c.Detail))
		}
	}})
	if err != nil {
		return nil, err
	}
	if r.Unsupported != "" {
		return nil, fmt.Errorf("the driver cannot run here: %s", r.Unsupported)
	}
	return []string{fmt.Sprintf("%d of %d", passed, len(r.Checks)), rate(detail["size-1MiB"]), rate(detail["lossy-link"])}, failed
}

// rate is what a check of the suite says of the rate, without the time to connect.
func rate(detail string) string {
	_, r, _ := strings.Cut(detail, ", ")
	return r
}

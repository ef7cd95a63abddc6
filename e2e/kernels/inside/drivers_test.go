//go:build kernels

package inside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/protocols/protocoltest"
)

// carries are the checks of the conformance suite that a treatment must pass to
// count as one that works on a kernel: transfers of several sizes, verified to the
// last byte, and one over a bad link.
var carries = []string{"size-0", "size-1", "size-1KiB", "size-1MiB", "wrong-payload", "late-byte", "lossy-link", "output", "exit-codes", "children"}

// TestDrivers runs these checks for everything that a driver can take from the kernel.
func TestDrivers(t *testing.T) {
	for _, c := range []struct {
		driver string
		name   string
		values map[string]any
	}{
		{"tcp", "TCP cubic", map[string]any{"congestion": "cubic"}},
		{"tcp", "TCP reno", map[string]any{"congestion": "reno"}},
		{"tcp", "TCP westwood", map[string]any{"congestion": "westwood"}},
		{"tcp", "TCP veno", map[string]any{"congestion": "veno"}},
		{"tcp", "TCP vegas", map[string]any{"congestion": "vegas"}},
		{"tcp", "TCP bbr", map[string]any{"congestion": "bbr"}},
		{"sctp", "SCTP of the kernel", map[string]any{"stack": "kernel"}},
		{"sctp", "SCTP of usrsctp", map[string]any{"stack": "userland"}},
	} {
		try(t, "drivers", c.name, func(t *testing.T) ([]string, error) {
			return conformance(t.Context(), t, c.driver, c.values, carries)
		})
	}
}

// conformance runs checks of the suite. The figures are how many passed, the
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

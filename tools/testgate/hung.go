package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"linktrial/internal/process"
)

// exactTestLimit is how long one exact test runs before it counts as hung. On two
// processors the longest takes half a minute; the rest is for a machine that others use.
const exactTestLimit = 4 * time.Minute

// note keeps since when a test runs that is no subtest: one that waits for its turn after
// t.Parallel does not.
func (r *results) note(e event) {
	if e.Test == "" || strings.Contains(e.Test, "/") {
		return
	}
	key := testOf{e.Package, e.Test}
	switch e.Action {
	case "run", "cont":
		r.running[key] = time.Now()
	case "pause", "pass", "fail", "skip":
		delete(r.running, key)
	}
}

// testOf is a test of a package.
type testOf struct{ pkg, name string }

// longer returns the tests that run for longer than a limit.
func (r *results) longer(limit time.Duration) []testOf {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []testOf
	for key, since := range r.running {
		if time.Since(since) > limit {
			out = append(out, key)
		}
	}
	return out
}

// endHung ends test programs in which a test runs for longer than a limit, until the
// context ends: the program prints its goroutines, and those of other packages go on.
func (g *gate) endHung(ctx context.Context, limit time.Duration) {
	folders := map[string]string{}
	for _, p := range g.all {
		folders[p.ImportPath] = p.Dir
	}
	ended := map[process.Identity]bool{}
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		for _, t := range g.longer(limit) {
			programs, err := testPrograms(os.Getpid(), folders[t.pkg])
			if err != nil {
				g.printf("%s/%s has run for %s, and cannot be ended: %v\n", t.pkg, t.name, limit, err)
			}
			for _, p := range programs {
				if ended[p] {
					continue
				}
				ended[p] = true
				g.printf("%s/%s has run for %s: it is ended, with its package\n", t.pkg, t.name, limit)
				if err := p.Signal(syscall.SIGQUIT); err != nil && !process.Ended(err) {
					g.printf("%v\n", err)
				}
			}
		}
	}
}

// testPrograms are the processes below one that run tests in a folder: go test starts
// them in that of their package.
func testPrograms(parent int, folder string) ([]process.Identity, error) {
	children, err := process.Children(parent)
	if err != nil {
		return nil, err
	}
	var out []process.Identity
	for _, c := range children {
		program, err := c.Program()
		cwd, other := os.Readlink(fmt.Sprintf("/proc/%d/cwd", c.PID))
		if err != nil || other != nil {
			continue // it has ended meanwhile
		}
		if cwd == folder && strings.HasSuffix(program, ".test") {
			out = append(out, c)
			continue
		}
		below, err := testPrograms(c.PID, folder)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// gate runs tests and gathers their results.
type gate struct {
	*results
	all    []goPackage
	folder string // for built test programs and results of pages
}

// start prepares a command that has a process group of its own, all of which is ended with
// the context.
func command(ctx context.Context, dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// events runs a command whose standard output are events. used is the time of the processor
// that it took.
func (g *gate) events(ctx context.Context, dir string, env []string, name string, args ...string) (used time.Duration, err error) {
	cmd := command(ctx, dir, env, name, args...)
	cmd.Stderr = os.Stderr
	r, w := io.Pipe()
	cmd.Stdout = w
	read := make(chan error, 1)
	go func() {
		err := g.read(r)
		r.CloseWithError(errors.Join(err, io.EOF)) // nothing blocks in writing to it
		read <- err
	}()
	err = cmd.Run()
	_ = w.Close() // the reader then sees the end
	return usedBy(cmd), errors.Join(err, <-read)
}

// usedBy is the time of the processor that a command took, with all of its children for
// which their parents waited.
func usedBy(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// goTest runs tests with go test, which builds what they need.
func (g *gate) goTest(ctx context.Context, race bool, args ...string) error {
	first := []string{"test", "-json", "-vet=off", "-count=1", "-timeout", exactLimit.String()}
	var env []string
	if race {
		// The tests themselves build programs without cgo.
		first, env = append(first, "-race", "-exec", "env CGO_ENABLED=0"), []string{"CGO_ENABLED=1"}
	}
	_, err := g.events(ctx, "", env, "go", append(first, args...)...)
	return err
}

// part is the exact tests of a package that has others as well.
type part struct {
	pkg  goPackage
	args []string // for go test
}

// exactTests are the packages whose exact tests run together, with and without the race
// detector, and those of which a part is exact.
func exactTests(all []goPackage) (race, plain []string, parts []part) {
	for _, p := range all {
		switch own := p.Tests.of(exact); {
		case p.Tests.kind != exact && len(own) > 0:
			parts = append(parts, part{p, []string{"-run", exactly(own...)}})
		case p.Tests.kind != exact:
		case !p.Tests.only():
			parts = append(parts, part{p, []string{"-skip", exactly(append(p.Tests.of(realTime), p.Tests.of(soak)...)...)}})
		case p.Race:
			race = append(race, p.ImportPath)
		default:
			plain = append(plain, p.ImportPath)
		}
	}
	return race, plain, parts
}

// exact runs the exact tests: those under the race detector on all processors, and beside
// them one package after the other of those without it, and of those that have other
// tests as well, the virtual lab's long ones.
func (g *gate) exact(ctx context.Context) {
	defer g.part("exact tests", time.Now())
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go g.endHung(watched, exactTestLimit)
	race, plain, parts := exactTests(g.all)
	var all sync.WaitGroup
	all.Go(func() {
		if len(race) > 0 {
			g.goneWrong(ctx, "the exact tests under the race detector", g.goTest(ctx, true, race...))
		}
	})
	all.Go(func() {
		for _, p := range parts {
			g.goneWrong(ctx, p.pkg.ImportPath, g.goTest(ctx, p.pkg.Race, append(p.args, p.pkg.ImportPath)...))
		}
	})
	all.Go(func() {
		if len(plain) > 0 {
			g.goneWrong(ctx, "the exact tests without the race detector", g.goTest(ctx, false, append([]string{"-p", "1"}, plain...)...))
		}
	})
	all.Wait()
}

// goneWrong notes that a command failed where no test of it says why.
func (g *gate) goneWrong(ctx context.Context, what string, err error) {
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && g.anyFailed() && ctx.Err() == nil {
		return
	}
	g.addFailure(failure{pkg: what, output: fmt.Sprintf("%v", errors.Join(err, context.Cause(ctx)))})
}

func (g *gate) anyFailed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.failures) > 0
}

// build builds the test programs of the packages with tests of these kinds, so that nothing is
// compiled beside these.
func (g *gate) build(ctx context.Context, kinds ...kind) error {
	defer g.part("building their programs", time.Now())
	for _, p := range g.all {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return len(p.Tests.of(k)) > 0 }) {
			continue
		}
		// Without symbols for debuggers: stacks of goroutines do not need them.
		args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", g.binary(p)}
		env := []string(nil)
		if p.Race {
			args, env = append(args, "-race"), []string{"CGO_ENABLED=1"}
		}
		cmd := command(ctx, "", env, "go", append(args, p.ImportPath)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			g.addFailure(failure{pkg: p.ImportPath, output: fmt.Sprintf("build: %v\n%s", err, out)})
		}
	}
	return ctx.Err()
}

func (g *gate) binary(p goPackage) string {
	return filepath.Join(g.folder, strings.ReplaceAll(p.name(), "/", "-")+".test")
}

// A lane runs units one after the other, and some of them at once.
type lane []condition

// condition is when a unit begins beside as many of its lane as stand before it: the
// pressure of the processor is below percent, or was not for patience. Where patience
// ended without that, it is leastPatience from then on until the pressure is low again:
// on a machine that something else keeps busy, waiting changes nothing.
type condition struct {
	percent  float64
	patience time.Duration
}

const (
	leastPatience = 2 * time.Second
	never         = time.Duration(math.MaxInt64)
)

// The third and the fourth unit that compute begin only where the others hardly do. Those
// that wait run beside these.
var (
	computing = lane{{30, time.Minute}, {30, 20 * time.Second}, {22, never}, {15, never}}
	waiting   = lane{{45, 20 * time.Second}, {30, never}}
)

// settle is how long what has just begun does not show in the pressure.
const settle = 4 * time.Second

// inRealTime runs tests that need time that others leave them, as many at once as leave the processors in peace.
func (g *gate) inRealTime(ctx context.Context, what string, units []unit) {
	defer g.part(what, time.Now())
	compute := slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return u.waits })
	wait := slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return !u.waits })
	var both sync.WaitGroup
	both.Go(func() { g.inLane(ctx, computing, compute) })
	both.Go(func() { g.inLane(ctx, waiting, wait) })
	both.Wait()
}

func (g *gate) inLane(ctx context.Context, l lane, units []unit) {
	q := queue{lane: l, ended: make(chan struct{}, len(units))}
	var all sync.WaitGroup
	for _, u := range units {
		q.waitForTurn(ctx)
		if ctx.Err() != nil {
			g.addFailure(failure{pkg: u.pkg, output: "not run: the gate's time was over"})
			continue
		}
		q.running++
		all.Go(func() {
			g.run(ctx, u)
			q.ended <- struct{}{}
		})
		select {
		case <-ctx.Done():
		case <-time.After(settle):
		}
	}
	all.Wait()
}

// queue is a lane with what runs in it.
type queue struct {
	lane    lane
	running int
	ended   chan struct{} // once for each that has ended
	busy    bool          // waiting did not help the last time
}

// waitForTurn blocks until another test may begin.
func (q *queue) waitForTurn(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil; {
		if q.running < len(q.lane) && q.lane[q.running].met(readPressure().percent, time.Since(began), &q.busy) {
			return
		}
		select {
		case <-ctx.Done():
		case <-q.ended:
			q.running--
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// met reports whether a unit that has waited for a time may begin. busy is whether the
// one before it waited in vain, and is kept up to date.
func (c condition) met(percent float64, waited time.Duration, busy *bool) bool {
	patience := c.patience
	if *busy && patience < never {
		patience = min(patience, leastPatience)
	}
	low := percent < c.percent
	if !low && waited <= patience {
		return false
	}
	*busy = !low
	return true
}

// run runs a unit and notes the pressure beside what failed.
func (g *gate) run(ctx context.Context, u unit) {
	began, before := readPressure(), g.count()
	limited, stop := context.WithTimeout(ctx, u.limit+time.Minute)
	defer stop()
	var used time.Duration
	var err error
	if u.page {
		used, err = g.runPage(limited, u)
	} else {
		env := append([]string{"CGO_ENABLED=0", "PWD=" + u.dir}, u.env...)
		used, err = g.events(limited, u.dir, env, u.command[0], u.command[1:]...)
	}
	if err != nil && g.count() == before && !g.failed(u.pkg) {
		g.addFailure(failure{pkg: u.pkg, output: fmt.Sprintf("%s: %v", u.label, err)})
	}
	g.mu.Lock()
	for i := range g.failures {
		if f := &g.failures[i]; f.pkg == u.pkg && f.load == "" {
			f.load = began.since()
		}
	}
	g.mu.Unlock()
	took := time.Since(began.at).Seconds()
	g.printf("      %-60s %6.1f s, %3.0f %% of a processor, %s\n", u.label, took, 100*used.Seconds()/took, began.since())
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.failures)
}

// Command testgate runs the tests of the gate, each kind where it belongs
// (internal/testkind), and says at the end what failed and where the time went.
//
//	testgate -run exact,realtime -web web    runs tests, and what failed again, alone
//	testgate -repeat 10 -changed HEAD        runs the tests of changed files ten times
//	go test -json … | testgate               judges the tests of another command
//
// It fails unless every skipped test is expected: a test that skips in silence is a test
// that does not exist.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	run      string
	web      string
	skips    string
	unsteady string
	folder   string
	only     string
	changed  string
	repeat   int
	limit    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "run tests of these kinds: exact, realtime, soak, separated by commas (default: read events of go test -json)")
	flag.StringVar(&o.web, "web", "", "folder of the pages, whose tests in a browser run with those in real time")
	flag.StringVar(&o.skips, "expected", "", "file with a line for each test that may skip: package/Test")
	flag.StringVar(&o.unsteady, "unsteady", "", "file with a line for each test whose failure is told and does not count: package/Test, date, reason")
	flag.StringVar(&o.folder, "folder", "build/tests", "folder for built test programs, which is emptied")
	flag.StringVar(&o.only, "only", "", "only packages and files of pages whose path has this in it")
	flag.StringVar(&o.changed, "changed", "", "only packages that what differs from this commit reaches; HEAD, of which nothing differs: what it changed itself")
	flag.IntVar(&o.repeat, "repeat", 0, "with -changed: run each test of the changed test files so many times, every second time beside a busy processor, instead of -run")
	flag.DurationVar(&o.limit, "limit", 78*time.Minute, "end what runs after this time, and say what was not run")
	flag.Parse()
	ok, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(o options) (bool, error) {
	skips, err := readNames(o.skips)
	if err != nil {
		return false, err
	}
	unsteady, err := readNames(o.unsteady)
	if err != nil {
		return false, err
	}
	if len(unsteady) > mostListed {
		return false, fmt.Errorf("%s has %d tests, and %d at most: mend some", o.unsteady, len(unsteady), mostListed)
	}
	if o.repeat > 0 && o.changed == "" {
		return false, errors.New("-repeat: expected -changed and a commit")
	}
	r := newResults(os.Stdout)
	if o.run == "" && o.repeat == 0 {
		err = r.read(os.Stdin)
	} else {
		err = o.tests(r)
	}
	if err != nil {
		return false, err
	}
	v := r.judge(skips, unsteady)
	r.print(v, os.Stdout)
	nothing := o.changed != "" && (o.run != "" || o.repeat > 0) // to be tested is no failure then
	return !v.red() && (r.passed > 0 || nothing), nil
}

// tests runs the tests of the kinds that were asked for.
func (o options) tests(r *results) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("the gate's %s were over", o.limit))
	defer cancel()
	folder, err := filepath.Abs(o.folder)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	g := &gate{results: r, folder: folder}
	if g.all, err = readPackages(); err != nil {
		return err
	}
	g.all = selected(g.all, o.only)
	if o.repeat > 0 {
		files, err := changedFiles(o.changed)
		if err != nil {
			return err
		}
		return g.repeatChanged(ctx, o, files)
	}
	if o.changed != "" {
		if g.all, err = reachedBy(g.all, o.changed); err != nil {
			return err
		}
	}
	var units []unit
	for _, k := range strings.Split(o.run, ",") {
		switch k {
		case "exact":
			g.exact(ctx)
		case "realtime":
			own, err := g.prepare(ctx, o, realTime)
			if err != nil {
				return err
			}
			units = append(units, own...)
			g.inRealTime(ctx, "real-time tests", own)
		case "soak":
			own, err := g.prepare(ctx, options{only: o.only}, soak)
			if err != nil {
				return err
			}
			g.inRealTime(ctx, "soak tests", own)
			r.printRan(os.Stdout)
		default:
			return fmt.Errorf("-run %s: expected exact, realtime or soak", k)
		}
	}
	g.tryAgain(ctx, units)
	return nil
}

// prepare builds what the tests of a kind need, and returns them.
func (g *gate) prepare(ctx context.Context, o options, k kind) ([]unit, error) {
	if err := g.build(ctx, k); err != nil {
		return nil, err
	}
	units := unitsOf(g.all, k, g.binary)
	if o.web == "" {
		return units, nil
	}
	web, err := filepath.Abs(o.web)
	if err != nil {
		return nil, err
	}
	pages, err := pageUnits(web)
	if err != nil {
		return nil, err
	}
	return spread(units, slices.DeleteFunc(pages, func(u unit) bool { return !strings.Contains(u.pkg, o.only) })), nil
}

// spread puts the pages evenly among the other units: a browser computes, and most of the
// others wait.
func spread(units, pages []unit) []unit {
	var out []unit
	for i, u := range pages {
		out = append(append(out, u), units[i*len(units)/len(pages):(i+1)*len(units)/len(pages)]...)
	}
	if len(pages) == 0 {
		return units
	}
	return out
}

func selected(all []goPackage, only string) []goPackage {
	var out []goPackage
	for _, p := range all {
		if strings.Contains(p.ImportPath, only) {
			out = append(out, p)
		}
	}
	return out
}

// readNames reads the first word of each line that is no comment.
func readNames(path string) (map[string]bool, error) {
	out := map[string]bool{}
	if path == "" {
		return out, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name[0] != '#' {
			out[name] = true
		}
	}
	return out, nil
}

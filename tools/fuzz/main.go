// Command fuzz runs every fuzz target of the module, one after the other, each for
// a given time, and prints a line for each. It fails when one has found something;
// what it was is then in testdata/fuzz of the package, as a test from now on.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// target is one fuzz target.
type target struct{ pkg, name string }

func main() {
	each := flag.Duration("time", time.Minute, "how long each target runs")
	only := flag.String("only", "", "a regular expression: only targets whose package and name (internal/unit.FuzzQuantity) it matches")
	list := flag.Bool("list", false, "print the targets and run none")
	parallel := flag.Int("parallel", 0, "processes of a target (default: one for each processor)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *each, *only, *list, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, each time.Duration, only string, list bool, parallel int) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	all, err := targets(ctx)
	if err != nil {
		return err
	}
	var failed []string
	ran := 0
	for _, t := range all {
		full := strings.TrimPrefix(t.pkg, "linktrial/") + "." + t.name
		if !pattern.MatchString(full) {
			continue
		}
		ran++
		if list {
			fmt.Println(full)
			continue
		}
		began := time.Now()
		out, err := t.run(ctx, each, parallel)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		fmt.Printf("%-60s %6.1f s  %s\n", full, time.Since(began).Seconds(), outcome(out, err))
		if err != nil {
			failed = append(failed, full)
			fmt.Print(out)
		}
	}
	switch {
	case ran == 0:
		return fmt.Errorf("no fuzz target matches %q", only)
	case len(failed) > 0:
		return fmt.Errorf("%d of %d targets failed: %s", len(failed), ran, strings.Join(failed, ", "))
	case !list:
		fmt.Printf("%d targets, each for %s: nothing found\n", ran, each)
	}
	return nil
}

// run fuzzes a target and returns what go test has printed.
func (t target) run(ctx context.Context, each time.Duration, parallel int) (string, error) {
	args := []string{"test", t.pkg, "-run", "^$", "-fuzz", "^" + t.name + "$", "-fuzztime", each.String()}
	if parallel > 0 {
		args = append(args, "-parallel", fmt.Sprint(parallel))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && endedLate(string(out)) {
		err = nil
	}
	return string(out), err
}

// endedLate reports whether a target has found nothing and only ended after its
// time: on a busy machine go test reports its own deadline as a failure.
func endedLate(out string) bool {
	return strings.Contains(out, "\n    context deadline exceeded\n") && !strings.Contains(out, "Failing input written to") && !strings.Contains(out, "panic:")
}

// executions is the last figure of go test's progress.
var executions = regexp.MustCompile(`execs: (\d+)`)

func outcome(out string, err error) string {
	all := executions.FindAllStringSubmatch(out, -1)
	switch {
	case err != nil:
		return "FAILED"
	case strings.Contains(out, "[no test files]"), strings.Contains(out, "no fuzz tests to fuzz"):
		return "not run"
	case len(all) == 0:
		return "ok, skipped or without executions"
	}
	return "ok, " + all[len(all)-1][1] + " inputs"
}

// targets is the fuzz targets of all packages, in the order of their names.
func targets(ctx context.Context) ([]target, error) {
	list := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "./...")
	var failure bytes.Buffer
	list.Stderr = &failure
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, failure.String())
	}
	var all []target
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for _, f := range append(p.TestGoFiles, p.XTestGoFiles...) {
			names, err := declared(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				all = append(all, target{p.ImportPath, name})
			}
		}
	}
}

// declared is the fuzz targets of one file.
func declared(file string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
			out = append(out, fn.Name.Name)
		}
	}
	return out, nil
}

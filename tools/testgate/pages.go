package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pageResults is what vitest writes with its reporter json.
type pageResults struct {
	TestResults []struct {
		Message          string
		AssertionResults []struct {
			FullName        string
			Status          string // passed, failed, pending, skipped, todo
			Duration        float64
			FailureMessages []string
		}
	}
}

// runPage runs a file of tests in a browser. Its error is that of a file that did not run;
// used is the time of the processor that it took.
func (g *gate) runPage(ctx context.Context, u unit) (used time.Duration, err error) {
	file := filepath.Join(g.folder, filepath.Base(u.pkg)+".json")
	_ = os.Remove(file) // of an earlier attempt
	began := time.Now()
	args := append(append([]string{}, u.command[1:]...), "--reporter=json", "--outputFile="+file)
	cmd := command(ctx, u.dir, u.env, u.command[0], args...)
	out, err := cmd.CombinedOutput()
	used = usedBy(cmd)
	b, readErr := os.ReadFile(file)
	if readErr != nil {
		return used, fmt.Errorf("%w\n%s", errors.Join(err, readErr), out)
	}
	var r pageResults
	if err := json.Unmarshal(b, &r); err != nil {
		return used, fmt.Errorf("results of vitest: %w", err)
	}
	before := g.count()
	g.addPage(u, r, time.Since(began))
	if err != nil && g.count() == before {
		return used, fmt.Errorf("%w\n%s", err, out) // an error outside of its tests
	}
	return used, nil
}

func (g *gate) addPage(u unit, r pageResults, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.packages = append(g.packages, timing{u.pkg, took.Seconds()})
	for _, file := range r.TestResults {
		if len(file.AssertionResults) == 0 {
			g.failures = append(g.failures, failure{pkg: u.pkg, output: "no test was executed: " + file.Message})
		}
		for _, t := range file.AssertionResults {
			switch name := u.pkg + "/" + t.FullName; t.Status {
			case "passed":
				g.passed++
				g.tests = append(g.tests, timing{name, t.Duration / 1000})
			case "failed":
				output := strings.Join(t.FailureMessages, "\n")
				fmt.Fprintf(g.out, "FAIL  %s\n%s\n", name, output)
				g.failures = append(g.failures, failure{pkg: u.pkg, test: t.FullName, seconds: t.Duration / 1000, output: output})
			default:
				g.skipped[name] = t.Status
			}
		}
	}
}

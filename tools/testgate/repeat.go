package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// changedTests are the packages with a changed test file, each with the tests in its
// changed files alone. A changed file without a test has what others share (a helper, the
// package's kind): then all of the package's tests have changed.
func changedTests(all []goPackage, files []string) ([]goPackage, error) {
	var out []goPackage
	for _, p := range all {
		changed := slices.DeleteFunc(slices.Clone(p.testFiles()), func(name string) bool {
			return !slices.Contains(files, path.Join(p.name(), name))
		})
		if len(changed) == 0 {
			continue
		}
		tests := map[string]kind{}
		for _, name := range changed {
			one := p
			one.TestGoFiles, one.XTestGoFiles = []string{name}, nil
			l, err := readTests(one)
			if err != nil {
				return nil, err
			}
			if len(l.tests) == 0 {
				tests = p.Tests.tests
				break
			}
			for test := range l.tests {
				tests[test] = p.Tests.tests[test]
			}
		}
		p.Tests.tests = tests
		out = append(out, p)
	}
	return out, nil
}

// changedPages are the changed files of tests in a browser.
func changedPages(web string, files []string) ([]unit, error) {
	pages, err := pageUnits(web)
	return slices.DeleteFunc(pages, func(u unit) bool { return !slices.Contains(files, u.pkg) }), err
}

// repeatedUnits are one unit for each test that runs by itself in the gate, exact ones too,
// and one for the others of a package.
func repeatedUnits(all []goPackage, kinds []kind, binary func(goPackage) string) []unit {
	var out []unit
	for _, p := range all {
		for _, k := range kinds {
			tests := p.Tests.of(k)
			switch {
			case len(tests) == 0:
			case apart[p.name()]:
				for _, name := range tests {
					out = append(out, testUnit(p, binary(p), testLimit, "-test.run="+exactly(name)))
				}
			default:
				out = append(out, testUnit(p, binary(p), packageLimit, "-test.run="+exactly(tests...)))
			}
		}
	}
	return out
}

// repeat runs units one after the other, as often as asked for: in every second round with
// all processors but one taken by something else, as where a gate runs.
func (g *gate) repeat(ctx context.Context, units []unit, times int) {
	began := time.Now()
	for round := range times {
		busy, stop := context.WithCancel(ctx)
		words := "alone"
		if round%2 == 1 {
			words = "beside a busy processor"
			for range max(1, runtime.NumCPU()-1) {
				go spin(busy)
			}
		}
		for i, u := range units {
			if ctx.Err() != nil {
				g.addFailure(failure{pkg: u.pkg, output: "not run again: the time was over"})
				continue
			}
			g.run(ctx, u)
			done := round*len(units) + i + 1
			left := time.Since(began) / time.Duration(done) * time.Duration(times*len(units)-done)
			g.printf("round %d of %d (%s): %d of %d, about %s left\n", round+1, times, words, i+1, len(units), left.Round(time.Second))
		}
		stop()
	}
}

func spin(ctx context.Context) {
	for ctx.Err() == nil {
	}
}

// printRepeated prints how often each test passed and failed.
func (r *results) printRepeated(out io.Writer) {
	type row struct {
		passed, failed int
		seconds        float64
	}
	rows := map[string]*row{}
	of := func(name string) *row {
		if rows[name] == nil {
			rows[name] = &row{}
		}
		return rows[name]
	}
	for _, t := range r.tests {
		of(t.name).passed++
		of(t.name).seconds += t.seconds
	}
	for _, f := range r.failures {
		if !strings.Contains(f.test, "/") {
			of(f.name()).failed++
			of(f.name()).seconds += f.seconds
		}
	}
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rows[b].failed, rows[a].failed), cmp.Compare(a, b))
	})
	for _, name := range names {
		t := rows[name]
		fmt.Fprintf(out, "ran   %-60s passed %d, failed %d, %.1f s on average\n", name, t.passed, t.failed, t.seconds/float64(t.passed+t.failed))
	}
}

// repeatChanged runs the tests of changed files again and again.
func (g *gate) repeatChanged(ctx context.Context, o options, files []string) error {
	var err error
	if g.all, err = changedTests(g.all, files); err != nil {
		return err
	}
	kinds := []kind{exact, realTime}
	if err := g.build(ctx, kinds...); err != nil {
		return err
	}
	units := repeatedUnits(g.all, kinds, g.binary)
	if o.web != "" {
		web, err := filepath.Abs(o.web)
		if err != nil {
			return err
		}
		pages, err := changedPages(web, files)
		if err != nil {
			return err
		}
		units = append(units, pages...)
	}
	units = slices.DeleteFunc(units, func(u unit) bool { return !strings.Contains(u.pkg, o.only) })
	fmt.Printf("%d changed files: %d groups of tests, %d times\n", len(files), len(units), o.repeat)
	g.repeat(ctx, units, o.repeat)
	g.printRepeated(g.out)
	return nil
}

// Command fuzz runs the fuzz targets of the module, one after the other, and prints a
// line for each. It fails when one has found something; what it was is then in
// testdata/fuzz of the package, as a test from now on.
//
// With -time each target has so long, with -total all of them together. With both,
// as many run as the total allows, beginning with another one each -turn: for a
// gate that has minutes, and sees all of them over some changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// selection is which targets run, and for how long.
type selection struct {
	each, total time.Duration // 0: not stated
	turn        int
	only        *regexp.Regexp
	remote      bool
}

func main() {
	var c selection
	var only string
	var list bool
	var b binaries
	var keep int
	flag.DurationVar(&c.each, "time", 0, "how long each target runs (default without -total: a minute)")
	flag.DurationVar(&c.total, "total", 0, "how long all of them run together, building included")
	flag.IntVar(&c.turn, "turn", 0, "with -time and -total: which part of the targets comes first, a number that rises with each change")
	flag.StringVar(&only, "only", "", "a regular expression: only targets whose package and name (internal/unit.FuzzQuantity) it matches")
	flag.BoolVar(&c.remote, "remote", false, "only targets that decode bytes of another machine ("+kindsFile+")")
	flag.BoolVar(&list, "list", false, "print the targets and run none")
	flag.IntVar(&b.parallel, "parallel", 0, "processes of a target (default: one for each processor)")
	flag.IntVar(&keep, "keep", 0, "run none, and keep so many small inputs of each target that earlier runs found to reach other code, in testdata/fuzz of its package")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, only, list, keep, &b); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c selection, only string, list bool, keep int, b *binaries) error {
	var err error
	if c.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if c.each == 0 && c.total == 0 {
		c.each = time.Minute
	}
	all, err := targets(ctx)
	if err != nil {
		return err
	}
	kinds, err := parseKinds(kindsText)
	if err != nil {
		return err
	}
	if err := unlisted(all, kinds); err != nil {
		return err
	}
	chosen, err := chosen(all, kinds, c)
	if err != nil {
		return err
	}
	switch {
	case list:
		for _, t := range chosen {
			fmt.Println(kinds[t.String()], t)
		}
		return nil
	case keep > 0:
		return keepInputs(ctx, chosen, keep)
	}
	return fuzz(ctx, chosen, c, b)
}

// least is the shortest time that a target gets: less would be its seeds alone.
const least = 5 * time.Second

// fuzz runs targets until the time is over.
func fuzz(ctx context.Context, chosen []target, c selection, b *binaries) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.remove()
	began := time.Now()
	var failed, idle []string
	ran := 0
	for _, t := range chosen {
		bin, err := b.of(ctx, t)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		each := share(c, time.Since(began), len(chosen)-ran)
		if err == nil && each == 0 {
			break
		}
		ran++
		start, out := time.Now(), ""
		if err == nil {
			out, err = b.run(ctx, bin, t, each)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		fmt.Printf("%-60s %6.1f s  %s\n", t, time.Since(start).Seconds(), outcome(out, err))
		if n, _ := inputs(out); err == nil && float64(n) < leastRate*each.Seconds() {
			idle = append(idle, t.String())
		}
		if err != nil {
			failed = append(failed, t.String())
			fmt.Print(out)
			if out == "" {
				fmt.Println(err)
			}
			fmt.Print(failing(t, out))
		}
	}
	if rest := chosen[ran:]; len(rest) > 0 {
		fmt.Printf("no time was left for %d of %d targets, from %s on\n", len(rest), len(chosen), rest[0])
	}
	if len(idle) > 0 {
		fmt.Printf("hardly fuzzed, with fewer than %d inputs a second: %s\n", leastRate, strings.Join(idle, ", "))
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d targets failed: %s", len(failed), ran, strings.Join(failed, ", "))
	}
	fmt.Printf("%d targets in %s: nothing found\n", ran, time.Since(began).Round(time.Second))
	return nil
}

// share returns how long the next target runs, of so many that are left; 0: not at all.
func share(c selection, used time.Duration, left int) time.Duration {
	if c.total == 0 {
		return c.each
	}
	rest := c.total - used
	if c.each == 0 {
		return max(least, rest/time.Duration(left)).Round(time.Second)
	}
	if rest < c.each/2 {
		return 0
	}
	return min(c.each, rest).Round(time.Second)
}

// written names the file of what a target has found, below the package's folder.
var written = regexp.MustCompile(`Failing input written to (testdata/fuzz/[A-Za-z0-9_]+/[0-9a-f]+)\n`)

// maxPrinted bounds the printed text of an input, in bytes.
const maxPrinted = 64 << 10

// failing is the input that a target has found, as the file that is to be committed. Where
// a gate found it, that file is gone with the gate's checkout, and its log is what is left.
func failing(t target, out string) string {
	m := written.FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(t.dir, filepath.FromSlash(m[1])))
	if err != nil {
		return fmt.Sprintln("the input cannot be read:", err)
	}
	if len(text) > maxPrinted {
		return fmt.Sprintf("the input has %d bytes and is not printed\n", len(text))
	}
	return fmt.Sprintf("--- %s of %s\n%s--- its end\n", m[1], t.pkg, text)
}

// endedLate reports whether a target has found nothing and only ended after its
// time: on a busy machine the fuzzer reports its own deadline as a failure.
func endedLate(out string) bool {
	return strings.Contains(out, "\n    context deadline exceeded\n") && !strings.Contains(out, "Failing input written to") && !strings.Contains(out, "panic:")
}

// executions is the last number of the fuzzer's progress.
var executions = regexp.MustCompile(`execs: (\d+)`)

// leastRate is how many inputs a second a target runs at least, or its line is no evidence
// that it was fuzzed. The slowest, with a database behind them, run some 100.
const leastRate = 5

// inputs returns how many inputs a target has run, if it says so.
func inputs(out string) (int, bool) {
	all := executions.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	return n, err == nil
}

func outcome(out string, err error) string {
	n, counted := inputs(out)
	switch {
	case err != nil:
		return "FAILED"
	case strings.Contains(out, "no fuzz tests to fuzz"):
		return "not run"
	case !counted:
		return "ok, skipped or without executions"
	}
	return fmt.Sprintf("ok, %d inputs", n)
}

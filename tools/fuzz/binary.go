package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// binaries builds the fuzz binary of a package once, for all of its targets, and runs it.
type binaries struct {
	parallel int // processes of a target; 0: the fuzzer's default

	dir   string // for binaries, and for the temporary files of what runs
	cache string // where the fuzzer keeps the inputs that reach other code
	last  string // package of the binary that is built; only that one is kept
	bin   string
	err   error // of its build
}

func (b *binaries) open(ctx context.Context) error {
	var err error
	if b.cache, err = cacheFolder(ctx); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "linktrial-fuzz-"); err != nil {
		return err
	}
	// A target with a database starts it as another user.
	return os.Chmod(b.dir, 0o755)
}

// cacheFolder is the folder that "go test -fuzz" uses.
func cacheFolder(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOCACHE: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz"), nil
}

func (b *binaries) remove() { _ = os.RemoveAll(b.dir) }

// of returns the fuzz binary of a target's package; an error has what the compiler said.
func (b *binaries) of(ctx context.Context, t target) (string, error) {
	if t.pkg == b.last {
		return b.bin, b.err
	}
	_ = os.Remove(b.bin) // some have 50 MB
	b.last, b.bin = t.pkg, filepath.Join(b.dir, "fuzz.test")
	b.err = nil
	// -fuzz has the compiler instrument the code; which target it names does not matter.
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz", "Fuzz", "-o", b.bin, t.pkg).CombinedOutput(); err != nil {
		b.err = fmt.Errorf("building: %w\n%s", err, out)
	}
	return b.bin, b.err
}

// minimising bounds how often an input that reaches other code is run in search of a
// shorter one. Go's own bound is a minute for each such input, which a document or an
// archive of some hundred bytes uses up: of a turn's minute nothing was left, and a target
// such as bundle.FuzzCheck ran 3 inputs in 12 s instead of 13 000.
const minimising = "100x"

func (b *binaries) arguments(t target, each time.Duration) []string {
	args := []string{"-test.run=^$", "-test.fuzz=^" + t.name + "$", "-test.fuzztime=" + each.String(), "-test.fuzzminimizetime=" + minimising,
		"-test.fuzzcachedir=" + filepath.Join(b.cache, t.pkg), "-test.paniconexit0"}
	if b.parallel > 0 {
		args = append(args, fmt.Sprintf("-test.parallel=%d", b.parallel))
	}
	return args
}

// run fuzzes a target and returns what it has printed.
func (b *binaries) run(ctx context.Context, bin string, t target, each time.Duration) (string, error) {
	// Processes of a target are killed where they do not end at once; what they leave is
	// removed here.
	scratch, err := os.MkdirTemp(b.dir, "tmp-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o755); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, bin, b.arguments(t, each)...)
	cmd.Dir = t.dir // where testdata is
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && endedLate(string(out)) {
		err = nil
	}
	return string(out), err
}

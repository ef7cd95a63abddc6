package typeset

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"linktrial/internal/process"
	"linktrial/internal/scratch"
	"linktrial/orchestrator/report/document"
)

//go:embed report.typ
var template []byte

//go:embed compile.py
var program string

// longest is the time that a PDF may take once it is its turn.
const longest = 2 * time.Minute

// turn is had by the one PDF that is set at a time: the others would need the same memory.
var turn = make(chan struct{}, 1)

// PDF sets a report. It waits until others are set, and ends with the context. Its error is
// one sentence; [ErrMissing]: the machine lacks what sets it.
func PDF(ctx context.Context, d *document.Document) ([]byte, error) {
	t, err := findTool()
	if err != nil {
		return nil, err
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("report as PDF, waiting for another one: %w", context.Cause(ctx))
	}
	folder, err := scratch.New("linktrial-typeset-")
	if err != nil {
		return nil, fmt.Errorf("report as PDF: %w", err)
	}
	defer func() { _ = folder.Remove() }() // what stays, the next one removes
	pdf, err := t.set(ctx, d, folder.Path)
	if err != nil {
		return nil, fmt.Errorf("report as PDF: %w", err)
	}
	return pdf, nil
}

// set sets a document in a folder.
func (t tool) set(ctx context.Context, d *document.Document, folder string) ([]byte, error) {
	files, err := dataOf(d)
	if err != nil {
		return nil, err
	}
	files["report.typ"] = template
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	if err := t.run(ctx, folder); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, "report.pdf"))
}

// withoutTypst is the status with which compile.py ends where it cannot load Typst.
const withoutTypst = 3

// run sets what is in a folder. Python reads neither settings of the environment nor modules
// of the user, and writes nothing beside the wheel.
func (t tool) run(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("typesetting did not end within %s", longest))
	defer cancel()
	cmd := exec.Command(t.python, "-I", "-S", "-B", "-c", program, t.folder)
	cmd.Dir = folder
	// With few threads and heaps, the bound on addresses is one on memory on large machines, too.
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + folder, "TMPDIR=" + folder, "RAYON_NUM_THREADS=2", "MALLOC_ARENA_MAX=2"}
	var failure clipped
	cmd.Stderr = &failure
	if err := process.Start(cmd); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	process.Forget(cmd.Process.Pid)
	if !stop() && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended) && ended.ExitCode() == withoutTypst:
		return fmt.Errorf("%w: python3 cannot load Typst from %s: %s", ErrMissing, t.folder, failure.lastLine())
	case failure.Len() > 0:
		return fmt.Errorf("typesetting failed: %s", failure.lastLine())
	}
	return fmt.Errorf("typesetting failed: %w", err)
}

// clipped keeps the end of what is written to it.
type clipped struct{ bytes.Buffer }

const mostKept = 4 << 10

func (c *clipped) Write(b []byte) (int, error) {
	c.Buffer.Write(b)
	if over := c.Len() - mostKept; over > 0 {
		c.Next(over)
	}
	return len(b), nil
}

// lastLine is the one with the reason: what Typst says of a failure of its own comes before.
func (c *clipped) lastLine() string {
	text := strings.ToValidUTF8(strings.TrimSpace(c.String()), "\uFFFD")
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, "note: ") })
	if len(lines) == 0 {
		return text
	}
	line := lines[len(lines)-1]
	return string([]rune(line)[:min(300, len([]rune(line)))])
}

package stress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"linktrial/internal/driverfolder"
	"linktrial/internal/payload"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// build is a driver that was found.
type build struct {
	driver  Driver
	command []string
	probe   bool           // it carries probes, no transfers
	options map[string]any // the manifest's defaults, and the driver's
}

func load(d Driver) (*build, error) {
	file := filepath.Join(d.Dir, driverfolder.Manifest)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := contract.ParseManifest(file, text)
	if err != nil {
		return nil, err
	}
	b := &build{driver: d, command: slices.Clone(m.Command), probe: m.Kind == contract.KindProbe, options: map[string]any{}}
	if b.command[0], err = filepath.Abs(filepath.Join(d.Dir, b.command[0])); err != nil {
		return nil, err
	}
	for _, o := range m.Options {
		if o.Default != nil {
			b.options[o.Name] = o.Default
		}
	}
	maps.Copy(b.options, d.Options)
	return b, nil
}

// limit is what only a hang reaches.
const limit = 50 * time.Second

func (b *build) parameters(role contract.Role) *contract.Parameters {
	return &contract.Parameters{
		Contract: contract.Version, Role: role, Device: loopback, Options: b.options, SampleIntervalMS: 10,
		Limits: contract.Limits{ConnectMS: limit.Milliseconds(), TransferMS: limit.Milliseconds()},
	}
}

// child is a driver process.
type child struct {
	role      contract.Role
	cmd       *exec.Cmd
	ready     chan struct{} // closed with its ready event
	connected chan struct{} // closed with its first connected event
	ended     chan struct{} // closed when it has ended and all its output is read

	told   bool // to stop
	hung   bool // until it was killed
	killed bool

	// Valid once ended is closed.
	code    int // exit code, -1 for a signal
	signal  syscall.Signal
	results int
	last    *contract.Event // of kind error
	garbage string          // a line that is no event
	log     head
}

// start runs a driver inside the network.
func (r *run) start(b *build, p *contract.Parameters) (*child, error) {
	document, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	c := &child{role: p.Role, ready: make(chan struct{}), connected: make(chan struct{}), ended: make(chan struct{})}
	c.cmd = exec.Command(b.command[0], b.command[1:]...)
	c.cmd.Dir, c.cmd.Env = b.driver.Dir, environment(b.driver.Environment)
	var source *payload.Source
	if p.Role == contract.RoleClient && !b.probe {
		source = payload.NewSource(payload.NewKey([]byte(p.Transfer.ID), 0), p.Transfer.SizeBytes)
	}
	c.cmd.Stdin, c.cmd.Stderr = payload.Input(document, source), &c.log
	c.cmd.WaitDelay = r.o.Patience
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.StartIn(c.cmd, r.net.namespace()); err != nil {
		return nil, fmt.Errorf("start %s: %w", b.command[0], err)
	}
	go c.follow(out)
	return c, nil
}

// follow reads a child's output and waits for its end.
func (c *child) follow(out io.Reader) {
	defer close(c.ended)
	o := contract.NewOutput(out)
	var ready, connected sync.Once
	for {
		e, _, _, err := o.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.garbage = err.Error()
			}
			break
		}
		switch e.Event {
		case contract.KindReady:
			ready.Do(func() { close(c.ready) })
		case contract.KindConnected:
			connected.Do(func() { close(c.connected) })
		case contract.KindResult:
			c.results++
		case contract.KindError:
			c.last = e
		}
	}
	_, _ = io.Copy(io.Discard, out) // what follows garbage
	err := c.cmd.Wait()
	process.Forget(c.cmd.Process.Pid)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, syscall.EPIPE) {
		c.garbage = err.Error()
	}
	c.code = c.cmd.ProcessState.ExitCode()
	if s, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		c.signal = s.Signal()
	}
}

// await waits until the child has ended, or said something: it reports whether it
// did the latter, or the former where said is nil, within a time.
func (c *child) await(ctx context.Context, said <-chan struct{}, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-said:
		return true
	case <-c.ended:
		return said == nil
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

func (c *child) terminate() {
	c.told = true
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
}

func (c *child) kill() {
	c.killed = true
	_ = c.cmd.Process.Kill()
}

// crash says how an ended child crashed; empty if it did not.
func (c *child) crash() string {
	switch {
	case c.hung:
		return "it had not ended in time" + c.said()
	case c.signal != 0 && (c.signal != syscall.SIGTERM || !c.told) && !c.killed:
		return "signal " + c.signal.String() + c.said()
	case c.signal == 0 && c.code != contract.ExitOK && c.code != contract.ExitFailed && c.code != contract.ExitUnsupported:
		// A panic of Go is exit code 2, a report of its race detector and of ThreadSanitizer 66.
		return fmt.Sprintf("exit code %d%s", c.code, c.said())
	case c.garbage != "":
		return "its output: " + c.garbage
	}
	return ""
}

func (c *child) unsupported() string {
	if c.last != nil && c.last.Code == contract.CodeUnsupported {
		return c.last.Message
	}
	return ""
}

// said is the last error event and the log, for messages.
func (c *child) said() string {
	out := ""
	if c.last != nil {
		out = fmt.Sprintf("; %s (%s)", c.last.Code, c.last.Message)
	}
	if log := strings.TrimSpace(string(c.log)); log != "" {
		out += "\n" + log
	}
	return out
}

// head keeps the first part of what is written: a sanitizer's report begins with
// what matters.
type head []byte

const mostLog = 8 << 10

func (h *head) Write(b []byte) (int, error) {
	*h = append(*h, b[:min(len(b), mostLog-len(*h))]...)
	return len(b), nil
}

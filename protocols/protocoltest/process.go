package protocoltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"linktrial/internal/notify"
	"linktrial/internal/payload"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/starter"
)

// maxEvents bounds what one process may write before it counts as a flood.
const maxEvents = 200_000

// maxFaults bounds what is kept of a process that writes nothing but garbage.
const maxFaults = 20

// maxLog is how much of a process's standard error is kept, in bytes.
const maxLog = 8 << 10

// seen is an event and when its line arrived.
type seen struct {
	contract.Event
	at time.Time
}

// proc is one driver process.
type proc struct {
	name  string // for messages: "client", "server"
	role  contract.Role
	began time.Time

	process *starter.Process
	stdin   *os.File // this end of the pipe to its standard input

	mu      sync.Mutex
	changed notify.Notifier
	events  []seen
	handed  map[string]*payload.Arrived // payload, by transfer
	probe   bool                        // it carries probes
	block   int                         // bytes of payload of transfer that come next
	of      string
	faults  []string // breaches of the rules of output
	log     []byte   // end of standard error
	eof     bool
	rest    []byte // of standard output: a line that has not ended
	count   int    // lines
	overrun bool   // what follows is not read any more

	ended chan struct{} // closed when the process has ended and all its output is read
	// Valid once ended is closed.
	code   int // exit code, -1 for a signal
	signal syscall.Signal

	killed bool // by the suite: its end breaks no rule
	early  bool // told to stop before it was ready: a signal may end it
}

// start runs the driver with the given document on standard input.
func (s *suite) start(role contract.Role, document []byte) (*proc, error) {
	return s.startReading(role, s.input(role, document))
}

// startReading runs the driver with a given standard input; it reads a file itself.
func (s *suite) startReading(role contract.Role, stdin io.Reader) (*proc, error) {
	return s.startAt(role, role, stdin)
}

// startAt runs the driver at the node of a role that need not be its own.
func (s *suite) startAt(at, role contract.Role, stdin io.Reader) (*proc, error) {
	p := &proc{name: string(role), role: role, ended: make(chan struct{}), handed: map[string]*payload.Arrived{}, probe: s.probes()}
	agent, err := s.ends.of(at)
	if err != nil {
		return nil, err
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, err
	}
	defer pipes.closeTheirs()
	program := starter.Program{Command: s.command, Dir: s.target.Dir, Env: contract.Environment(os.LookupEnv),
		Root: s.target.Root, UID: s.target.UID, GID: s.target.GID, Reads: s.target.Reads, Capabilities: s.capabilities()}
	if program.Root == "" {
		program.Dir, _ = filepath.Abs(program.Dir) // resolve has done so
	}
	p.began = time.Now()
	in, given := stdin.(*os.File)
	if !given {
		in = pipes.inR
	}
	p.process, err = agent.Run(program, in, pipes.outW, pipes.errW, s.net.end(at))
	if err != nil {
		pipes.closeOurs()
		return nil, fmt.Errorf("start the driver: %w", err)
	}
	s.procs = append(s.procs, p)
	p.stdin = pipes.inW
	if given {
		stdin = nil // whoever has its other end feeds it
	}
	go p.feed(stdin)
	go p.follow(pipes.outR, pipes.errR, s.o.Patience)
	return p, nil
}

// pipes are those of a driver's standard files, with both ends.
type pipes struct{ inR, inW, outR, outW, errR, errW *os.File }

func newPipes() (p pipes, err error) {
	for _, ends := range []struct{ r, w **os.File }{{&p.inR, &p.inW}, {&p.outR, &p.outW}, {&p.errR, &p.errW}} {
		if *ends.r, *ends.w, err = os.Pipe(); err != nil {
			p.closeTheirs()
			p.closeOurs()
			return p, err
		}
	}
	return p, nil
}

func (p *pipes) closeTheirs() { closeFiles(p.inR, p.outW, p.errW) }
func (p *pipes) closeOurs()   { closeFiles(p.inW, p.outR, p.errR) }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // whoever reads it notices
		}
	}
}

// feed writes what the driver reads from standard input; nil: nothing.
func (p *proc) feed(stdin io.Reader) {
	defer closeFiles(p.stdin)
	if stdin != nil {
		_, _ = io.Copy(p.stdin, stdin) // until the driver takes no more
	}
}

// capabilities are those that the driver has: of an image that does not run as root none,
// for engines give them to root alone.
func (s *suite) capabilities() []string {
	if s.target.Root != "" && s.target.UID != 0 {
		return nil
	}
	return s.target.Manifest.Capabilities
}

// begin is start for parameters.
func (s *suite) begin(params *contract.Parameters) (*proc, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return s.start(params.Role, b)
}

// beginAt is begin at the node of a role that need not be the driver's own.
func (s *suite) beginAt(at contract.Role, params *contract.Parameters) (*proc, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return s.startAt(at, params.Role, s.input(params.Role, b))
}

// follow waits for the process and the end of its output, which a child that keeps it open
// delays by the patience at most.
func (p *proc) follow(stdout, stderr *os.File, patience time.Duration) {
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&lines{p: p}, stdout) }) // until nobody writes any more
	reading.Go(func() { _, _ = io.Copy((*logTail)(p), stderr) })
	<-p.process.Ended()
	read := make(chan struct{})
	go func() {
		reading.Wait()
		close(read)
	}()
	open := false
	select {
	case <-read:
	case <-time.After(patience):
		open = true
	}
	closeFiles(p.stdin, stdout, stderr)
	<-read
	status, lost := p.process.Status()
	p.process.Release()
	p.note(func() {
		p.eof = true
		switch {
		case lost != nil:
			p.faults = append(p.faults, "wait: "+lost.Error())
		case open:
			p.faults = append(p.faults, "its output is still open after it has ended")
		}
		p.code = status.ExitStatus()
		if status.Signaled() {
			p.signal = status.Signal()
		}
		if n := len(p.rest); n > 0 {
			p.faults = append(p.faults, fmt.Sprintf("the last line has no newline: %.60q", p.rest))
		}
	})
	close(p.ended)
}

// lines takes standard output apart.
type lines struct{ p *proc }

func (l *lines) Write(b []byte) (int, error) {
	at := time.Now()
	l.p.note(func() {
		p := l.p
		p.rest = append(p.rest, b...)
		for !p.overrun {
			if p.block > 0 {
				n := min(p.block, len(p.rest))
				p.take(p.of, p.rest[:n])
				if p.rest, p.block = p.rest[n:], p.block-n; p.block > 0 {
					return
				}
			}
			i := bytes.IndexByte(p.rest, '\n')
			switch {
			case i > contract.MaxLine || i < 0 && len(p.rest) > contract.MaxLine:
				p.faults, p.overrun = append(p.faults, contract.ErrLineTooLong.Error()), true
			case i < 0:
				return
			case p.count >= maxEvents:
				p.faults, p.overrun = append(p.faults, fmt.Sprintf("more than %d lines of output", maxEvents)), true
			default:
				p.line(p.rest[:i], at)
				p.rest = p.rest[i+1:]
			}
		}
		p.rest = nil
	})
	return len(b), nil
}

func (p *proc) line(b []byte, at time.Time) {
	e, err := contract.ParseEvent(b)
	if err == nil && e.Event == contract.KindPayload {
		p.block, p.of = e.Bytes, e.Transfer
		if p.role == contract.RoleServer {
			return
		}
		err = errors.New("payload of a driver that is no server")
	}
	p.count++
	if err == nil {
		p.events = append(p.events, seen{*e, at})
		err = p.counts(e)
	}
	if err != nil && len(p.faults) < maxFaults {
		p.faults = append(p.faults, fmt.Sprintf("line %d, %.80q: %v", p.count, b, err))
	}
}

// note changes the process's record and wakes who waits for it.
func (p *proc) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.changed.Notify()
}

type logTail proc

func (l *logTail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, b...)
	if len(l.log) > maxLog {
		l.log = append(l.log[:0], l.log[len(l.log)-maxLog:]...)
	}
	return len(b), nil
}

// tail is the last line of the log, for messages.
func (p *proc) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(p.log)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf("; its log ends with %.200q", last)
	}
	return ""
}

// find returns the first event that fits, if it has arrived.
func (p *proc) find(fits func(*seen) bool) *seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.events {
		if fits(&p.events[i]) {
			e := p.events[i]
			return &e
		}
	}
	return nil
}

// all returns every event so far that fits.
func (p *proc) all(fits func(*seen) bool) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []seen
	for i := range p.events {
		if fits(&p.events[i]) {
			out = append(out, p.events[i])
		}
	}
	return out
}

func kind(k contract.Kind) func(*seen) bool { return func(e *seen) bool { return e.Event.Event == k } }

func about(k contract.Kind, transfer string) func(*seen) bool {
	return func(e *seen) bool { return e.Event.Event == k && e.Transfer == transfer }
}

// await waits for the first event that fits; what names it in errors.
func (p *proc) await(ctx context.Context, within time.Duration, what string, fits func(*seen) bool) (*seen, error) {
	t := time.NewTimer(within)
	defer t.Stop()
	for {
		p.mu.Lock()
		changed, eof := p.changed.Changed(), p.eof
		p.mu.Unlock()
		if e := p.find(fits); e != nil {
			return e, nil
		}
		if eof {
			return nil, fmt.Errorf("the %s ended (%s) without %s%s%s", p.name, p.ending(), what, p.lastError(), p.tail())
		}
		select {
		case <-changed:
		case <-t.C:
			return nil, fmt.Errorf("the %s gave no %s within %s%s", p.name, what, within.Round(time.Millisecond), p.lastError())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// wait waits for the end of the process.
func (p *proc) wait(ctx context.Context, within time.Duration) error {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.ended:
		return nil
	case <-t.C:
		return fmt.Errorf("the %s has not ended within %s%s", p.name, within.Round(time.Millisecond), p.lastError())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ending says how an ended process ended.
func (p *proc) ending() string {
	if p.signal != 0 {
		return "signal " + p.signal.String()
	}
	return fmt.Sprintf("exit code %d", p.code)
}

func (p *proc) lastError() string {
	es := p.all(kind(contract.KindError))
	if len(es) == 0 {
		return ""
	}
	e := es[len(es)-1]
	return fmt.Sprintf("; it said %s: %s", e.Code, e.Message)
}

func (p *proc) terminate() { p.process.Signal(syscall.SIGTERM) }

func (p *proc) kill() {
	p.killed = true
	p.process.Signal(syscall.SIGKILL)
}

// cleanup ends what the check left running and takes note of broken rules.
func (s *suite) cleanup() {
	for _, p := range s.procs {
		select {
		case <-p.ended:
		default:
			p.kill()
			<-p.ended
		}
		for _, f := range p.faults {
			s.output = append(s.output, p.name+": "+f)
		}
		if f := p.strangeEvent(); f != "" {
			s.output = append(s.output, p.name+": "+f)
		}
		if f := p.exitFault(); f != "" {
			s.exits = append(s.exits, p.name+": "+f)
		}
	}
	s.strays()
	s.procs = nil
}

// strayGrace is how long a child may need to die with its parent.
const strayGrace = time.Second

// strays notes and ends processes that the drivers of a check left behind: in
// their process groups, or anywhere in the namespaces.
func (s *suite) strays() {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var groups []int
		for _, p := range s.procs {
			if process.GroupRuns(p.process.PID) {
				groups = append(groups, p.process.PID)
			}
		}
		inside := s.net.inhabitants()
		if len(groups)+len(inside) == 0 {
			return
		}
		if time.Since(begin) < strayGrace {
			continue
		}
		for _, g := range groups {
			s.children = append(s.children, fmt.Sprintf("the process group of driver %d still has members", g))
			_ = syscall.Kill(-g, syscall.SIGKILL)
		}
		for _, id := range inside {
			s.children = append(s.children, fmt.Sprintf("process %d still runs", id.PID))
			_ = syscall.Kill(id.PID, syscall.SIGKILL)
		}
		return
	}
}

// strangeEvent is an event that no relay has.
func (p *proc) strangeEvent() string {
	e := p.find(func(e *seen) bool {
		return e.Event.Event != contract.KindReady && e.Event.Event != contract.KindError || e.Transfer != ""
	})
	if p.role != contract.RoleRelay || e == nil {
		return ""
	}
	return fmt.Sprintf("a %s event of transfer %q, a relay reports ready and error of the driver as a whole alone", e.Event.Event, e.Transfer)
}

// exitFault holds an exit code against the events.
func (p *proc) exitFault() string {
	if p.killed || p.early && p.signal == syscall.SIGTERM {
		return ""
	}
	unsupported := p.find(func(e *seen) bool { return e.Event.Event == contract.KindError && e.Code == contract.CodeUnsupported })
	failed := p.find(kind(contract.KindError))
	switch {
	case p.signal != 0:
		return "ended by signal " + p.signal.String()
	case p.code == contract.ExitUnsupported && (unsupported == nil || unsupported.Message == ""):
		return "exit code 127 without an error event that says why"
	case unsupported != nil && p.code != contract.ExitUnsupported:
		return fmt.Sprintf("an unsupported event, but exit code %d", p.code)
	case p.code == contract.ExitFailed && failed == nil:
		return "exit code 1 without an error event"
	case p.code == contract.ExitOK && p.role == contract.RoleClient && p.find(kind(contract.KindResult)) == nil:
		return "exit code 0 without a result"
	case p.code == contract.ExitOK && p.role != contract.RoleServer && failed != nil:
		return "an error event, but exit code 0"
	case p.code != contract.ExitOK && p.code != contract.ExitFailed && p.code != contract.ExitUnsupported:
		return fmt.Sprintf("exit code %d, there are 0, 1 and 127", p.code)
	}
	return ""
}

// resolve finds the program of a manifest: relative to its folder where it has a slash.
func resolve(t Target) ([]string, error) {
	cmd := append([]string(nil), t.Manifest.Command...)
	if t.Root != "" {
		// Looked for where the driver will look.
		if !filepath.IsAbs(cmd[0]) {
			cmd[0] = filepath.Join(t.Dir, cmd[0])
		}
		if _, err := os.Lstat(filepath.Join(t.Root, cmd[0])); err != nil {
			return nil, fmt.Errorf("the manifest's command: %w", err)
		}
		return cmd, nil
	}
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return nil, err
	}
	if strings.Contains(cmd[0], "/") {
		if !filepath.IsAbs(cmd[0]) {
			cmd[0] = filepath.Join(dir, cmd[0])
		}
	}
	path, err := exec.LookPath(cmd[0])
	if err != nil {
		return nil, fmt.Errorf("the manifest's command: %w", err)
	}
	cmd[0] = path
	return cmd, nil
}

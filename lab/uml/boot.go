package uml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/driverfolder"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/scratch"
	"linktrial/lab/uml/guest"
)

// boot is one guest from its start to its end.
type boot struct {
	*runner
	cpu          int // of the host
	first, count int
	name         string

	console  *os.File // what the guest says, as it grows
	partial  []byte   // of a line
	lastRows []string // of the kernel's own, the last few

	sheet    int // that runs, counted from first; -1 before the first
	counter  counter
	journals [][]*held // of the sheets so far, by node, as [radio.Network] has them
	began    time.Time
	begunAt  time.Duration // virtual
	begun    time.Time
	virtual  time.Duration
	done     bool
	failed   string
	progress time.Time     // when the guest last showed any
	still    time.Duration // processor time that the guest had used when it was first noticed to show none; 0: it shows some
}

// guestNice is the nice value of guests. A guest computes without a pause and its time is
// virtual, so the machine stays usable, and a lab in real time beside it undisturbed.
const guestNice = 5

const lookEvery = 200 * time.Millisecond

// run boots the guest and follows it. It returns when the guest and all its
// processes on the host have ended.
func (b *boot) run(ctx context.Context) (err error) {
	links, err := b.links()
	if err != nil {
		return err
	}
	defer func() { _ = links.Remove() }() // what stays, the next guest's start removes
	dir := links.Path
	path := filepath.Join(b.cfg.Dir, b.name+".console")
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("console of %s: %w", b.name, err)
	}
	defer out.Close()
	if b.console, err = os.Open(path); err != nil {
		return fmt.Errorf("console of %s: %w", b.name, err)
	}
	defer b.console.Close()

	cmd := exec.Command(b.cfg.Kernel.Path, b.arguments(dir)...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = out, out
	b.began = time.Now()
	b.progress = b.began
	if err := process.StartBackground(cmd, guestNice); err != nil {
		return fmt.Errorf("boot %s: %w", b.name, err)
	}
	b.pin(cmd.Process.Pid)
	counted, err := b.openCounters(cmd.Process.Pid)
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	if err != nil {
		killGroup(cmd.Process.Pid)
	}
	exit, cause := b.follow(ctx, cmd.Process.Pid, gone)
	// The kernel's own children on the host are in its group.
	killGroup(cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := errors.Join(b.look(), b.account(counted)); err != nil {
		return err
	}
	b.checkJournals()
	switch {
	case cause != nil:
		return cause
	case b.failed != "":
		return fmt.Errorf("guest: %s", b.failed)
	case !b.done:
		if exit == nil {
			exit = errors.New("it ended by itself")
		}
		return fmt.Errorf("%w (%w); its console ends with: %s", ErrDied, exit, strings.Join(b.lastRows, " | "))
	}
	return nil
}

// pin keeps a guest on one processor. The kernel and a guest's programs are
// different processes of the host that take turns at every system call; across
// processors each turn costs about twice as much.
func (b *boot) pin(pid int) {
	var set unix.CPUSet
	set.Set(b.cpu)
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		b.cfg.Logger.Info("guest runs on any processor, which is slower", "guest", b.name, "error", err)
	}
}

// scratchPrefix begins the names of folders that guests get as their first.
const scratchPrefix = "linktrial-guest-"

// links makes the folder that is passed to the guest: its name
// has no blanks, whatever the folders are called.
func (b *boot) links() (*scratch.Folder, error) {
	f, err := scratch.New(scratchPrefix)
	if err != nil {
		return nil, err
	}
	links := map[string]string{guest.LinkShare: b.cfg.Dir, guest.LinkProgram: b.cfg.Executable}
	for i, folder := range driverfolder.Split(b.cfg.Drivers) {
		links[guest.LinkDrivers(i)] = folder
	}
	for name, target := range links {
		if err == nil {
			err = os.Symlink(target, filepath.Join(f.Path, name))
		}
	}
	if err == nil && strings.ContainsAny(f.Path, " \t\n\"") {
		err = fmt.Errorf("the folder for temporary files, %q, has a blank in its name, which a kernel's command line cannot hold", filepath.Dir(f.Path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

func (b *boot) arguments(dir string) []string {
	return append(append(kernelArguments(dir, b.cfg.MemoryBytes, b.cfg.Seed+uint64(b.first)), collection...),
		"init="+filepath.Join(dir, guest.LinkProgram), "--", "lab", "guest", dir, b.name+".json")
}

// collection is for Go's collector in the agents of a guest, as arguments that
// the kernel does not know and hands to its first process as environment: memory
// is collected when an agent has allocated so much, which hardly any does, and
// not at moments that depend on how much the program allocates. Drivers do not
// get it.
var collection = []string{"GOGC=off", "GOMEMLIMIT=64MiB"}

// kernelArguments returns those of every guest.
func kernelArguments(dir string, memory int64, seed uint64) []string {
	return []string{
		fmt.Sprintf("mem=%dM", memory>>20), "root=none", "rootfstype=hostfs", "rootflags=/", "ro",
		"console=tty0", "con=null", "con0=null,fd:1", "quiet", "panic=-1",
		"time-travel=inf-cpu", fmt.Sprintf("time-travel-start=%d", Epoch.UnixNano()),
		fmt.Sprintf("random-seed=%d", seed), "seccomp=auto",
		"uml_dir=" + dir + "/", "umid=guest",
	}
}

// follow watches the guest until it has ended, and ends it when it makes no
// progress or ctx ends; cause then is which of the two.
func (b *boot) follow(ctx context.Context, pid int, gone <-chan error) (exit, cause error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case exit = <-gone:
			return exit, cause
		case <-ctx.Done():
			cause = context.Cause(ctx)
		case <-tick.C:
			if err := b.look(); err != nil {
				cause = err
			} else if b.hung(pid) {
				cause = fmt.Errorf("%w (after %s at %s of its own time)", ErrHung, b.cfg.Watchdog, b.virtual)
			}
		}
		if cause != nil {
			killGroup(pid)
			return <-gone, cause
		}
	}
}

// patience is how many times the watchdog's time a guest may show no progress where
// others have the processors.
const patience = 20

// hung reports whether the guest has shown no progress for the watchdog's time, of which
// only that counts in which it had a processor: guests give way to everything else.
func (b *boot) hung(pid int) bool {
	without := time.Since(b.progress)
	if without < b.cfg.Watchdog/2 {
		b.still = 0
		return false
	}
	used, err := process.GroupTime(pid)
	switch {
	case err != nil || without > patience*b.cfg.Watchdog:
		return without > b.cfg.Watchdog
	case b.still == 0:
		b.still = used
	}
	return used-b.still >= b.cfg.Watchdog/2
}

// look reads what is new on the console and in the journal.
func (b *boot) look() error {
	before := b.virtual
	buf := make([]byte, 32<<10)
	for {
		n, err := b.console.Read(buf)
		b.partial = append(b.partial, buf[:n]...)
		for {
			line, rest, ok := bytes.Cut(b.partial, []byte{'\n'})
			if !ok {
				break
			}
			b.partial = rest
			b.take(string(line))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("console of %s: %w", b.name, err)
		}
	}
	grown, err := b.readJournals()
	if err != nil {
		return err
	}
	if grown || b.virtual != before {
		b.progress = time.Now()
	}
	b.report(b.virtual - before)
	return nil
}

// holdAll begins to follow the journals of a sheet.
func (b *boot) holdAll(sheet int) (all []*held) {
	for _, n := range b.cfg.Sheets[sheet].Network.Nodes {
		all = append(all, hold(b.journal(sheet, n.Role)))
	}
	return all
}

// readJournals reads what has been added to the journals of the sheet that runs, and
// reports whether the client's has grown.
func (b *boot) readJournals() (grown bool, err error) {
	if len(b.journals) == 0 {
		return false, nil
	}
	nodes := b.cfg.Sheets[b.first+b.sheet].Network.Nodes
	for i, h := range b.journals[len(b.journals)-1] {
		take, at := func([]byte) {}, h.at
		if nodes[i].Role == radio.RoleClient {
			take = b.counter.take
		}
		if err := h.read(take); err != nil {
			return false, err
		}
		grown = grown || nodes[i].Role == radio.RoleClient && h.at != at
	}
	return grown, nil
}

// checkJournals fails the sheets of which a journal is not what has been seen of it.
func (b *boot) checkJournals() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, all := range b.journals {
		for _, h := range all {
			if err := h.check(); err != nil {
				r := &b.results[b.first+i]
				r.Err = errors.Join(r.Err, err)
			}
		}
	}
}

// report calls Progress with how far all guests are.
func (b *boot) report(passed time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runner.virtual += passed
	if b.sheet >= 0 && b.sheet < b.count {
		r := &b.results[b.first+b.sheet]
		r.Ended, r.notNeeded, r.attempts = b.counter.ended, b.counter.notNeeded, b.counter.attempts
	}
	if b.cfg.Progress == nil {
		return
	}
	p := Progress{Sheets: len(b.results), Virtual: b.runner.virtual, Wall: time.Since(b.runner.began)}
	for i := range b.results {
		p.Trials += b.results[i].Trials
		p.TrialsEnded += b.results[i].Ended
		p.TrialsNotNeeded += b.results[i].notNeeded
		if b.results[i].ended() {
			p.SheetsEnded++
		} else {
			p.Attempts = max(p.Attempts, b.results[i].attempts)
		}
	}
	b.cfg.Progress(p)
}

// take reads one line of the console.
func (b *boot) take(text string) {
	l, ok := guest.ParseLine(text)
	if !ok {
		// A panic's stack has bare addresses, which are of no use.
		if text = strings.TrimSpace(text); len(b.lastRows) > 0 && strings.Contains(b.lastRows[len(b.lastRows)-1], "panic") {
			return
		}
		if text != "" {
			b.lastRows = append(b.lastRows, text)
			b.lastRows = b.lastRows[max(0, len(b.lastRows)-5):]
		}
		return
	}
	b.virtual = max(b.virtual, l.At)
	switch l.Kind {
	case guest.LineBegun:
		if l.Sheet < b.count {
			b.sheet, b.begunAt, b.begun = l.Sheet, l.At, time.Now()
			b.counter, b.journals = counter{}, append(b.journals, b.holdAll(b.first+l.Sheet))
		}
	case guest.LineEnded:
		if l.Sheet == b.sheet {
			b.endSheet(l)
		}
	case guest.LineCosts:
		if costs, err := guest.ParseCosts(l.Text); err == nil && l.Sheet == b.sheet {
			b.mu.Lock()
			b.results[b.first+b.sheet].Switches = costs
			b.mu.Unlock()
		}
	case guest.LineFault:
		if f, err := faultlog.Parse([]byte(l.Text)); err == nil && l.Sheet < b.count && b.cfg.Fault != nil {
			b.mu.Lock()
			b.cfg.Fault(b.results[b.first+l.Sheet].Run, f)
			b.mu.Unlock()
		}
	case guest.LineDone:
		b.done = true
	case guest.LineFailed:
		b.failed = l.Text
	}
}

func (b *boot) endSheet(l guest.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.results[b.first+b.sheet]
	r.Virtual, r.Wall = l.At-b.begunAt, max(time.Since(b.begun), 1)
	r.ToBegin = b.begun.Sub(b.began)
	if l.Text != "" {
		r.Err = errors.New("guest: " + l.Text)
	}
}

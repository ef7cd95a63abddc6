package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/process"
)

// Config of one boot.
type Config struct {
	Kernel  *Kernel
	Modules []string // by name; what they depend on comes along
	Later   []string // modules that are there, and that the program inside loads
	// Files of the machine. /init is its first process, which must write the
	// [ExitLine] to [RecordDevice] and switch the machine off.
	Files []File
	// Dir gets the console and the records, and the archive while the machine runs.
	Dir string
	// Limit is how long the machine may take on the host's clock. Silence is how
	// long it may compute, in processor time of the host, without saying anything;
	// on the host's clock it may take [idleFactor] times as long.
	Limit, Silence time.Duration
	MemoryBytes    int64
}

// Result of a machine that came to its end.
type Result struct {
	Records []Record
	Exit    int    // of the program inside
	Release string // of the kernel that ran
	Console string // file
	Elapsed time.Duration
	// Computed is the host's processor time.
	Computed time.Duration
}

// ErrNoEmulator reports that qemu is not installed.
var ErrNoEmulator = errors.New("qemu-system-x86_64 is not installed: scripts/install-deps qemu")

const emulator = "qemu-system-x86_64"

// idleFactor is how much longer than its processor time a silence may be: a busy
// host gives a machine little of it.
const idleFactor = 5

// Boot boots the machine and returns when it has ended. The error is that of a
// machine that did not come to its end: it panicked, hung, or ended without
// the exit line; it has the end of the console. Records that came before are in
// the result all the same.
func Boot(ctx context.Context, cfg Config) (*Result, error) {
	path, err := exec.LookPath(emulator)
	if err != nil {
		return nil, ErrNoEmulator
	}
	modules, err := readModules(cfg.Kernel.Modules)
	if err != nil {
		return nil, err
	}
	loaded, err := modules.files(cfg.Modules, cfg.Later)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", cfg.Kernel.Package, err)
	}
	initrd := filepath.Join(cfg.Dir, "archive")
	defer os.RemoveAll(initrd)
	if err := makeArchive(initrd, append(loaded, cfg.Files...)); err != nil {
		return nil, err
	}
	b := &boot{cfg: cfg, console: filepath.Join(cfg.Dir, "console"), records: filepath.Join(cfg.Dir, "records")}
	return b.run(ctx, path, initrd)
}

func makeArchive(file string, files []File) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("file system of the machine: %w", err)
	}
	return errors.Join(writeArchive(f, distinct(files)), f.Close())
}

type boot struct {
	cfg              Config
	console, records string
}

// arguments of the emulator. A nanosecond for each instruction (-icount shift=0)
// needs one processor; the clock does not wait for that of the host (sleep=off).
func (b *boot) arguments(initrd string) []string {
	return []string{
		"-M", "pc", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "1",
		"-m", strconv.FormatInt(b.cfg.MemoryBytes>>20, 10),
		"-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm",
		"-nodefaults", "-no-reboot", "-display", "none", "-net", "none",
		"-serial", "file:" + b.console, "-serial", "file:" + b.records,
		"-kernel", b.cfg.Kernel.Image, "-initrd", initrd,
		// A panic, an oops as well, restarts the machine at once, which ends it.
		"-append", "console=ttyS0 panic=-1 oops=panic loglevel=6 mitigations=off random.trust_cpu=on",
	}
}

func (b *boot) run(ctx context.Context, path, initrd string) (*Result, error) {
	for _, f := range []string{b.console, b.records} {
		if err := os.WriteFile(f, nil, 0o644); err != nil {
			return nil, fmt.Errorf("boot: %w", err)
		}
	}
	complaint, err := os.Create(filepath.Join(b.cfg.Dir, "emulator"))
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	defer complaint.Close()
	cmd := exec.Command(path, b.arguments(initrd)...)
	cmd.Stdout, cmd.Stderr = complaint, complaint
	began := time.Now()
	if err := process.Start(cmd); err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	cause := b.follow(ctx, cmd)
	r := &Result{Console: b.console, Elapsed: time.Since(began), Computed: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	said, err := os.ReadFile(b.records)
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	records, exit, err := parseRecords(said)
	r.Records = records
	if cause == nil {
		cause = err
	}
	if exit != nil && cause == nil {
		r.Exit, r.Release = *exit.Exit, exit.Kernel
		return r, nil
	}
	if cause == nil {
		cause = errors.New("the machine ended without a result")
	}
	return r, b.died(cause)
}

// died adds to the cause what was said last.
func (b *boot) died(cause error) error {
	console, err := os.ReadFile(b.console)
	if err != nil {
		return errors.Join(cause, err)
	}
	if end := consoleEnd(console); end != "" {
		return fmt.Errorf("kernel %s: %w; its console (%s) ends with:\n%s", b.cfg.Kernel.Package, cause, b.console, end)
	}
	complaint, err := os.ReadFile(filepath.Join(b.cfg.Dir, "emulator"))
	if err != nil {
		return errors.Join(cause, err)
	}
	cause = fmt.Errorf("kernel %s: %w; its console is empty", b.cfg.Kernel.Package, cause)
	if said := lastLines(complaint, 3); said != "" {
		cause = fmt.Errorf("%w, and %s said: %s", cause, emulator, said)
	}
	return cause
}

const (
	consoleLines = 15
	lookEvery    = 200 * time.Millisecond
)

// consoleEnd returns the last lines of a console, or those from the kernel's
// panic on, where it has panicked.
func consoleEnd(console []byte) string {
	var lines []string
	panicked := -1
	for l := range strings.Lines(string(console)) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if panicked < 0 && strings.Contains(l, "Kernel panic") {
			panicked = len(lines)
		}
		lines = append(lines, "    "+l)
	}
	from := max(0, len(lines)-consoleLines)
	if panicked >= 0 {
		// The lines before it say what the kernel met.
		from = max(0, panicked-3)
	}
	return strings.Join(lines[from:min(len(lines), from+consoleLines)], "\n")
}

// follow waits for the end of the machine, and ends one that takes too long, says
// nothing for too long, or is not wanted any more; the error is the reason.
func (b *boot) follow(ctx context.Context, cmd *exec.Cmd) error {
	gone := make(chan struct{})
	var exit error // valid once gone is closed
	go func() {
		exit = cmd.Wait()
		close(gone)
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	began, said, last, computed := time.Now(), int64(0), time.Now(), time.Duration(0)
	for {
		var cause error
		select {
		case <-gone:
			if exit != nil {
				return fmt.Errorf("%s: %w", emulator, exit)
			}
			return nil
		case <-ctx.Done():
			cause = context.Cause(ctx)
		case <-tick.C:
			now := processorTime(cmd.Process.Pid)
			if n := b.written(); n != said {
				said, last, computed = n, time.Now(), now
			}
			switch {
			case time.Since(began) > b.cfg.Limit:
				cause = fmt.Errorf("the machine has not ended within %s", b.cfg.Limit)
			case now-computed > b.cfg.Silence, time.Since(last) > idleFactor*b.cfg.Silence:
				cause = fmt.Errorf("the machine has said nothing for %s, of which it computed %s", time.Since(last).Round(time.Second), (now - computed).Round(time.Second))
			}
		}
		if cause != nil {
			_ = cmd.Process.Kill()
			<-gone
			return cause
		}
	}
}

// processorTime is what a process has used so far (proc(5), stat fields 14 and 15);
// 0 where it has ended.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field, a name in parentheses, may hold blanks.
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// written is how much the machine has said so far.
func (b *boot) written() (n int64) {
	for _, f := range []string{b.console, b.records} {
		if st, err := os.Stat(f); err == nil {
			n += st.Size()
		}
	}
	return n
}

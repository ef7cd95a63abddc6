package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/executor"
	"linktrial/internal/atomicfile"
	"linktrial/internal/confine"
	"linktrial/internal/inputfile"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// strayGrace is how long output is still read after a driver has exited: a
// child that left its process group may hold the pipes open.
const strayGrace = 500 * time.Millisecond

// driver is one running driver process.
type driver struct {
	cmd      *exec.Cmd
	out, err *os.File         // our ends of the pipes
	pidFile  chan string      // one: the path of the pid file, empty for none
	confined *confine.Process // nil: it runs with all that this process may
	held     bool             // to the radios
	logs     string           // the folder that it writes logs to, where that is of its own
	keep     string           // where these are kept
	logger   *slog.Logger

	stops executor.Stops

	mu     sync.Mutex
	gone   bool
	exit   executor.Exit
	log    *Log
	done   chan struct{}
	logged chan struct{}
}

// adopt makes what drivers leave behind children of this process.
var adopt = sync.OnceValue(process.Adopt)

// Start implements [executor.Runner]. The driver runs in its own process
// group, in its manifest's folder, and dies with this process.
func (r *Runner) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := r.manifest(protocol)
	if err != nil {
		return nil, err
	}
	if !m.Plays(p.Role) {
		return nil, fmt.Errorf("protocol %s: %w with the role %s: its manifest does not have it", protocol, executor.ErrNoDriver, p.Role)
	}
	if f, lacks := m.Lacks(p); lacks {
		return nil, fmt.Errorf("protocol %s: %w that can do what the flow asks: its manifest has no feature %s", protocol, executor.ErrNoDriver, f)
	}
	path, dir, err := r.program(m)
	if err != nil {
		return nil, fmt.Errorf("protocol %s: %w", protocol, err)
	}
	if err := adopt(); err != nil {
		return nil, fmt.Errorf("protocol %s: %w", protocol, err)
	}
	d, err := r.launch(m, path, dir, p, payload)
	if err != nil {
		return nil, fmt.Errorf("protocol %s: %w", protocol, err)
	}
	d.writePIDFile(r)
	go d.readLog()
	go d.reap()
	return d, nil
}

// launch starts a driver's program with pipes to it.
func (r *Runner) launch(m *contract.Manifest, path, dir string, p *contract.Parameters, payload io.Reader) (*driver, error) {
	d := &driver{pidFile: make(chan string, 1), done: make(chan struct{}), logged: make(chan struct{}), logger: r.cfg.Logger}
	d.log = NewLog(d.Kill)
	var outW, errW *os.File
	var err error
	if d.out, outW, err = os.Pipe(); err != nil {
		return nil, err
	}
	defer outW.Close()
	if p.Role == contract.RoleServer {
		widen(outW)
	}
	if d.err, errW, err = os.Pipe(); err != nil {
		d.out.Close()
		return nil, err
	}
	defer errW.Close()
	d.cmd = exec.Command(path, m.Command[1:]...)
	d.cmd.Dir = dir
	d.cmd.Env = contract.Environment(os.LookupEnv)
	d.cmd.Stdout, d.cmd.Stderr = outW, errW
	d.cmd.WaitDelay = time.Second // for a driver that does not read its stdin
	if err = r.start(d, m, p, payload); err != nil {
		d.out.Close()
		d.err.Close()
		return nil, startError(err)
	}
	return d, nil
}

// start starts a driver's process and hands it its parameters, and the payload after them.
func (r *Runner) start(d *driver, m *contract.Manifest, p *contract.Parameters, payload io.Reader) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if payload != nil {
		widen(out)
	}
	d.cmd.Stdin = in
	given := *p
	if r.cfg.Confined {
		err = r.startConfined(d, m, &given)
	} else {
		err = process.Start(d.cmd)
	}
	if err != nil {
		out.Close()
		return err
	}
	go func() {
		defer out.Close()
		_ = Give(out, &given, payload) // the executor notices a driver that takes nothing
	}()
	return nil
}

// pipeSize is how much payload a pipe holds, in bytes: with the kernel's 64 KiB the two
// processes change at each block.
const pipeSize = 256 << 10

// widen enlarges a pipe where the kernel allows it.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
}

// Give writes a driver's parameters and then the payload (nil: none), until it ends or
// the driver takes no more.
func Give(to io.Writer, p *contract.Parameters, payload io.Reader) error {
	doc, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	doc = append(doc, '\n')
	if payload == nil {
		_, err = to.Write(doc)
		return err
	}
	first := append(doc, make([]byte, max(0, firstWrite-len(doc)))...)
	n, err := io.ReadFull(payload, first[len(doc):])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if _, err := to.Write(first[:len(doc)+n]); err != nil {
		return err
	}
	_, err = io.Copy(to, payload)
	return err
}

// firstWrite is how much is written at once with the parameters, in bytes, as much as any
// pipe holds: on a busy machine the driver would be connected, and its clock would run,
// before this process gets to write the payload.
const firstWrite = 64 << 10

// startError wraps [executor.ErrBrokenDriver] where a process could not be started
// because of the driver's program: it is not there, or cannot be executed.
func startError(err error) error {
	var path *fs.PathError // of what the kernel refused, not of a folder that was to be made
	if !errors.As(err, &path) || path.Op != "fork/exec" && path.Op != "chdir" {
		return err
	}
	for _, own := range []error{syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ELIBBAD} {
		if errors.Is(path.Err, own) {
			return fmt.Errorf("%w: %w", executor.ErrBrokenDriver, err)
		}
	}
	return err
}

func (d *driver) Output() io.ReadCloser  { return d.out }
func (d *driver) Done() <-chan struct{}  { return d.done }
func (d *driver) Stops() *executor.Stops { return &d.stops }
func (d *driver) Terminate()             { d.signal(syscall.SIGTERM) }
func (d *driver) Kill()                  { d.signal(syscall.SIGKILL) }

func (d *driver) Exit() executor.Exit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exit
}

func (d *driver) Log() string { return d.log.String() }

// signal reaches the whole process group. It is never sent once the leader
// has been reaped, because the kernel may then have given its number away.
func (d *driver) signal(s syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.gone {
		_ = syscall.Kill(-d.cmd.Process.Pid, s) // fails only where it has ended
	}
}

// reap waits for the driver, ends what it left in its group, and closes done.
func (d *driver) reap() {
	pid := d.cmd.Process.Pid
	d.awaitEnd(pid)
	left := process.EndLeft(pid)
	d.mu.Lock()
	_ = syscall.Kill(-pid, syscall.SIGKILL) // fails where no process is left
	d.gone = true
	d.mu.Unlock()
	d.cmd.Wait() // the outcome is in ProcessState
	process.Forget(pid)
	deadline := time.Now().Add(strayGrace)
	_ = d.out.SetReadDeadline(deadline) // the reader may have closed it
	_ = d.err.SetReadDeadline(deadline)
	<-d.logged
	d.err.Close()
	d.keepLogs()
	if path := <-d.pidFile; path != "" {
		_ = os.Remove(path) // a file that stays names a process that has ended
	}
	d.mu.Lock()
	d.exit = executor.Exit{Code: d.cmd.ProcessState.ExitCode(), Flooded: d.log.Flooded(), Left: nameSome(left)}
	if ws, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		d.exit.Signal = ws.Signal().String()
	}
	d.mu.Unlock()
	close(d.done)
	d.confined.Remove() // nobody waits for it
}

// Values of si_code of SIGCHLD (sigaction(2)).
const (
	childStopped   = 5 // CLD_STOPPED
	childContinued = 6 // CLD_CONTINUED
)

// awaitEnd waits until a child has ended, and notes when it is stopped and goes on. A
// child that has ended is not waited for: it keeps its number until its group is ended.
func (d *driver) awaitEnd(pid int) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return
		case info.Code == childStopped:
			d.stops.Set(true)
			_ = unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOHANG, nil) // taken, it is not reported again
		case info.Code == childContinued:
			d.stops.Set(false)
			_ = unix.Waitid(unix.P_PID, pid, nil, unix.WCONTINUED|unix.WNOHANG, nil)
		default:
			return
		}
	}
}

// mostNamed is how many processes that were left behind are named.
const mostNamed = 5

func nameSome(left []string) string {
	text := strings.Join(left[:min(len(left), mostNamed)], ", ")
	if n := len(left) - mostNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// readLog reads standard error to its end; what a flood goes on with is not read.
func (d *driver) readLog() {
	defer close(d.logged)
	b := make([]byte, 32<<10)
	for !d.log.Flooded() {
		n, err := d.err.Read(b)
		_, _ = d.log.Write(b[:n])
		if err != nil {
			return
		}
	}
}

// pidRecord is what a pid file has of a process.
type pidRecord struct {
	process.Identity
	Command []string `json:"command"`
	Temp    string   `json:"temp,omitempty"` // its temporary folder, to be removed with it
}

// maxPIDRecord bounds a pid file, in bytes: a driver's command line is short.
const maxPIDRecord = 64 << 10

// parsePIDRecord decodes a pid file. Its process is one that can be a driver: 0, 1 and
// negative numbers are other processes, or all, to kill(2).
func parsePIDRecord(b []byte) (pidRecord, error) {
	var l pidRecord
	if err := json.Unmarshal(b, &l); err != nil {
		return pidRecord{}, err
	}
	if l.PID <= 1 {
		return pidRecord{}, fmt.Errorf("pid %d, expected one above 1", l.PID)
	}
	return l, nil
}

// writePIDFile writes the pid file. Without it the driver still dies with this
// process; the file is for the case that the kernel could not do that. It does not wait
// for the disk: the driver has its parameters, and its events are to be read when they come.
func (d *driver) writePIDFile(r *Runner) {
	if r.cfg.PIDDir == "" {
		d.pidFile <- ""
		return
	}
	id, err := process.Identify(d.cmd.Process.Pid)
	if err != nil { // it has ended already
		d.pidFile <- ""
		return
	}
	record := pidRecord{Identity: id, Command: d.cmd.Args}
	if d.confined != nil {
		record.Temp = d.confined.Temp
	}
	go func() {
		path := filepath.Join(r.cfg.PIDDir, strconv.Itoa(id.PID)+".json")
		b, err := json.Marshal(record)
		if err == nil {
			err = os.WriteFile(path, b, 0o644)
		}
		if err != nil {
			r.cfg.Logger.Warn("pid file of a driver could not be written", "error", err)
			_ = os.Remove(path) // half of it
			path = ""
		}
		d.pidFile <- path
	}()
}

// Sweep ends the drivers that an earlier agent with the same PIDDir left
// running, and removes their pid files. A process is ended only when its start
// time is the recorded one.
func (r *Runner) Sweep(ctx context.Context) error {
	if r.cfg.PIDDir == "" {
		return nil
	}
	if err := os.MkdirAll(r.cfg.PIDDir, 0o755); err != nil {
		return fmt.Errorf("folder of pid files: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(r.cfg.PIDDir, "*.json"))
	if err != nil {
		return fmt.Errorf("folder of pid files: %w", err)
	}
	for _, file := range files {
		b, err := inputfile.Read(file, maxPIDRecord)
		if err != nil {
			to, aside := atomicfile.SetAside(file)
			if aside != nil {
				return fmt.Errorf("pid file: %w", aside)
			}
			r.cfg.Logger.Error("pid file cannot be read and is set aside; a driver of an earlier agent may still run", "file", file, "now", to, "error", err)
			continue
		}
		// A file that a crash cut short names no process.
		l, err := parsePIDRecord(b)
		if err == nil && l.Alive() {
			r.cfg.Logger.Warn("driver left by an earlier agent is ended", "pid", l.PID, "command", strings.Join(l.Command, " "))
			_ = syscall.Kill(-l.PID, syscall.SIGKILL) // its group; the process itself is ended below
			if err := l.End(ctx, 0); err != nil {
				return err
			}
		}
		if err == nil && l.Temp != "" {
			confine.RemoveTemp(l.Temp)
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("pid file: %w", err)
		}
	}
	return nil
}

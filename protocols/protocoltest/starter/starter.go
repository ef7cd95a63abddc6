package starter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

// Agent is what starts the drivers of one end.
type Starter struct {
	cmd    *exec.Cmd
	conn   *net.UnixConn
	served sync.WaitGroup

	mu      sync.Mutex
	last    int
	started map[int]chan begun
	running map[int]*Process
	err     error // why nothing can be started any more
}

// begun is what became of a request.
type begun struct {
	process *Process
	err     error
}

// Start starts a starter with a command line: args, of which the first is the program's
// name.
func Start(args []string) (*Starter, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("starter of drivers: %w", err)
	}
	own, theirs := os.NewFile(uintptr(pair[0]), "starter"), os.NewFile(uintptr(pair[1]), "suite")
	defer closeAll([]*os.File{own, theirs})
	conn, err := net.FileConn(own)
	if err != nil {
		return nil, fmt.Errorf("starter of drivers: %w", err)
	}
	a := &Starter{conn: conn.(*net.UnixConn), started: map[int]chan begun{}, running: map[int]*Process{}}
	self, err := os.Executable()
	if err != nil {
		_ = a.conn.Close() // nothing was written
		return nil, fmt.Errorf("starter of drivers: %w", err)
	}
	begin := func(flags uintptr) error {
		a.cmd = &exec.Cmd{Path: self, Args: args, Env: append(os.Environ(), variable+"=1"), Dir: "/", ExtraFiles: []*os.File{theirs}, Stderr: os.Stderr}
		a.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		return process.Start(a.cmd)
	}
	if os.Geteuid() == 0 {
		err = begin(syscall.CLONE_NEWPID | syscall.CLONE_NEWNS)
	}
	if os.Geteuid() != 0 || errors.Is(err, syscall.EPERM) { // as root of a container
		err = begin(0)
	}
	if err != nil {
		_ = a.conn.Close() // nothing was written
		return nil, fmt.Errorf("starter of drivers: %w", err)
	}
	a.served.Go(a.read)
	return a, nil
}

// PID is that of the starter.
func (a *Starter) PID() int { return a.cmd.Process.Pid }

// Close ends the starter, and with it every program that it has started.
func (a *Starter) Close() {
	_ = a.conn.Close() // nothing is left to be said
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait() // it was killed
	process.Forget(a.cmd.Process.Pid)
	a.served.Wait()
}

// Program is what is started.
type Program struct {
	Command []string `json:"command"` // the first is its path
	Dir     string   `json:"dir"`
	Env     []string `json:"env"`
	// Root is the root file system that it runs in, as a user; empty: the machine's, with
	// the confinement that drivers have.
	Root         string   `json:"root,omitempty"`
	UID          uint32   `json:"uid,omitempty"`
	GID          uint32   `json:"gid,omitempty"`
	Reads        []string `json:"reads,omitempty"` // files and folders beyond those that every driver reads
	Capabilities []string `json:"capabilities,omitempty"`
}

// Process is a program that was started.
type Process struct {
	PID    int // as this process sees it
	ended  chan struct{}
	status syscall.WaitStatus
	lost   error // the starter ended before it

	mu     sync.Mutex
	handle *os.File // pidfd; nil: it was given up
}

// Run starts a program with its standard files, in the network namespace whose file is
// given; nil: this process's own. The files can be closed then.
func (a *Starter) Run(p Program, stdin, stdout, stderr, netns *os.File) (*Process, error) {
	done := make(chan begun, 1)
	a.mu.Lock()
	a.last++
	id := a.last
	a.started[id] = done
	err := a.err
	a.mu.Unlock()
	files := []*os.File{stdin, stdout, stderr}
	if netns != nil {
		files = append(files, netns)
	}
	if err == nil {
		err = send(a.conn, request{ID: id, Program: p}, files...)
	}
	if err != nil {
		return nil, fmt.Errorf("starter of drivers: %w", err)
	}
	b := <-done
	return b.process, b.err
}

// read takes what the starter says until it has ended.
func (a *Starter) read() {
	var err error
	for err == nil {
		var r reply
		var files []*os.File
		if files, err = receive(a.conn, &r); err == nil {
			a.take(&r, files)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = fmt.Errorf("it has ended: %w", err)
	for _, done := range a.started {
		done <- begun{err: fmt.Errorf("starter of drivers: %w", a.err)}
	}
	for _, p := range a.running {
		p.end(0, a.err)
	}
	a.started, a.running = map[int]chan begun{}, map[int]*Process{}
}

func (a *Starter) take(r *reply, files []*os.File) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Ended {
		closeAll(files)
		if p := a.running[r.ID]; p != nil {
			p.end(syscall.WaitStatus(r.Status), nil)
		}
		delete(a.running, r.ID)
		return
	}
	done := a.started[r.ID]
	delete(a.started, r.ID)
	if done == nil {
		closeAll(files)
		return
	}
	if r.Error != "" || len(files) != 1 {
		closeAll(files)
		done <- begun{err: errors.New(r.Error)}
		return
	}
	pid, err := pidOf(files[0])
	if err != nil {
		closeAll(files)
		done <- begun{err: err}
		return
	}
	p := &Process{PID: pid, handle: files[0], ended: make(chan struct{})}
	a.running[r.ID] = p
	done <- begun{process: p}
}

// pidOf is the number that a process has here, by its pidfd (proc(5), /proc/pid/fdinfo).
func pidOf(handle *os.File) (int, error) {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(handle.Fd())))
	if err != nil {
		return 0, fmt.Errorf("starter of drivers: %w", err)
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), "Pid:"); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, errors.New("starter of drivers: this kernel does not tell the number of a process by its pidfd")
}

func (p *Process) end(status syscall.WaitStatus, lost error) {
	p.status, p.lost = status, lost
	close(p.ended)
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Status is how the process has ended; the error, that the starter did so before it.
func (p *Process) Status() (syscall.WaitStatus, error) { return p.status, p.lost }

// Signal sends a signal to the process, and to no other that has its number later. Of one
// that has ended nothing happens.
func (p *Process) Signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle != nil {
		_ = unix.PidfdSendSignal(int(p.handle.Fd()), s, nil, 0) // fails where it has ended
	}
}

// Release gives up the process, once it has ended.
func (p *Process) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle != nil {
		_ = p.handle.Close() // nothing was written
		p.handle = nil
	}
}

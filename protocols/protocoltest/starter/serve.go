package starter

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/internal/confine"
	"linktrial/internal/process"
)

// A program that was started as a starter is one, and nothing else.
func init() {
	if os.Getenv(variable) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "starter of drivers:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// server is a starter.
type server struct {
	conn *net.UnixConn

	mu      sync.Mutex // held while a program is started, so that its end is not met before
	running map[int]*program
}

// program is what it has started.
type program struct {
	id       int // of the request
	confined *confine.Process
}

// serve starts what it is asked to until the socket is closed.
func serve() error {
	f := os.NewFile(socketFD, "suite")
	conn, err := net.FileConn(f)
	closeAll([]*os.File{f})
	if err != nil {
		return err
	}
	if err := os.Unsetenv(variable); err != nil {
		return err
	}
	if err := surround(); err != nil {
		return err
	}
	s := &server{conn: conn.(*net.UnixConn), running: map[int]*program{}}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	go func() {
		for range ends {
			s.reap()
		}
	}()
	for {
		var r request
		files, err := receive(s.conn, &r)
		if err != nil {
			return nil // the suite has ended
		}
		err = s.start(&r, files)
		closeAll(files)
		if err != nil {
			if err := send(s.conn, reply{ID: r.ID, Error: err.Error()}); err != nil {
				return nil
			}
		}
	}
}

// surround gives this process, where it has a PID namespace of its own, a /proc with what
// descends from it alone; where mounts are forbidden, the machine's stays. Elsewhere it takes
// in what drivers leave behind.
func surround() error {
	if os.Getpid() != 1 {
		return process.Adopt()
	}
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil {
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") // see above
	}
	return nil
}

// start starts a program and tells of it.
func (s *server) start(r *request, files []*os.File) error {
	if len(files) < 3 || len(r.Program.Command) == 0 {
		return fmt.Errorf("a program of %d words with %d files, expected its standard files", len(r.Program.Command), len(files))
	}
	cmd := exec.Command(r.Program.Command[0], r.Program.Command[1:]...)
	cmd.Dir, cmd.Env = r.Program.Dir, r.Program.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	network := ""
	if len(files) > 3 {
		network = "/proc/self/fd/" + strconv.Itoa(int(files[3].Fd()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &program{id: r.ID}
	var err error
	if r.Program.Root != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.Program.Root, Credential: &syscall.Credential{Uid: r.Program.UID, Gid: r.Program.GID}}
		err = confine.StartBare(cmd, network, r.Program.Capabilities)
	} else {
		p.confined, err = confine.Start(cmd, confine.Need{Program: cmd.Path, Folder: cmd.Dir, Reads: r.Program.Reads, Capabilities: r.Program.Capabilities, Network: network})
	}
	if err != nil {
		return err
	}
	s.running[cmd.Process.Pid] = p
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		return fmt.Errorf("handle of the driver: %w", err)
	}
	handle := os.NewFile(uintptr(fd), "driver")
	defer closeAll([]*os.File{handle})
	_ = cmd.Process.Release() // reap waits for it
	return send(s.conn, reply{ID: r.ID}, handle)
}

// reap takes notice of everything that has ended, and of what programs have left behind.
func (s *server) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		p := s.running[pid]
		if p == nil {
			continue
		}
		delete(s.running, pid)
		process.Forget(pid)
		p.confined.Remove()
		_ = send(s.conn, reply{ID: p.id, Ended: true, Status: uint32(status)}) // the suite may have ended
	}
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/backoff"
	"linktrial/internal/process"
)

// child is one PostgreSQL process, waited for by a goroutine of its own.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.exited
}

func (s *Server) logPath() string { return s.data + ".log" }

func (s *Server) launch() (*child, error) {
	log, err := os.Create(s.logPath())
	if err != nil {
		return nil, fmt.Errorf("private database: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(s.bin.dir, "postgres"), s.settings()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = s.data
	cmd.Env = append(s.bin.environment(), "PATH="+os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC")
	s.owner.become(cmd)
	if err := process.Start(cmd); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	c := &child{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(c.exited)
		// How it ended is in its own log.
		_ = cmd.Wait()
	}()
	return c, nil
}

// launchUntilReady starts the server and waits for its first answer. The
// workers of a server that was killed may hold its shared memory for a moment
// longer; then the start is tried again.
func (s *Server) launchUntilReady(ctx context.Context) (*child, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		c, err := s.launch()
		if err != nil {
			return nil, err
		}
		answered, err := s.awaitReady(ctx, c)
		if answered {
			return c, nil
		}
		if err != nil {
			c.kill()
			return nil, fmt.Errorf("PostgreSQL does not answer (its log: %s): %w", s.logPath(), err)
		}
		log, err := os.ReadFile(s.logPath())
		if err != nil {
			return nil, fmt.Errorf("private database: %w", err)
		}
		if !strings.Contains(string(log), "shared memory block") || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return nil, fmt.Errorf("PostgreSQL does not start: %s (its log: %s)", lastLine(string(log)), s.logPath())
		}
	}
}

// awaitReady tries to connect until the server answers (true), has ended by
// itself (false and no error), or ctx ends.
func (s *Server) awaitReady(ctx context.Context, c *child) (bool, error) {
	retry := backoff.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}
	for {
		conn, err := pgx.Connect(ctx, s.DatabaseURL("postgres"))
		if err == nil {
			return true, conn.Close(ctx)
		}
		select {
		case <-c.exited:
			return false, nil
		case <-ctx.Done():
			return false, err
		case <-time.After(retry.Next()):
		}
	}
}

// createDatabase makes the database and the role [Worker] where there are none.
func (s *Server) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.DatabaseURL("postgres"))
	if err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // what was to be done has been answered
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", Worker).Scan(&there); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	if !there {
		if _, err := conn.Exec(ctx, "CREATE ROLE "+Worker+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"); err != nil {
			return fmt.Errorf("private database: %w", err)
		}
	}
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database).Scan(&there); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	if there {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	return nil
}

// watch owns the child from the first answer until Stop: a server that ends
// by itself is started again, because agents' journals have nowhere else to go.
func (s *Server) watch(c *child) {
	defer close(s.done)
	retry := backoff.Backoff{Min: restartPause, Max: restartPauseMax}
	for {
		began := time.Now()
		<-c.exited
		if time.Since(began) > steadyAfter {
			retry.Reset()
		}
		for {
			if s.asked() {
				return
			}
			log, _ := os.ReadFile(s.logPath())
			s.log.Error("postgresql ended by itself and is started again", "last_line", lastLine(string(log)))
			select {
			case <-s.wake:
				return
			case <-time.After(retry.Next()):
			}
			next, err := s.launch()
			if err != nil {
				s.log.Error("postgresql could not be started again", "error", err)
				continue
			}
			if !s.replace(next) {
				next.kill()
				return
			}
			c = next
			break
		}
	}
}

func (s *Server) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// replace says false when Stop came in between.
func (s *Server) replace(c *child) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.current = c
	return true
}

// PID of the server.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.cmd.Process.Pid
}

// Stop shuts the server down, cutting what connections are left ("fast"), and
// waits for it; where that takes too long or ctx ends, it is killed, which the
// next start recovers from.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopping {
		s.stopping = true
		close(s.wake)
	}
	c := s.current
	s.mu.Unlock()
	defer s.removeScrap()
	c.cmd.Process.Signal(syscall.SIGINT) // an error means that it has gone already
	var err error
	select {
	case <-c.exited:
	case <-time.After(fastShutdown):
		err = fmt.Errorf("PostgreSQL did not stop within %s and was killed", fastShutdown)
	case <-ctx.Done():
		err = fmt.Errorf("PostgreSQL was killed: %w", ctx.Err())
	}
	c.kill()
	<-s.done
	return err
}

// endLeftover ends the PostgreSQL that still runs on the data folder. The
// caller holds the folder's lock, so its orchestrator is dead.
func (s *Server) endLeftover(ctx context.Context) error {
	pidFile := filepath.Join(s.data, "postmaster.pid")
	b, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		return nil // torn by a crash; PostgreSQL itself judges it
	}
	if servesFolder(pid, s.data) {
		if err := s.shutDown(ctx, pid); err != nil {
			return err
		}
	}
	_, err = process.Identify(pid)
	if !errors.Is(err, os.ErrProcessDone) {
		return nil // gone, or the PID is another's by now: PostgreSQL passes over the stale file
	}
	// It has ended, but nobody has collected it, and PostgreSQL would take the
	// PID for a living server's. Its workers end by themselves soon after it;
	// only then may the file go.
	for end := time.Now().Add(leftoverGrace); workers(s.data); {
		if time.Now().After(end) {
			return fmt.Errorf("workers of a killed PostgreSQL still run on %s", s.data)
		}
		if !backoff.Sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("private database: %w", err)
	}
	return nil
}

func (s *Server) shutDown(ctx context.Context, pid int) error {
	id, err := process.Identify(pid)
	if err != nil {
		return nil // gone in between
	}
	s.log.Warn("a database server was left running and is ended", "pid", pid)
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end the PostgreSQL (process %d) that still runs on %s: %w", pid, s.data, err)
	}
	for end := time.Now().Add(leftoverGrace); id.Alive() && time.Now().Before(end); {
		if !backoff.Sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	if err := id.End(ctx, 0); err != nil {
		return fmt.Errorf("end the PostgreSQL that still runs on %s: %w", s.data, err)
	}
	return nil
}

// workers reports whether any living process works in the data folder, as all of PostgreSQL's do.
func workers(data string) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that has ended has no working folder any more.
		if cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && cwd == data {
			return true
		}
	}
	return false
}

// servesFolder reports whether the process is a PostgreSQL server started on the data folder.
func servesFolder(pid int, data string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := strings.Split(string(b), "\x00")
	if filepath.Base(args[0]) != "postgres" {
		return false
	}
	for i := range len(args) - 1 {
		if args[i] == "-D" && args[i+1] == data {
			return true
		}
	}
	return false
}

// lastLine returns the line of a log that says why the server has ended.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for _, severity := range []string{"PANIC:", "FATAL:", "error:"} {
		for _, l := range lines {
			// The cause is in the first such line; what follows is the shutdown. Connections
			// that were refused during start, recovery and shutdown are no cause.
			if strings.Contains(l, severity) && !strings.Contains(l, "FATAL:  the database system is ") {
				return strings.TrimSpace(l)
			}
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

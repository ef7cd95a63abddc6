// Package watchdog tells the service manager, systemd, that this process is ready, what
// it does, and that its main loop makes progress (sd_notify(3)). Comes in: the promises
// of the loop. Goes out: datagrams to the socket that NOTIFY_SOCKET names. Where the
// process was not started by systemd, nothing goes out.
package watchdog

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Loop is the progress of a loop. The loop says by when it will have come back; a loop
// that is later is taken for frozen. A nil Loop takes everything and does nothing.
type Loop struct {
	name     string
	began    time.Time
	deadline atomic.Int64 // after began, in ns; 0: it waits for as long as it takes
}

// NewLoop returns a loop of a name for people, which waits.
func NewLoop(name string) *Loop { return &Loop{name: name, began: time.Now()} }

// Within promises that the loop says something again within d.
func (l *Loop) Within(d time.Duration) {
	if l != nil {
		l.deadline.Store(int64(time.Since(l.began) + d))
	}
}

// Waits says that the loop waits for something that may take any time.
func (l *Loop) Waits() {
	if l != nil {
		l.deadline.Store(0)
	}
}

// late is for how long the loop has been late.
func (l *Loop) late() time.Duration {
	deadline := l.deadline.Load()
	if deadline == 0 {
		return 0
	}
	return max(0, time.Since(l.began)-time.Duration(deadline))
}

// Service is this process as the service manager sees it. A nil Service is one that was
// not started by it: all methods do nothing.
type Service struct {
	conn     *net.UnixConn
	interval time.Duration // within which the service manager wants to be told; 0: it does not
	log      func(error)

	stop    chan struct{}
	feeding sync.WaitGroup
}

// Open connects to the service manager that started this process; nil where none did. It
// removes what the service manager has put into the environment, which is not for the
// children of this process. What goes wrong later goes to log.
func Open(log func(error)) (*Service, error) {
	path, usec, pid := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if path == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("tell the service manager at NOTIFY_SOCKET: %w", err)
	}
	s := &Service{conn: conn, log: log, stop: make(chan struct{})}
	if n, err := strconv.ParseInt(usec, 10, 64); err == nil && n > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.interval = time.Duration(n) * time.Microsecond
	}
	return s, nil
}

func (s *Service) send(lines ...string) {
	if s == nil {
		return
	}
	if _, err := s.conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		s.log(err)
	}
}

// Ready says that the service works, and with status what it does.
func (s *Service) Ready(status string) { s.send("READY=1", "STATUS="+line(status)) }

// Status says what the service does now; 'systemctl status' shows it.
func (s *Service) Status(text string) { s.send("STATUS=" + line(text)) }

// line keeps a text from being more than one assignment.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// Watch tells the service manager that this process works, for as long as the loop keeps
// its promises; one that is frozen makes it restart the process. It returns at once;
// Close ends it.
func (s *Service) Watch(l *Loop) {
	if s == nil || s.interval == 0 {
		return
	}
	s.feeding.Go(func() {
		t := time.NewTicker(max(s.interval/3, time.Millisecond))
		defer t.Stop()
		told := false
		for {
			late := l.late()
			switch {
			case late == 0:
				s.send("WATCHDOG=1")
				told = false
			case !told:
				told = true
				s.send("STATUS=" + l.name + " makes no progress: this process is ended unless it goes on")
			}
			select {
			case <-t.C:
			case <-s.stop:
				return
			}
		}
	})
}

// Close says that the service is stopping, and ends what Watch started.
func (s *Service) Close() {
	if s == nil {
		return
	}
	s.send("STOPPING=1")
	close(s.stop)
	s.feeding.Wait()
	_ = s.conn.Close() // nothing is sent any more
}

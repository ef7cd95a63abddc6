package watchdog

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is a service manager's socket; next returns the datagram that comes next.
func manager(t *testing.T, usec string) (s *Service, next func(limit time.Duration) string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", usec)
	t.Setenv("WATCHDOG_PID", "")
	if s, err = Open(func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if _, there := os.LookupEnv(name); there {
			t.Errorf("%s is left for children", name)
		}
	}
	return s, func(limit time.Duration) string {
		conn.SetReadDeadline(time.Now().Add(limit))
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			return ""
		}
		return string(b[:n])
	}
}

const soon = 20 * time.Second

// A loop that keeps its promises feeds the watchdog, a frozen one does not, and one that
// goes on does again.
func TestWatchdog(t *testing.T) {
	s, next := manager(t, "30000")
	defer s.Close()
	s.Ready("works\nREADY=0")
	if got := next(soon); got != "READY=1\nSTATUS=works READY=0" {
		t.Errorf("ready: %q", got)
	}
	l := NewLoop("the loop")
	s.Watch(l)
	for range 5 {
		if got := next(soon); got != "WATCHDOG=1" {
			t.Errorf("while it waits: %q", got)
		}
	}
	l.Within(0)
	frozen := ""
	for frozen = next(soon); frozen == "WATCHDOG=1"; frozen = next(soon) { // sent before
	}
	if !strings.HasPrefix(frozen, "STATUS=the loop makes no progress") {
		t.Errorf("frozen: %q", frozen)
	}
	if got := next(200 * time.Millisecond); got != "" { // six of its intervals
		t.Errorf("a frozen loop feeds the watchdog: %q", got)
	}
	l.Within(time.Hour)
	for range 3 {
		if got := next(soon); got != "WATCHDOG=1" {
			t.Errorf("when it goes on: %q", got)
		}
	}
}

// Without a watchdog only states are told, and without a service manager nothing.
func TestWithoutWatchdog(t *testing.T) {
	s, next := manager(t, "")
	s.Watch(NewLoop("the loop"))
	s.Status("busy")
	s.Close()
	if first, second, third := next(soon), next(soon), next(50*time.Millisecond); first != "STATUS=busy" || second != "STOPPING=1" || third != "" {
		t.Errorf("%q, %q, %q", first, second, third)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	none, err := Open(nil)
	if none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	none.Ready("")
	none.Status("")
	none.Watch(nil)
	none.Close()
	var l *Loop
	l.Within(1)
	l.Waits()
}

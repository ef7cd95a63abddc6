package starter

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/process"
)

var agentLine = []string{"/usr/bin/linktrial", "agent", "--name", "client"}

// said runs a shell's script at a starter, and returns what it said and how it ended.
func said(t *testing.T, a *Starter, script string) (string, syscall.WaitStatus) {
	t.Helper()
	p, out := begin(t, a, script)
	b, err := io.ReadAll(out)
	require.NoError(t, err)
	<-p.Ended()
	status, lost := p.Status()
	require.NoError(t, lost)
	p.Release()
	return strings.TrimSpace(string(b)), status
}

func begin(t *testing.T, a *Starter, script string) (*Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() }) // nothing was written
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer closeAll([]*os.File{null, w})
	p, err := a.Run(Program{Command: []string{"/bin/sh", "-c", script}, Dir: "/usr", Env: []string{"PATH=/usr/bin:/bin"}}, null, w, w, nil)
	require.NoError(t, err)
	return p, r
}

func start(t *testing.T) *Starter {
	t.Helper()
	a, err := Start(agentLine)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// A driver's parent has an agent's command line, and nothing that the driver finds in /proc
// names what started that: neither this program nor its arguments are there.
func TestWhatADriverSees(t *testing.T) {
	a := start(t)
	text, status := said(t, a, `tr '\0' ' ' </proc/$PPID/cmdline`)
	require.Equal(t, strings.Join(agentLine, " "), text)
	require.Zero(t, status)
	text, _ = said(t, a, `echo "$LINKTRIAL_DRIVER_STARTER$HOME"`)
	require.Contains(t, text, "/linktrial-driver-")
	require.NotContains(t, text, "\n")
	if os.Geteuid() != 0 {
		t.Skip("needs root: a PID namespace")
	}
	text, _ = said(t, a, `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; echo; done`)
	lines := strings.Split(text, "\n")
	require.Equal(t, strings.Join(agentLine, " "), strings.TrimSpace(lines[0]))
	for _, l := range lines[1:] {
		require.NotContains(t, l, "test.")
		require.NotContains(t, l, "linktrial")
	}
	text, _ = said(t, a, "id -u; echo $PPID; cat /proc/1/environ")
	require.Regexp(t, `^\d{4,}\n1\ncat: /proc/1/environ: Permission denied$`, text)
}

// How a program ends is known, and what it leaves behind is taken in.
func TestHowProgramsEnd(t *testing.T) {
	a := start(t)
	_, status := said(t, a, "exit 3")
	require.Equal(t, 3, status.ExitStatus())
	_, status = said(t, a, "kill -9 $$")
	require.Equal(t, syscall.SIGKILL, status.Signal())
	for range 20 { // many at once, which leave a child
		p, _ := begin(t, a, "sleep 0.01 & sleep 0.02")
		defer func() {
			<-p.Ended()
			p.Release()
		}()
	}
	p, _ := begin(t, a, "exec sleep 3600")
	id, err := process.Identify(p.PID)
	require.NoError(t, err)
	require.True(t, id.Alive())
	p.Signal(syscall.SIGTERM)
	<-p.Ended()
	status, lost := p.Status()
	require.NoError(t, lost)
	require.Equal(t, syscall.SIGTERM, status.Signal())
	p.Signal(syscall.SIGTERM) // of no effect
	p.Release()
}

// What cannot be started says so, and the starter goes on.
func TestWhatCannotBeStarted(t *testing.T) {
	a := start(t)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer closeAll([]*os.File{null})
	_, err = a.Run(Program{Command: []string{"/nowhere/driver"}, Dir: "/"}, null, null, null, nil)
	require.ErrorContains(t, err, "/nowhere/driver")
	_, err = a.Run(Program{}, null, null, null, nil)
	require.ErrorContains(t, err, "0 words")
	_, err = a.Run(Program{Command: []string{"/bin/true"}, Env: []string{strings.Repeat("x", maxMessage)}}, null, null, null, nil)
	require.ErrorContains(t, err, "expected at most 262144")
	_, status := said(t, a, "exit 0")
	require.Zero(t, status)
}

// The programs end with the starter, and who waits for them learns of it.
func TestTheEndOfAStarter(t *testing.T) {
	a := start(t)
	p, _ := begin(t, a, "exec sleep 3600")
	id, err := process.Identify(p.PID)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(a.PID(), syscall.SIGKILL))
	<-p.Ended()
	_, lost := p.Status()
	require.ErrorContains(t, lost, "it has ended")
	p.Release()
	require.Eventually(t, func() bool { return !id.Alive() }, 10*time.Second, time.Millisecond)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer closeAll([]*os.File{null})
	_, err = a.Run(Program{Command: []string{"/bin/true"}, Dir: "/"}, null, null, null, nil)
	require.Error(t, err)
}

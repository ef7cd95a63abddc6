// Package radiolink is the leading agent's line to the emulated radio network.
// Comes in: the path of the control socket. Goes out: an [executor.Radio].
package radiolink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
)

// Link holds one connection to the emulator for a whole run. When the
// connection breaks, Begin and End fail until Configure has made a new one: an
// emulator that was started again does not know the run's network, and a trial
// on whatever it starts with would be a trial on the wrong radio.
type Link struct {
	path string

	mu sync.Mutex
	c  *client.Client
}

// New returns a link that connects at the first Configure.
func New(path string) *Link { return &Link{path: path} }

// goneTimeout bounds connecting to a socket of this machine.
const goneTimeout = 5 * time.Second

var errNotConfigured = errors.New("emulator: not connected since its last start")

// Configure implements [executor.Radio].
func (l *Link) Configure(ctx context.Context, n *radio.Network) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		c, err := client.Dial(l.path)
		if err != nil {
			return err
		}
		l.c = c
	}
	return l.reuse(l.c.Configure(ctx, n))
}

// Begin implements [executor.Radio].
func (l *Link) Begin(ctx context.Context, b radiocontrol.Begin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return errNotConfigured
	}
	return l.reuse(l.c.Begin(ctx, b))
}

// End implements [executor.Radio].
func (l *Link) End(ctx context.Context, trial string) (*radiocontrol.Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return nil, errNotConfigured
	}
	report, err := l.c.End(ctx, trial)
	return report, l.reuse(err)
}

// Quiet implements [executor.RadioSettler].
func (l *Link) Quiet(ctx context.Context, q radiocontrol.Quiet) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return false, errNotConfigured
	}
	quiet, err := l.c.Quiet(ctx, q)
	return quiet, l.reuse(err)
}

// Gone implements [executor.RadioWatcher] with a connection of its own, which ends with
// the emulator.
func (l *Link) Gone(ctx context.Context) string {
	conn, err := (&net.Dialer{Timeout: goneTimeout}).DialContext(ctx, "unix", l.path)
	if err == nil {
		defer func() { _ = conn.Close() }() // nothing was sent on it
		defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
		_, err = conn.Read(make([]byte, 1)) // nothing comes: what comes is the end
	}
	if ctx.Err() != nil {
		return ""
	}
	if errors.Is(err, io.EOF) {
		return "the emulated radios ended during the attempt"
	}
	return fmt.Sprintf("the emulated radios ended during the attempt: %v", err)
}

// reuse drops a connection that can no longer be used.
func (l *Link) reuse(err error) error {
	if err == nil {
		return nil
	}
	var refused *client.Refused
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: %s", executor.ErrRadioRefused, refused.Message)
	}
	_ = l.c.Close() // broken already
	l.c = nil
	return err
}

// Close ends the connection, if there is one.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return nil
	}
	err := l.c.Close()
	l.c = nil
	return err
}

// busyTimeout bounds one question to the emulator, which answers at once.
const busyTimeout = time.Second

// Busy asks the emulated radios with the control socket at path whether a trial is running;
// known: they answered.
func Busy(path string) func() (busy, known bool) {
	return func() (busy, known bool) {
		ctx, cancel := context.WithTimeout(context.Background(), busyTimeout)
		defer cancel()
		c, err := client.Dial(path)
		if err != nil {
			return false, false
		}
		defer func() { _ = c.Close() }() // the answer is there, or none comes
		st, err := c.Status(ctx)
		if err != nil {
			return false, false
		}
		return st.Trial != "", true
	}
}

package radiolink

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"linktrial/executor"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emulator answers one connection after the other on a control socket.
type emulator struct {
	ln      net.Listener
	running sync.WaitGroup
	mu      sync.Mutex
	conn    net.Conn
	asked   []radiocontrol.Request
	trial   string // that is running
}

func newEmulator(t *testing.T, path string) *emulator {
	t.Helper()
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	e := &emulator{ln: ln}
	e.running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.conn = c
			e.mu.Unlock()
			for lines := bufio.NewScanner(c); lines.Scan(); {
				var q radiocontrol.Request
				var a radiocontrol.Reply
				if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
					a.Error = err.Error()
				}
				e.mu.Lock()
				e.asked = append(e.asked, q)
				e.mu.Unlock()
				switch {
				case q.Status != nil:
					a.Status = &radiocontrol.Status{Trial: e.trial}
				case q.End != nil:
					a.Report = &radiocontrol.Report{BusyShare: 0.5}
				case q.Begin != nil && q.Begin.Trial == "bad":
					a.Error = "no such thing"
				}
				b, _ := json.Marshal(a)
				c.Write(append(b, '\n'))
			}
			c.Close()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		e.cut()
		e.running.Wait()
	})
	return e
}

func (e *emulator) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		e.conn.Close()
	}
}

func TestLink(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "s")
	l := New(path)
	defer l.Close()
	if err := l.Begin(ctx, radiocontrol.Begin{}); err == nil {
		t.Error("a trial began without a configuration")
	}
	if err := l.Configure(ctx, &radio.Network{}); err == nil {
		t.Error("configured without an emulator")
	}
	e := newEmulator(t, path)
	if err := l.Configure(ctx, &radio.Network{MTUBytes: 1400}); err != nil {
		t.Fatal(err)
	}
	if err := l.Begin(ctx, radiocontrol.Begin{Trial: "t1", Seed: 7}); err != nil {
		t.Fatal(err)
	}
	if r, err := l.End(ctx, "t1"); err != nil || r.BusyShare != 0.5 {
		t.Errorf("report %+v: %v", r, err)
	}
	if err := l.Begin(ctx, radiocontrol.Begin{Trial: "bad"}); !errors.Is(err, executor.ErrRadioRefused) {
		t.Errorf("refusal: %v", err)
	}
	if err := l.Begin(ctx, radiocontrol.Begin{Trial: "t2"}); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	// An emulator that was started again must be configured before a trial.
	e.cut()
	if err := l.Begin(ctx, radiocontrol.Begin{Trial: "t3"}); err == nil || errors.Is(err, executor.ErrRadioRefused) {
		t.Errorf("over a broken connection: %v", err)
	}
	if err := l.Begin(ctx, radiocontrol.Begin{Trial: "t3"}); err == nil {
		t.Error("a trial began on an emulator that was not configured")
	}
	if err := l.Configure(ctx, &radio.Network{MTUBytes: 1400}); err != nil {
		t.Fatal(err)
	}
	if err := l.Begin(ctx, radiocontrol.Begin{Trial: "t3"}); err != nil {
		t.Error(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := e.asked[len(e.asked)-1]; last.Begin == nil || last.Begin.Trial != "t3" || e.asked[0].Configure.MTUBytes != 1400 {
		t.Errorf("asked %+v", e.asked)
	}
}

// Gone returns when the emulator has ended, and says so; when its context has ended, it
// says nothing.
func TestGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := New(path)
	defer l.Close()
	if text := l.Gone(t.Context()); !strings.Contains(text, "ended during the attempt: dial") {
		t.Errorf("without an emulator: %q", text)
	}
	e := newEmulator(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string)
	go func() { told <- l.Gone(ctx) }()
	cancel()
	if text := <-told; text != "" {
		t.Errorf("after the end of waiting: %q", text)
	}
	go func() { told <- l.Gone(t.Context()) }()
	for {
		select {
		case text := <-told:
			if text != "the emulated radios ended during the attempt" {
				t.Errorf("%q", text)
			}
			return
		default:
			e.cut()
		}
	}
}

// Whether a trial is running is what the emulator says; where none answers it is not known.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ask := Busy(path)
	if _, known := ask(); known {
		t.Error("known without an emulator")
	}
	e := newEmulator(t, path)
	for trial, want := range map[string]bool{"": false, "x": true} {
		e.trial = trial
		if busy, known := ask(); busy != want || !known {
			t.Errorf("with the trial %q: busy %t, known %t", trial, busy, known)
		}
	}
}

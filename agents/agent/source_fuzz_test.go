package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	radioprofiles "linktrial/radio-profiles"
)

// endless is a document that never ends.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	if e.read == 0 {
		copy(b, `{"refused":"`)
	}
	e.read += int64(len(b))
	return len(b), nil
}

// A document that is longer than it may be is refused before it is read whole.
func TestSourceMessageIsBounded(t *testing.T) {
	e := new(endless)
	_, err := newSourceMessages(e).next(maxAssignment)
	require.ErrorContains(t, err, "more than 65536 bytes")
	require.LessOrEqual(t, e.read, int64(maxAssignment))
	// Each document has the whole bound.
	one := `{"refused":"` + strings.Repeat("x", maxAssignment-100) + `"}`
	m := newSourceMessages(strings.NewReader(one + one + one))
	for range 3 {
		_, err := m.next(maxAssignment)
		require.NoError(t, err)
	}
}

// FuzzSourceMessage: what is read can be written and is read again, the same.
func FuzzSourceMessage(f *testing.F) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 1, time.UTC)
	for _, m := range []sourceMessage{
		{Assignment: &executor.FlowAssignment{Run: "r-1", SheetHash: "h", Trial: 2, Attempt: 1}},
		{Accepted: true},
		{Refused: "another sheet"},
		{Began: &began},
		{Flows: []executor.FlowOutcome{{Result: journal.FlowResult{Verdict: journal.Failed}, Breaches: []string{"x"}, Log: "said", Ready: began, Exited: began}}},
		{Flows: []executor.FlowOutcome{}}, {Over: true}, {InOrder: true}, {Outage: "ended from outside"}, {Refused: "down", Reason: "listener-failed"},
	} {
		b, err := json.Marshal(m)
		require.NoError(f, err)
		f.Add(append(b, '\n'))
	}
	f.Add([]byte(`{"assignment":null}{"began":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newSourceMessages(bytes.NewReader(b))
		for range len(b) + 1 {
			m, err := in.next(maxAssignment)
			if err != nil {
				return
			}
			written, err := json.Marshal(m)
			require.NoError(t, err)
			again, err := newSourceMessages(bytes.NewReader(written)).next(maxOutcomes)
			require.NoError(t, err, "%s", written)
			twice, err := json.Marshal(again)
			require.NoError(t, err)
			require.Equal(t, string(written), string(twice))
		}
		t.Fatal("more documents than bytes")
	})
}

// FuzzTakeAssignment: whatever comes on the socket, the node answers at most with
// what the protocol has, and carries nothing that it has not accepted.
func FuzzTakeAssignment(f *testing.F) {
	f.Add([]byte(`{"assignment":{"run":"r-1","sheet_hash":"h","trial":0,"attempt":1}}` + "\n" + `{"began":"2026-07-01T12:00:00Z"}`))
	f.Add([]byte(`{"assignment":{"run":"other"}}`))
	f.Add([]byte(`{"assignment":{"run":"r-1"}}{"began":null}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &recorder{}
		here, there := socketPair(t)
		var written sync.WaitGroup
		written.Go(func() {
			_, _ = here.Write(b) // refused before the end, it may not all be read
			_ = here.CloseWrite()
		})
		err := takeAssignment(t.Context(), there, c)
		require.NoError(t, there.Close())
		written.Wait()
		answer, _ := io.ReadAll(here) // what was not read resets the connection
		require.NoError(t, here.Close())
		if c.carried && (!c.checked || err != nil) {
			t.Fatalf("carried, checked %t: %v", c.checked, err)
		}
		if !c.carried && err == nil {
			t.Fatal("nothing was carried, and nothing is wrong")
		}
		for out := newSourceMessages(bytes.NewReader(answer)); ; {
			if _, err := out.next(maxOutcomes); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("answer: %v", err)
			}
		}
	})
}

// recorder notes what it was asked for.
type recorder struct{ checked, carried bool }

func (r *recorder) Check(a executor.FlowAssignment) error {
	if a.Run != "r-1" {
		return errors.New("another run")
	}
	r.checked = true
	return nil
}

func (*recorder) Watch(executor.FlowAssignment) func(context.Context, <-chan struct{}) executor.Outage {
	return func(ctx context.Context, over <-chan struct{}) executor.Outage {
		select {
		case <-over:
		case <-ctx.Done():
		}
		return executor.Outage{}
	}
}
func (*recorder) Await(context.Context, executor.FlowAssignment) error { return nil }

func (r *recorder) Prepare(context.Context, executor.FlowAssignment) func() { return func() {} }
func (r *recorder) Carry(context.Context, executor.FlowAssignment, time.Time) []executor.FlowOutcome {
	r.carried = true
	return nil
}
func (r *recorder) Sync() {}

func socketPair(t *testing.T) (a, b *net.UnixConn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var out [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		out[i] = c.(*net.UnixConn)
	}
	return out[0], out[1]
}

// FuzzDecodeProfile: a profile that the orchestrator sent can be asked for its
// telemetry.
func FuzzDecodeProfile(f *testing.F) {
	files, err := radioprofiles.Files.ReadDir(".")
	require.NoError(f, err)
	for _, e := range files {
		text, err := radioprofiles.Files.ReadFile(e.Name())
		if err != nil || !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		p, err := radio.ParseProfile(e.Name(), text)
		if err != nil {
			continue // one with a trace beside it
		}
		b, err := json.Marshal(p)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"telemetry":[{"every":-1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProfile(b)
		if err != nil {
			return
		}
		(&Config{Radio: p.Name, RadioAddress: "192.0.2.1"}).poller(p, nil, nil)
	})
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"linktrial/executor"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
)

// In a laboratory all nodes are on one machine and know the emulator's control
// socket. Each node that does not lead has a socket of its own beside it, on
// which it takes assignments of flows; the leading one dials it for every
// attempt. One assignment a connection, JSON documents in turn:
//
//	leading node → {"assignment": …}
//	other node   → {"accepted": true}, or {"refused": "why"} and the end
//	leading node → {"began": "2026-07-01T12:00:00.000000001Z"}
//	other node   → {"flows": […]}
//
// When the leading node closes its end of the connection early, the flows are
// stopped and their outcomes are still sent. On real radios nodes cannot reach
// each other this way yet.

// sourcePath is the socket of a role.
func sourcePath(radioControl string, role radio.Role) string {
	return radioControl + "." + string(role)
}

// sourceMessage is one document; one field is set.
type sourceMessage struct {
	Assignment *executor.FlowAssignment `json:"assignment,omitempty"`
	Accepted   bool                     `json:"accepted,omitempty"`
	Refused    string                   `json:"refused,omitempty"`
	Began      *time.Time               `json:"began,omitempty"`
	Flows      []executor.FlowOutcome   `json:"flows,omitempty"`
}

// Bounds of one document, in bytes: outcomes have the logs of drivers, the others
// some names and numbers.
const (
	maxAssignment = 64 << 10
	maxOutcomes   = 16 << 20
)

const (
	assignLimit = 10 * time.Second // for the assignment of a new connection, and for the outcomes of flows that were stopped
	beginLimit  = 2 * time.Minute  // from an accepted assignment to the trial's beginning
	redialPause = 100 * time.Millisecond
)

// sources implements [executor.Sources].
type sources struct{ radioControl string }

// Prepare tries again until ctx ends: the node may just be starting.
func (s sources) Prepare(ctx context.Context, role radio.Role, a executor.FlowAssignment) (executor.Source, error) {
	for {
		c, err := s.prepare(ctx, role, a)
		var refused *refusedError
		if err == nil || errors.As(err, &refused) {
			return c, err
		}
		if !backoff.Sleep(ctx, redialPause) {
			return nil, err
		}
	}
}

type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

func (s sources) prepare(ctx context.Context, role radio.Role, a executor.FlowAssignment) (executor.Source, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", sourcePath(s.radioControl, role))
	if err != nil {
		return nil, err
	}
	unix, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("a %T, expected a Unix socket", c)
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	x := &source{c: unix, in: newSourceMessages(c), out: json.NewEncoder(c)}
	if err := x.out.Encode(sourceMessage{Assignment: &a}); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("assignment: %w", err)
	}
	answer, err := x.in.next(maxAssignment)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the assignment was not answered: %w", err)
	}
	switch {
	case answer.Refused != "":
		_ = c.Close()
		return nil, &refusedError{answer.Refused}
	case !answer.Accepted:
		_ = c.Close()
		return nil, errors.New("the assignment was not answered")
	}
	return x, nil
}

// source is a node that has accepted an assignment.
type source struct {
	c   *net.UnixConn
	in  *sourceMessages
	out *json.Encoder
}

// sourceMessages reads documents of bounded size.
type sourceMessages struct {
	r   io.LimitedReader
	dec *json.Decoder
}

func newSourceMessages(r io.Reader) *sourceMessages {
	m := &sourceMessages{r: io.LimitedReader{R: r}}
	m.dec = json.NewDecoder(&m.r)
	return m
}

// next reads a document of at most most bytes.
func (s *sourceMessages) next(most int64) (m sourceMessage, err error) {
	s.r.N = most // what was read already of the document counts not
	err = s.dec.Decode(&m)
	if err != nil && s.r.N <= 0 {
		err = fmt.Errorf("a document of more than %d bytes", most)
	}
	if err != nil {
		return sourceMessage{}, err
	}
	return m, nil
}

// Carry implements [executor.Source].
func (s *source) Carry(ctx context.Context, began time.Time) ([]executor.FlowOutcome, error) {
	defer func() { _ = s.Close() }() // the outcomes were read, or cannot be
	if err := s.out.Encode(sourceMessage{Began: &began}); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		_ = s.c.SetReadDeadline(time.Now().Add(assignLimit))
		_ = s.c.CloseWrite()
	})()
	m, err := s.in.next(maxOutcomes)
	if err != nil {
		return nil, fmt.Errorf("outcome of its flows: %w", err)
	}
	return m.Flows, nil
}

// Close implements [executor.Source].
func (s *source) Close() error { return s.c.Close() }

// takeAssignments is the other node's side, until ctx ends. It takes one
// assignment at a time: the next connection is accepted when the drivers of the
// one before have exited.
func takeAssignments(ctx context.Context, path string, log *slog.Logger, carrier executor.Carrier) {
	// Left by an agent that was killed: the state folder's lock excludes another one.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("old socket for flows could not be removed", "error", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		log.Warn("no flows can start on this node", "error", err)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer l.Close()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil {
				log.Error("no more flows can start on this node", "error", err)
			}
			return
		}
		if err := takeAssignment(ctx, c, carrier); err != nil {
			log.Warn("assignment of flows was not carried out", "error", err)
		}
		_ = c.Close()
	}
}

func takeAssignment(ctx context.Context, c net.Conn, carrier executor.Carrier) error {
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
	in, out := newSourceMessages(c), json.NewEncoder(c)
	read := func(limit time.Duration) (m sourceMessage, err error) {
		if err = c.SetReadDeadline(time.Now().Add(limit)); err == nil && ctx.Err() == nil {
			m, err = in.next(maxAssignment)
		}
		return m, errors.Join(err, ctx.Err())
	}
	m, err := read(assignLimit)
	if err != nil || m.Assignment == nil {
		return errors.Join(errors.New("a connection without an assignment"), err)
	}
	assignment := *m.Assignment
	if err := carrier.Check(assignment); err != nil {
		return errors.Join(err, out.Encode(sourceMessage{Refused: err.Error()}))
	}
	if err := carrier.Await(ctx, assignment); err != nil {
		return errors.Join(err, out.Encode(sourceMessage{Refused: err.Error()}))
	}
	defer carrier.Prepare(ctx, assignment)()
	if err := out.Encode(sourceMessage{Accepted: true}); err != nil {
		return err
	}
	m, err = read(beginLimit)
	if err != nil || m.Began == nil {
		return errors.Join(errors.New("the assignment was withdrawn"), err)
	}
	// The leading node sends nothing more; when it closes its end, the flows
	// must stop.
	cctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, c) // up to its end, or the deadline below
		cancel(errors.New("the leading node stopped the attempt"))
	}()
	flows := carrier.Carry(cctx, assignment, *m.Began)
	defer carrier.Sync()
	err = errors.Join(c.SetReadDeadline(time.Unix(1, 0)), c.SetWriteDeadline(time.Now().Add(assignLimit)), out.Encode(sourceMessage{Flows: flows}))
	<-closed
	return err
}

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
	"slices"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
)

// In a laboratory all nodes are on one machine and know the emulator's control
// socket. Each node that does not lead has a socket of its own beside it, on
// which it takes assignments of flows; the leading one dials it for every
// attempt. One assignment a connection, JSON documents in turn:
//
//	leading node → {"assignment": …}
//	other node   → {"accepted": true}, or {"refused": "why"} and the end
//	leading node → {"began": "1970-01-01T05:12:00.000000001Z"}
//	other node   → {"flows": […]}
//	leading node → {"over": true}, when all flows of the attempt have ended
//	other node   → {"in_order": true}
//
// Times are those since the machine was started, counted from 1970: the nodes share that
// clock, which nobody steps, and their processes compare no times of day.
//
// In place of in_order, or at any time after began, the other node sends {"outage":
// "what was not in order"}, with "stopped" beside it where a process was stopped for some
// time. When the leading node closes its end
// of the connection early, the flows are stopped and their outcomes are still sent. On
// real radios nodes cannot reach each other this way yet.

// sourcePath is the socket of a role.
func sourcePath(radioControl string, role radio.Role) string {
	return radioControl + "." + string(role)
}

// sourceMessage is one document; one field is set.
type sourceMessage struct {
	Assignment *executor.FlowAssignment `json:"assignment,omitempty"`
	Accepted   bool                     `json:"accepted,omitempty"`
	Refused    string                   `json:"refused,omitempty"`
	Reason     string                   `json:"reason,omitempty"` // beside refused: of an [executor.ListenerError]
	Began      *time.Time               `json:"began,omitempty"`
	Flows      []executor.FlowOutcome   `json:"flows,omitzero"`
	Over       bool                     `json:"over,omitempty"`
	InOrder    bool                     `json:"in_order,omitempty"`
	Outage     string                   `json:"outage,omitempty"`
	Stopped    bool                     `json:"stopped,omitempty"` // beside outage
}

// Bounds of one document, in bytes: outcomes have the logs of drivers, the others
// some names and numbers.
const (
	maxAssignment = 64 << 10
	maxOutcomes   = 16 << 20
)

const (
	assignLimit = 10 * time.Second // for the assignment of a new connection, and for the outcomes of flows that were stopped
	writeLimit  = 10 * time.Second // of one document
	beginLimit  = 2 * time.Minute  // from an accepted assignment to the trial's beginning
	redialPause = 100 * time.Millisecond
)

// sharedTime is a time of this process as the other nodes of the machine understand it,
// and ownTime the other way round.
func sharedTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Unix(0, int64(wallclock.Steady()-time.Since(t))).UTC()
}

func ownTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(time.Duration(t.UnixNano()) - wallclock.Steady())
}

// withTimes changes the times of outcomes.
func withTimes(flows []executor.FlowOutcome, change func(time.Time) time.Time) []executor.FlowOutcome {
	out := slices.Clone(flows) // an empty list stays one
	for i := range out {
		f := &out[i]
		f.Ready, f.Exited, f.Connected = change(f.Ready), change(f.Exited), change(f.Connected)
	}
	return out
}

// sources implements [executor.Sources].
type sources struct{ radioControl string }

// Prepare tries again until ctx ends: the node may just be starting.
func (s sources) Prepare(ctx context.Context, role radio.Role, a executor.FlowAssignment) (executor.Source, error) {
	for {
		c, err := s.prepare(ctx, role, a)
		var refused *refusedError
		var driver *executor.ListenerError
		if err == nil || errors.As(err, &refused) || errors.As(err, &driver) {
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
	in, out := newSourceMessages(c), json.NewEncoder(c)
	if err := out.Encode(sourceMessage{Assignment: &a}); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("assignment: %w", err)
	}
	answer, err := in.next(maxAssignment)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the assignment was not answered: %w", err)
	}
	switch {
	case answer.Refused != "" && answer.Reason != "":
		_ = c.Close()
		return nil, &executor.ListenerError{Reason: answer.Reason, Message: answer.Refused}
	case answer.Refused != "":
		_ = c.Close()
		return nil, &refusedError{answer.Refused}
	case !answer.Accepted:
		_ = c.Close()
		return nil, errors.New("the assignment was not answered")
	}
	x := &source{c: unix, out: out, flows: make(chan []executor.FlowOutcome, 1), outage: make(chan executor.Outage, 1), gone: make(chan struct{})}
	go x.read(in)
	return x, nil
}

// source is a node that has accepted an assignment.
type source struct {
	c      *net.UnixConn
	out    *json.Encoder
	flows  chan []executor.FlowOutcome
	outage chan executor.Outage // empty: there was none
	gone   chan struct{}
	err    error // why, once gone is closed
}

// read takes what the node sends, until the connection ends.
func (s *source) read(in *sourceMessages) {
	defer close(s.gone)
	for {
		m, err := in.next(maxOutcomes)
		if err != nil {
			s.err = err
			return
		}
		switch {
		case m.Flows != nil && len(s.flows) == 0:
			s.flows <- m.Flows
		case (m.InOrder || m.Outage != "") && len(s.outage) == 0:
			s.outage <- executor.Outage{Text: m.Outage, Stopped: m.Stopped}
		default:
			s.err = errors.New("a document that was not expected")
			return
		}
	}
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
	began = sharedTime(began)
	if err := s.out.Encode(sourceMessage{Began: &began}); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		_ = s.c.SetReadDeadline(time.Now().Add(assignLimit))
		_ = s.c.CloseWrite()
	})()
	select {
	case flows := <-s.flows:
		return withTimes(flows, ownTime), nil
	case <-s.gone:
	}
	select {
	case flows := <-s.flows: // before the end
		return withTimes(flows, ownTime), nil
	default:
		return nil, fmt.Errorf("outcome of its flows: %w", s.err)
	}
}

// Outage implements [executor.Source].
func (s *source) Outage(ctx context.Context) (executor.Outage, error) {
	select {
	case o := <-s.outage:
		return o, nil
	case <-ctx.Done():
		return executor.Outage{}, nil
	case <-s.gone:
	}
	select {
	case o := <-s.outage:
		return o, nil
	default:
		return executor.Outage{}, s.err
	}
}

// Over implements [executor.Source].
func (s *source) Over() {
	_ = s.c.SetWriteDeadline(time.Now().Add(writeLimit))
	_ = s.out.Encode(sourceMessage{Over: true}) // a connection that has ended is an outage
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
		refusal := sourceMessage{Refused: err.Error()}
		var driver *executor.ListenerError
		if errors.As(err, &driver) {
			refusal.Reason = driver.Reason
		}
		return errors.Join(err, out.Encode(refusal))
	}
	outage := carrier.Watch(assignment)
	defer carrier.Prepare(ctx, assignment)()
	if err := out.Encode(sourceMessage{Accepted: true}); err != nil {
		return err
	}
	m, err = read(beginLimit)
	if err != nil || m.Began == nil {
		return errors.Join(errors.New("the assignment was withdrawn"), err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return carryOut(ctx, c, in, out, carrier, assignment, ownTime(*m.Began), outage)
}

// carryOut runs the flows of an assignment, and says what came of them, and of the
// listeners. It returns when the leading node has ended the connection.
func carryOut(ctx context.Context, c net.Conn, in *sourceMessages, out *json.Encoder, carrier executor.Carrier, a executor.FlowAssignment, began time.Time, outage func(context.Context, <-chan struct{}) executor.Outage) error {
	var mu sync.Mutex
	send := func(m sourceMessage) error {
		mu.Lock()
		defer mu.Unlock()
		return errors.Join(c.SetWriteDeadline(time.Now().Add(writeLimit)), out.Encode(m))
	}
	// When the leading node closes its end before it says that all flows have
	// ended, they must stop.
	cctx, cancel := context.WithCancelCause(ctx)
	over, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		if m, err := in.next(maxAssignment); err == nil && m.Over {
			close(over)
			_, _ = io.Copy(io.Discard, c) // up to its end
		}
		cancel(errors.New("the leading node stopped the attempt"))
	}()
	var watching sync.WaitGroup
	watching.Go(func() {
		o := outage(cctx, over)
		select {
		case <-over:
		default:
			if o.Text == "" {
				return // nobody asks
			}
		}
		_ = send(sourceMessage{Outage: o.Text, Stopped: o.Stopped, InOrder: o.Text == ""}) // the leading node may be gone
	})
	flows := carrier.Carry(cctx, a, began)
	if flows == nil {
		flows = []executor.FlowOutcome{}
	}
	err := send(sourceMessage{Flows: withTimes(flows, sharedTime)})
	<-closed
	watching.Wait()
	carrier.Sync()
	return err
}

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linktrial/internal/payload"
	"linktrial/protocols/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hang bounds waits that end at once unless something hangs.
const hang = 30 * time.Second

const testManifest = `
name: test
title: Test
summary: TCP on the loopback interface
version: 0.0.1
contract: 2
command: [./test]
network: tcp
features: [duration]
options:
  level: {type: int, default: 3, min: 1, max: 9, help: of no effect}
`

// testKey is the payload's of every client.
var testKey = payload.NewKey(nil, 7)

func testPayload(size int64) []byte {
	b := make([]byte, size)
	testKey.Fill(b, 0)
	return b
}

type testConn struct{ net.Conn }

func (testConn) Sample(s *contract.Sample, _ bool) {
	n := int64(contract.HeaderSize) + s.SentBytes + 1000 // more than can be
	s.AckedBytes = &n
}

func (testConn) Info() *contract.Info { return nil }

func (c testConn) Abort() {
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

type testListener struct{ net.Listener }

func (l testListener) Accept() (Conn, error) {
	c, err := l.Listener.Accept()
	return testConn{c}, err
}

// stage is a driver in this process; listener, where it is set, is open already.
type stage struct {
	listener net.Listener
	query    error
}

func (s *stage) driver() Driver {
	return Driver{
		Query: func(context.Context, *contract.Parameters) (*contract.Info, error) {
			return &contract.Info{Implementation: "test"}, s.query
		},
		Listen: func(context.Context, *contract.Parameters) (Listener, error) {
			if s.listener == nil {
				return nil, &net.OpError{Op: "listen", Err: syscall.EADDRINUSE}
			}
			return testListener{s.listener}, nil
		},
		Dial: func(ctx context.Context, p *contract.Parameters) (Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(p.Remote.Address, fmt.Sprint(p.Remote.Port)))
			if err != nil {
				return nil, err
			}
			return testConn{c}, nil
		},
	}
}

// output collects events.
type output struct {
	t       *testing.T
	mu      sync.Mutex
	events  []contract.Event
	handed  map[string][]byte // payload, by transfer
	changed chan struct{}
}

func newOutput(t *testing.T) *output {
	return &output{t: t, handed: map[string][]byte{}, changed: make(chan struct{}, 1)}
}

// payload is what has been handed over of a transfer.
func (o *output) payload(transfer string) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handed[transfer]
}

// Write takes one event, and the payload that it announces: the harness writes them at once.
func (o *output) Write(b []byte) (int, error) {
	e, size, payload, err := contract.NewOutput(bytes.NewReader(b)).Next()
	if err != nil || size+len(payload) != len(b) {
		o.t.Errorf("%.200q: %v", b, err)
		return len(b), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Event == contract.KindPayload {
		o.handed[e.Transfer] = append(o.handed[e.Transfer], payload...)
		return len(b), nil
	}
	o.events = append(o.events, *e)
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (o *output) find(kind contract.Kind, transfer string) *contract.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.events {
		if e := o.events[i]; e.Event == kind && e.Transfer == transfer {
			return &e
		}
	}
	return nil
}

func (o *output) await(kind contract.Kind, transfer string) *contract.Event {
	o.t.Helper()
	deadline := time.After(hang)
	for {
		if e := o.find(kind, transfer); e != nil {
			return e
		}
		select {
		case <-o.changed:
		case <-deadline:
			o.t.Fatalf("no %s event of transfer %q", kind, transfer)
		}
	}
}

// begin runs a driver until its context ends.
func (s *stage) begin(t *testing.T, ctx context.Context, p *contract.Parameters) (*output, <-chan int) {
	t.Helper()
	doc, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := contract.ParseManifest("driver.yaml", []byte(testManifest))
	if err != nil {
		t.Fatal(err)
	}
	out, code := newOutput(t), make(chan int, 1)
	var source *payload.Source
	if p.Role == contract.RoleClient {
		source = payload.NewSource(testKey, p.Transfer.SizeBytes)
	}
	go func() {
		code <- execute(m, s.driver(), payload.Input(doc, source), out, io.Discard, func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) })
	}()
	return out, code
}

func exit(t *testing.T, code <-chan int) int {
	t.Helper()
	select {
	case c := <-code:
		return c
	case <-time.After(hang):
		t.Fatal("the driver hangs")
		return -1
	}
}

func parameters(role contract.Role, port int, size int64, id string) *contract.Parameters {
	p := &contract.Parameters{Contract: contract.Version, Role: role, Limits: contract.Limits{ConnectMS: 20_000, TransferMS: 20_000}, SampleIntervalMS: 1}
	if role == contract.RoleServer {
		p.Local = contract.Endpoint{Address: "127.0.0.1", Port: port}
	} else {
		p.Remote = contract.Endpoint{Address: "127.0.0.1", Port: port}
		p.Transfer = contract.Transfer{ID: id, SizeBytes: size}
	}
	return p
}

func open(t *testing.T) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

func id(n int) string { return fmt.Sprintf("%032x", n) }

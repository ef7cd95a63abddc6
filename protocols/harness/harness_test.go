package harness

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

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
contract: 1
command: [./test]
network: tcp
features: [duration]
options:
  level: {type: int, default: 3, min: 1, max: 9, help: of no effect}
`

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
	probe    error
}

func (s *stage) driver() Driver {
	return Driver{
		Probe: func(context.Context, *contract.Parameters) (*contract.Info, error) {
			return &contract.Info{Implementation: "test"}, s.probe
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
	changed chan struct{}
}

func newOutput(t *testing.T) *output { return &output{t: t, changed: make(chan struct{}, 1)} }

func (o *output) Write(b []byte) (int, error) {
	e, err := contract.ParseEvent(bytes.TrimSuffix(b, []byte("\n")))
	if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
		o.t.Errorf("line %q: %v", b, err)
		return len(b), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
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
	out, code := newOutput(t), make(chan int, 1)
	go func() {
		code <- execute([]byte(testManifest), s.driver(), bytes.NewReader(doc), out, io.Discard, func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) })
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
	p := &contract.Parameters{Contract: 1, Role: role, Limits: contract.Limits{ConnectMS: 20_000, TransferMS: 20_000}, SampleIntervalMS: 1}
	if role == contract.RoleServer {
		p.Local = contract.Endpoint{Address: "127.0.0.1", Port: port}
	} else {
		p.Remote = contract.Endpoint{Address: "127.0.0.1", Port: port}
		p.Transfer = contract.Transfer{ID: id, SizeBytes: size, Seed: 7}
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

func TestTransfers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, port := open(t)
	so, sc := (&stage{listener: l}).begin(t, ctx, parameters(contract.RoleServer, port, 0, ""))
	so.await(contract.KindReady, "")
	for i, size := range []int64{0, 1, chunk - 1, chunk, chunk + 1, 8<<20 + 3} {
		p := parameters(contract.RoleClient, port, size, id(i+1))
		co, cc := (&stage{}).begin(t, t.Context(), p)
		if c := exit(t, cc); c != contract.ExitOK {
			t.Fatalf("%d bytes: exit code %d, events %+v", size, c, co.events)
		}
		r, s := co.await(contract.KindResult, p.Transfer.ID).Result, so.await(contract.KindResult, p.Transfer.ID).Result
		if r.Digest != s.Digest || r.SizeBytes != size || s.SizeBytes != size || r.Final.SentBytes != size || s.Final.SentBytes != size {
			t.Errorf("%d bytes: client %+v, server %+v", size, r, s)
		}
		if r.Final.AckedBytes == nil || *r.Final.AckedBytes != size {
			t.Errorf("%d bytes: acknowledged %v", size, r.Final.AckedBytes)
		}
		for _, e := range co.events {
			if e.Sample != nil && (*e.Sample.AckedBytes > e.Sample.SentBytes || *e.Sample.AckedBytes < 0) {
				t.Errorf("%d of %d bytes acknowledged", *e.Sample.AckedBytes, e.Sample.SentBytes)
			}
		}
		if last := co.events[len(co.events)-2]; last.Event != contract.KindSample || last.Sample.ElapsedNS != r.Final.ElapsedNS {
			t.Errorf("the event before the result is %+v, expected the final sample", last)
		}
	}
	stop()
	if c := exit(t, sc); c != contract.ExitOK {
		t.Errorf("server: exit code %d", c)
	}
}

// TestTimeBounds: what a time bounds ends by it, or by its size where that
// comes first, and is verified like any other.
func TestTimeBounds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, port := open(t)
	so, sc := (&stage{listener: l}).begin(t, ctx, parameters(contract.RoleServer, port, 0, ""))
	for i, c := range []struct{ atMost, ms int64 }{
		{contract.MaxSize, 200}, {0, 10_000}, {1, 10_000}, {openChunk, 10_000}, {3*openChunk + 1, 10_000}, {contract.MaxSize, 1},
	} {
		p := parameters(contract.RoleClient, port, c.atMost, id(i+1))
		p.Transfer.DurationMS = c.ms
		co, cc := (&stage{}).begin(t, t.Context(), p)
		if x := exit(t, cc); x != contract.ExitOK {
			t.Fatalf("%+v: exit code %d, events %+v", c, x, co.events)
		}
		r, s := co.await(contract.KindResult, p.Transfer.ID).Result, so.await(contract.KindResult, p.Transfer.ID).Result
		if r.Digest != s.Digest || r.SizeBytes != s.SizeBytes || r.Final.SentBytes != r.SizeBytes || *r.Final.AckedBytes != r.SizeBytes {
			t.Errorf("%+v: client %+v, server %+v", c, r, s)
		}
		if c.atMost < contract.MaxSize && r.SizeBytes != c.atMost {
			t.Errorf("%+v: %d bytes were sent", c, r.SizeBytes)
		}
		if c.atMost == contract.MaxSize && (r.SizeBytes == 0 || r.ElapsedNS < c.ms*1e6) {
			t.Errorf("%+v: %d bytes in %s", c, r.SizeBytes, time.Duration(r.ElapsedNS))
		}
	}
	stop()
	exit(t, sc)
}

// FuzzOpenPayload: whatever a client sends, no more is taken than it announced,
// and what is taken without fault is what its chunks say.
func FuzzOpenPayload(f *testing.F) {
	right := make([]byte, 20)
	contract.Payload(right, 7, 0)
	one := append(contract.AppendChunkLength(nil, 20), right...)
	f.Add(append(one, 0, 0, 0, 0), int64(20))
	f.Add(one, int64(19))
	f.Add([]byte{0, 0x10, 0, 1, 5}, int64(1<<30))
	f.Fuzz(func(t *testing.T, b []byte, atMost int64) {
		var got atomic.Int64
		in := incoming{c: bytes.NewReader(b), seed: 7, sum: sha256.New(), got: &got, buf: make([]byte, 64), wrong: -1}
		err := in.open(atMost)
		if n := got.Load(); n > max(0, atMost) || n > int64(len(b)) {
			t.Fatalf("%d bytes were taken of %d, announced %d", n, len(b), atMost)
		}
		if err != nil {
			return
		}
		var whole []byte
		for rest := b; ; {
			n, err := contract.ParseChunkLength(rest[:contract.ChunkLengthSize])
			if err != nil || n > len(rest)-contract.ChunkLengthSize {
				t.Fatalf("%x was taken", b)
			}
			rest = rest[contract.ChunkLengthSize:]
			if n == 0 {
				break
			}
			whole, rest = append(whole, rest[:n]...), rest[n:]
		}
		if sum := sha256.Sum256(whole); int64(len(whole)) != got.Load() || !bytes.Equal(sum[:], in.sum.Sum(nil)) || int64(contract.Verify(whole, 7, 0)) != in.wrong {
			t.Fatalf("%x: %d bytes with fault at %d, expected %x", b, got.Load(), in.wrong, whole)
		}
	})
}

func TestOpenPayload(t *testing.T) {
	for stream, want := range map[int64]int64{
		0: 0, 4: 0, 5: 1, 4 + openChunk: openChunk, 8 + openChunk: openChunk, 9 + openChunk: openChunk + 1, 3 * (4 + openChunk): 3 * openChunk,
	} {
		if got := openPayload(stream); got != want {
			t.Errorf("%d bytes of the stream are %d of payload, expected %d", stream, got, want)
		}
	}
}

// TestServerAgainstClients plays clients that do not keep the contract.
func TestServerAgainstClients(t *testing.T) {
	header := func(n int, size uint64) []byte {
		tid, _ := contract.ParseTransferID(id(n))
		return contract.Header{ID: tid, SizeBytes: size, Seed: 7}.Append(nil)
	}
	payload := func(n int) []byte {
		b := make([]byte, n)
		contract.Payload(b, 7, 0)
		return b
	}
	wrong := payload(100_000)
	wrong[77_777] ^= 1
	// An open payload in chunks of the given sizes, of which 0 is its end.
	chunked := func(n int, atMost uint64, payload []byte, chunks ...int) []byte {
		b := header(n, 0)
		tid, _ := contract.ParseTransferID(id(n))
		b = contract.Header{ID: tid, SizeBytes: atMost, Seed: 7, Open: true}.Append(b[:0])
		for _, c := range chunks {
			b = append(contract.AppendChunkLength(b, c), payload[:c]...)
			payload = payload[c:]
		}
		return b
	}
	cases := []struct {
		name   string
		send   []byte
		answer string        // after R; empty: the connection ends without
		code   contract.Code // of the error event; empty: a result, or no event where none is true
		none   bool
		text   string
	}{
		{name: "nothing", none: true},
		{name: "half a header", send: header(2, 10)[:20], none: true},
		{name: "too large", send: header(3, contract.MaxSize+1), code: contract.CodeProtocolViolation, text: "announces"},
		{name: "no payload", send: header(4, 1000), code: contract.CodeReset, text: "after 0 of 1000"},
		{name: "half a payload", send: append(header(5, 1000), payload(500)...), code: contract.CodeReset, text: "after 500 of 1000"},
		{name: "a wrong byte", send: append(header(6, 100_000), wrong...), answer: "!", code: contract.CodeCorrupted, text: "byte 77777"},
		{name: "more than announced", send: append(header(7, 10), payload(20)...), answer: "."},
		{name: "as it should be", send: append(header(8, 10), payload(10)...), answer: "."},
		{name: "open", send: chunked(9, 200_000, payload(100_000), 1, 99_990, 9, 0), answer: "."},
		{name: "open, nothing", send: chunked(10, 0, nil, 0), answer: "."},
		{name: "open, a wrong byte", send: chunked(11, 100_000, wrong, 70_000, 30_000, 0), answer: "!", code: contract.CodeCorrupted, text: "byte 77777"},
		{name: "open, no end", send: chunked(12, 1000, payload(500), 500), code: contract.CodeReset, text: "after 500 bytes, before"},
		{name: "open, half a chunk", send: chunked(13, 1000, payload(500), 500)[:contract.HeaderSize+100], code: contract.CodeReset, text: "after 96 bytes, before"},
		{name: "open, half a length", send: chunked(14, 1000, payload(500), 500, 0)[:contract.HeaderSize+506], code: contract.CodeReset, text: "after 500 bytes, before"},
		{name: "open, too large a chunk", send: contract.AppendChunkLength(chunked(15, contract.MaxSize, nil), contract.MaxChunk+1), code: contract.CodeProtocolViolation, text: "1048577"},
		{name: "open, more than announced", send: chunked(16, 999, payload(1000), 500, 500, 0), code: contract.CodeProtocolViolation, text: "at most 999"},
		{name: "open, too large", send: chunked(17, contract.MaxSize+1, nil, 0), code: contract.CodeProtocolViolation, text: "announces"},
	}
	ctx, stop := context.WithCancel(t.Context())
	l, port := open(t)
	so, sc := (&stage{listener: l}).begin(t, ctx, parameters(contract.RoleServer, port, 0, ""))
	for i, c := range cases {
		k, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = k.SetDeadline(time.Now().Add(hang))
		b := []byte{0}
		if _, err := io.ReadFull(k, b); err != nil || b[0] != contract.ByteReady {
			t.Fatalf("%s: first byte %q, %v", c.name, b, err)
		}
		if _, err := k.Write(c.send); err != nil {
			t.Fatal(err)
		}
		_ = k.(*net.TCPConn).CloseWrite() // fails where the server has reset the connection by now
		got, _ := io.ReadAll(k)           // ended by a close or a reset
		k.Close()
		if string(got) != c.answer {
			t.Errorf("%s: answer %q, expected %q", c.name, got, c.answer)
		}
		switch {
		case c.none:
		case c.code == "":
			so.await(contract.KindResult, id(i+1))
		default:
			if e := so.await(contract.KindError, id(i+1)); e.Code != c.code || !strings.Contains(e.Message, c.text) {
				t.Errorf("%s: %+v", c.name, e)
			}
			if so.find(contract.KindResult, id(i+1)) != nil {
				t.Errorf("%s: a result as well", c.name)
			}
		}
	}
	if e := so.find(contract.KindError, ""); e != nil {
		t.Errorf("an error of the whole driver: %+v", e)
	}
	stop()
	exit(t, sc)
}

// TestClientAgainstServers plays servers that do not keep the contract.
func TestClientAgainstServers(t *testing.T) {
	quiet := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	take := func(c net.Conn) { _, _ = io.CopyN(io.Discard, c, contract.HeaderSize+1000) }
	cases := []struct {
		name string
		play func(net.Conn)
		code contract.Code
		text string
	}{
		{"closes at once", func(net.Conn) {}, contract.CodeReset, "before its first byte"},
		{"another first byte", func(c net.Conn) { fmt.Fprint(c, "X"); quiet(c) }, contract.CodeProtocolViolation, "0x58"},
		{"no first byte", quiet, contract.CodeConnectTimeout, "limits.connect_ms"},
		{"no acknowledgement", func(c net.Conn) { fmt.Fprint(c, "R"); quiet(c) }, contract.CodeTransferTimeout, "limits.transfer_ms"},
		{"closes before it", func(c net.Conn) { fmt.Fprint(c, "R"); take(c) }, contract.CodeReset, "before its acknowledgement"},
		{"rejects", func(c net.Conn) { fmt.Fprint(c, "R"); take(c); fmt.Fprint(c, "!"); quiet(c) }, contract.CodeCorrupted, "other bytes"},
		{"another answer", func(c net.Conn) { fmt.Fprint(c, "R"); take(c); fmt.Fprint(c, "?"); quiet(c) }, contract.CodeProtocolViolation, "0x3f"},
		{"resets", func(c net.Conn) {
			fmt.Fprint(c, "R")
			take(c)
			_ = c.(*net.TCPConn).SetLinger(0)
		}, contract.CodeReset, "reset"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, port := open(t)
			played := make(chan struct{})
			go func() {
				defer close(played)
				k, err := l.Accept()
				if err != nil {
					return
				}
				defer k.Close()
				c.play(k)
			}()
			p := parameters(contract.RoleClient, port, 1000, id(1))
			p.Limits = contract.Limits{ConnectMS: 300, TransferMS: 300}
			out, code := (&stage{}).begin(t, t.Context(), p)
			if x := exit(t, code); x != contract.ExitFailed {
				t.Errorf("exit code %d", x)
			}
			if e := out.find(contract.KindError, id(1)); e == nil || e.Code != c.code || !strings.Contains(e.Message, c.text) {
				t.Errorf("%+v, expected %s with %q", e, c.code, c.text)
			}
			if out.find(contract.KindResult, id(1)) != nil {
				t.Error("a result as well")
			}
			<-played
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, port := open(t)
	l.Close()
	out, code := (&stage{}).begin(t, t.Context(), parameters(contract.RoleClient, port, 1, id(1)))
	if x := exit(t, code); x != contract.ExitFailed {
		t.Errorf("exit code %d", x)
	}
	if e := out.find(contract.KindError, id(1)); e == nil || e.Code != contract.CodeConnectRefused {
		t.Errorf("%+v", e)
	}
}

// TestStop: a stop in the middle of a transfer is answered by both ends.
func TestStop(t *testing.T) {
	for _, role := range []contract.Role{contract.RoleServer, contract.RoleClient} {
		t.Run(string(role), func(t *testing.T) {
			sctx, stopServer := context.WithCancel(t.Context())
			cctx, stopClient := context.WithCancel(t.Context())
			defer stopClient()
			defer stopServer()
			l, port := open(t)
			so, sc := (&stage{listener: l}).begin(t, sctx, parameters(contract.RoleServer, port, 0, ""))
			so.await(contract.KindReady, "")
			co, cc := (&stage{}).begin(t, cctx, parameters(contract.RoleClient, port, contract.MaxSize, id(1)))
			co.await(contract.KindConnected, id(1))
			so.await(contract.KindConnected, id(1))
			want := map[contract.Role]contract.Code{contract.RoleServer: contract.CodeReset, contract.RoleClient: contract.CodeReset}
			want[role] = contract.CodeAborted
			if role == contract.RoleServer {
				stopServer()
			} else {
				stopClient()
			}
			if e := co.await(contract.KindError, id(1)); e.Code != want[contract.RoleClient] {
				t.Errorf("client: %+v", e)
			}
			if e := so.await(contract.KindError, id(1)); e.Code != want[contract.RoleServer] {
				t.Errorf("server: %+v", e)
			}
			stopServer()
			if x := exit(t, cc); x != contract.ExitFailed {
				t.Errorf("client: exit code %d", x)
			}
			if x := exit(t, sc); x != contract.ExitOK {
				t.Errorf("server: exit code %d", x)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	good, err := json.Marshal(parameters(contract.RoleServer, 7001, 0, ""))
	if err != nil {
		t.Fatal(err)
	}
	with := func(options string) string {
		return strings.Replace(string(good), `"options":null`, `"options":`+options, 1)
	}
	for _, c := range []struct {
		name, document string
		probe          error
		exit           int
		code           contract.Code
	}{
		{"nothing", "", nil, 1, contract.CodeBadParameters},
		{"too much", strings.Repeat(" ", maxDocument+1), nil, 1, contract.CodeBadParameters},
		{"unknown option", with(`{"x":1}`), nil, 1, contract.CodeBadParameters},
		{"option out of range", with(`{"level":10}`), nil, 1, contract.CodeBadParameters},
		{"unsupported", string(good), Unsupported("no such thing"), 127, contract.CodeUnsupported},
		{"unsupported without a code", string(good), errors.New("no such thing"), 127, contract.CodeUnsupported},
		{"port taken", string(good), nil, 1, contract.CodeListenFailed},
	} {
		out := newOutput(t)
		x := Run([]byte(testManifest), (&stage{probe: c.probe}).driver(), strings.NewReader(c.document), out, io.Discard)
		if x != c.exit || len(out.events) != 1 || out.events[0].Code != c.code || out.events[0].Message == "" {
			t.Errorf("%s: exit code %d, %+v", c.name, x, out.events)
		}
	}
	out := newOutput(t)
	bounded := parameters(contract.RoleClient, 7001, 1, id(1))
	bounded.Transfer.DurationMS = 1
	doc, err := json.Marshal(bounded)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(testManifest, "features: [duration]\n", "", 1)
	if x := Run([]byte(without), (&stage{}).driver(), bytes.NewReader(doc), out, io.Discard); x != contract.ExitUnsupported || out.events[0].Code != contract.CodeUnsupported {
		t.Errorf("a duration that the manifest does not have: exit code %d, %+v", x, out.events)
	}
	out = newOutput(t)
	if x := Run([]byte("name: ["), Driver{}, strings.NewReader(""), out, io.Discard); x != 1 || out.events[0].Code != contract.CodeInternal {
		t.Errorf("a broken manifest: exit code %d, %+v", x, out.events)
	}
}

// TestSchedule: the interval doubles as documented, and missed beats are left out.
func TestSchedule(t *testing.T) {
	s := schedule{next: 100 * time.Millisecond, interval: 100 * time.Millisecond}
	n := 0
	for s.next <= 10*time.Hour {
		if n == 499 && s.next != 50*time.Second || n == 500 && s.next != 50200*time.Millisecond || n == 750 && s.next != 100*time.Second+400*time.Millisecond {
			t.Errorf("sample %d is due at %s", n+1, s.next)
		}
		s.taken(s.next)
		n++
	}
	if n < 2500 || n > 3500 {
		t.Errorf("%d samples in ten hours", n)
	}
	s = schedule{next: time.Second, interval: time.Second}
	for at, want := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, 7500 * time.Millisecond: 8 * time.Second, 9 * time.Second: 10 * time.Second,
	} {
		x := s
		if x.taken(at); x.next != want {
			t.Errorf("after a sample at %s the next is due at %s, expected %s", at, x.next, want)
		}
	}
}

func TestLongMessagesAndBadSamples(t *testing.T) {
	var b bytes.Buffer
	log := new(bytes.Buffer)
	r := &events{w: &b, log: newLogger(log)}
	r.fail("", contract.CodeInternal, errors.New(strings.Repeat("é", contract.MaxLine)+"\xff"))
	r.write(&contract.Event{Event: contract.KindSample, Transfer: id(1), Sample: &contract.Sample{More: map[string]float64{"x": math.NaN()}}})
	r.write(&contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: strings.Repeat("x", contract.MaxLine)}})
	sc := bufio.NewScanner(&b)
	sc.Buffer(nil, 2*contract.MaxLine)
	var kinds []contract.Kind
	for sc.Scan() {
		e, err := contract.ParseEvent(sc.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Event)
	}
	if fmt.Sprint(kinds) != "[error error]" || strings.Count(log.String(), "event cannot be written") != 2 {
		t.Errorf("%v, log %s", kinds, log)
	}
}

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err        error
		code, dial contract.Code
	}{
		{io.EOF, contract.CodeReset, contract.CodeReset},
		{&net.OpError{Err: os.NewSyscallError("read", syscall.ECONNRESET)}, contract.CodeReset, contract.CodeReset},
		{syscall.EHOSTUNREACH, contract.CodeUnreachable, contract.CodeUnreachable},
		{syscall.ETIMEDOUT, contract.CodeReset, contract.CodeConnectTimeout},
		{fmt.Errorf("x: %w", Unsupported("y")), contract.CodeUnsupported, contract.CodeUnsupported},
		{context.DeadlineExceeded, contract.CodeInternal, contract.CodeConnectTimeout},
		{errors.New("?"), contract.CodeInternal, contract.CodeInternal},
	} {
		if got := codeOf(c.err, contract.CodeInternal); got != c.code {
			t.Errorf("%v: %s, expected %s", c.err, got, c.code)
		}
		if got := dialCode(c.err); got != c.dial {
			t.Errorf("dial: %v: %s, expected %s", c.err, got, c.dial)
		}
	}
}

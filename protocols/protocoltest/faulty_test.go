package protocoltest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"linktrial/internal/testkind"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// faultVariable makes this test program a driver with the named fault.
const faultVariable = "LINKTRIAL_TEST_FAULT"

func TestMain(m *testing.M) {
	if f := os.Getenv(faultVariable); f != "" {
		os.Exit(faultyDriver(f))
	}
	testkind.AtOnce(10)
	code := m.Run()
	// internal/process keeps one thread for as long as the process lives.
	if err := goleak.Find(goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const faultyManifest = `
name: faulty
title: Faulty
summary: TCP with one fault
version: 0.0.1
contract: 2
command: [./driver]
network: tcp
roles: [client, server, relay]
features: [duration, dscp]
options:
  flavour: {type: string, default: plain, from_node: true, help: its only choice is plain}
  number: {type: int, min: 1, max: 10, help: of no effect}
  colour: {type: string, choices: [red, green], help: of no effect}
`

var spun atomic.Int64

// faultyDriver is a correct driver but for one fault.
func faultyDriver(fault string) int {
	beforeDocument(fault)
	in := bufio.NewReader(os.Stdin)
	doc, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	var p contract.Parameters
	_ = json.Unmarshal(doc, &p)
	server, client := p.Role == contract.RoleServer, p.Role == contract.RoleClient

	edit := func(f func(map[string]any)) {
		m := map[string]any{}
		if json.Unmarshal(doc, &m) == nil {
			f(m)
			doc, _ = json.Marshal(m)
		}
	}
	d := tcpDriver(fault)
	if fault == "no-retransmission" {
		d.Listen, d.Dial = udpListen, udpDial
	}
	if refuses(fault, doc) {
		return 1
	}
	code := func(c int) int { return c }
	out := &eventFilter{w: os.Stdout, each: func(*contract.Event) bool { return true }}
	onResult := func(f func(*contract.Result)) {
		out.each = func(e *contract.Event) bool {
			if e.Result != nil {
				f(e.Result)
			}
			return true
		}
	}
	drop := func(match func(*contract.Event) bool) { out.each = func(e *contract.Event) bool { return !match(e) } }

	clockFault(fault, &p, edit, out)
	linkFault(fault, &p, edit, drop, &code)
	switch fault {
	case "silent-query":
		drop(func(e *contract.Event) bool { return p.Role == contract.RoleQuery })
	case "any-version":
		edit(func(m map[string]any) { m["contract"] = 2 })
	case "any-role":
		edit(func(m map[string]any) {
			if m["role"] == "router" {
				m["role"] = "query"
			}
		})
	case "relay-tells":
		if p.Role == contract.RoleRelay {
			out.each = func(*contract.Event) bool {
				fmt.Println(`{"event":"connected","transfer":"000102030405060708090a0b0c0d0e0f"}`)
				return true
			}
		}
	case "panics":
		drop(func(e *contract.Event) bool { return e.Code == contract.CodeBadParameters })
		code = func(c int) int { return 2 * c }
	case "any-option":
		edit(func(m map[string]any) { m["options"] = map[string]any{} })
	case "aware-of-parent", "aware-of-descent", "aware-of-processes", "aware-of-home", "aware-of-privileges", "aware-of-sizes", "aware-of-counters":
		if !recognised(fault, &p) {
			onResult(func(r *contract.Result) { r.ElapsedNS += int64(time.Hour) })
		}
	case "slow-clock":
		onResult(func(r *contract.Result) { r.ElapsedNS += int64(time.Hour) })
	case "fast-clock":
		onResult(func(r *contract.Result) { r.ElapsedNS /= 100 })
	case "no-final":
		onResult(func(r *contract.Result) { r.Final = nil })
	case "no-result-of-server":
		drop(func(e *contract.Event) bool { return server && e.Result != nil })
	case "wrong-size":
		onResult(func(r *contract.Result) { r.SizeBytes++ })
	case "no-samples":
		drop(func(e *contract.Event) bool { return e.Sample != nil })
	case "final-sample-kept":
		drop(func(e *contract.Event) bool {
			return e.Sample != nil && client && e.Sample.SentBytes == p.Transfer.SizeBytes
		})
	case "no-duration":
		edit(func(m map[string]any) {
			if t, ok := m["transfer"].(map[string]any); ok {
				delete(t, "duration_ms")
			}
		})
	case "short-duration":
		edit(func(m map[string]any) {
			if t, ok := m["transfer"].(map[string]any); ok && t["duration_ms"] != nil {
				t["duration_ms"] = 1
			}
		})
	case "any-duration":
		edit(func(m map[string]any) {
			if t, ok := m["transfer"].(map[string]any); ok && t["duration_ms"] != nil {
				t["duration_ms"] = 1000
			}
		})
	case "counts-lengths":
		onResult(func(r *contract.Result) {
			if client && p.Transfer.DurationMS > 0 {
				r.SizeBytes += contract.ChunkLengthSize
			}
		})
	case "samples-go-back":
		var n int64
		out.each = func(e *contract.Event) bool {
			if e.Sample != nil {
				n++
				e.Sample.ElapsedNS = int64(time.Hour) - n
			}
			return true
		}
	case "too-many-samples":
		edit(func(m map[string]any) { m["sample_interval_ms"] = 1 })
		out.each = func(e *contract.Event) bool { out.times = 30; return true } // also where a busy machine misses beats
	case "makes-up":
		out.block = func(b []byte, _ int) []byte { clear(b); return b }
	case "leaves-out-end":
		out.block = func(b []byte, at int) []byte {
			if at+len(b) > mib {
				clear(b[len(b)-1:])
			}
			return b
		}
	case "hands-over-less":
		out.block = func(b []byte, at int) []byte { return b[:len(b)-1] }
	case "endless-transfer":
		edit(func(m map[string]any) { m["limits"].(map[string]any)["transfer_ms"] = 0 })
	case "wrong-code":
		out.each = func(e *contract.Event) bool {
			if e.Code == contract.CodeReset {
				e.Code = contract.CodeInternal
			}
			return true
		}
	case "buffers-lines": // until there are many, or an outcome
		b := bufio.NewWriterSize(os.Stdout, 8*kib)
		out.w = b
		defer b.Flush()
		code = func(c int) int { b.Flush(); return c }
		out.each = func(e *contract.Event) bool {
			if e.Event == contract.KindReady {
				b.Flush()
				out.w = os.Stdout
			} else {
				out.w = b
			}
			return true
		}
	case "ignores-sigterm":
		// Again with each event: the harness listens to the signal before its first.
		out.each = func(*contract.Event) bool {
			signal.Ignore(syscall.SIGTERM)
			return true
		}
	case "aborts-silently":
		drop(func(e *contract.Event) bool { return server && e.Code == contract.CodeAborted })
	case "busy":
		if server || p.Role == contract.RoleRelay {
			go func() {
				for x := 0; ; x++ {
					spun.Store(int64(x))
				}
			}()
		}
	case "garbage":
		fmt.Println("starting up ...")
	case "long-line":
		code = func(c int) int { fmt.Println(`{"event":"` + strings.Repeat("x", contract.MaxLine)); return c }
	case "no-newline":
		code = func(c int) int { fmt.Print("bye"); return c }
	case "exit-3":
		code = func(c int) int {
			if client {
				return 3
			}
			return c
		}
	case "unexplained-127":
		drop(func(e *contract.Event) bool { return true })
		code = func(int) int { return 127 }
	case "leaves-child", "leaves-daemon":
		if server {
			c := exec.Command("sleep", "100")
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: fault == "leaves-daemon"}
			if err := c.Start(); err != nil {
				return 1
			}
		}
	}
	if isOfProbe(fault) {
		d = harness.Driver{Query: d.Query, Packets: probePackets(fault)}
	}
	return code(harness.Run([]byte(manifestOf(fault)), d, io.MultiReader(bytes.NewReader(append(bytes.TrimRight(doc, "\n"), '\n')), in), out, os.Stderr))
}

// eventFilter changes events on their way out.
type eventFilter struct {
	w     io.Writer
	each  func(*contract.Event) bool
	block func(b []byte, at int) []byte // changes payload that is handed over; nil: nothing
	at    int                           // payload handed over so far
	times int
}

func (f *eventFilter) Write(b []byte) (int, error) {
	var e contract.Event
	line, payload, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	if e.Event == contract.KindPayload {
		return len(b), f.hand(&e, payload)
	}
	if !f.each(&e) {
		return len(b), nil
	}
	line, err := json.Marshal(&e)
	if err != nil {
		return 0, err
	}
	for range max(1, f.times) {
		if _, err := f.w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
		if e.Sample == nil {
			break
		}
	}
	return len(b), nil
}

// hand writes a block.
func (f *eventFilter) hand(e *contract.Event, b []byte) error {
	at := f.at
	f.at += len(b)
	if f.block != nil {
		b = f.block(bytes.Clone(b), at)
	}
	if e.Bytes = len(b); e.Bytes == 0 {
		return nil
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = f.w.Write(append(append(line, '\n'), b...))
	}
	return err
}

func tcpDriver(fault string) harness.Driver {
	address := func(e contract.Endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }
	return harness.Driver{
		Query: func(_ context.Context, p *contract.Parameters) (*contract.Info, error) {
			there := "plain"
			switch fault {
			case "unsupported":
				return nil, harness.Unsupported("this kernel is too old")
			case "other-flavour":
				there = "other"
			}
			f := p.Options["flavour"]
			if p.Role == contract.RoleQuery {
				f = there
			}
			if f != there && fault != "any-flavour" {
				return nil, harness.Unsupported("there is no flavour %v", f)
			}
			return &contract.Info{Implementation: "faulty", Choices: map[string][]string{"flavour": {there}}}, nil
		},
		Listen: func(ctx context.Context, p *contract.Parameters) (harness.Listener, error) {
			var lc net.ListenConfig
			lc.SetMultipathTCP(false)
			lc.Control = func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) {
					if fault == "shares-port" {
						_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
					}
					if fault != "unmarked-server" {
						_ = harness.MarkSocket(int(fd), p.DSCP)
					}
				})
			}
			if fault == "opens-late" {
				return openLate(lc, address(p.Local))
			}
			l, err := lc.Listen(ctx, "tcp", address(p.Local))
			if err != nil {
				return nil, err
			}
			return &faultyListener{Listener: l, fault: fault, free: make(chan struct{}, 1)}, nil
		},
		Relay: relayOf(fault),
		Dial: func(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
			if fault == "connects-for-ever" {
				for {
					if c, err := net.Dial("tcp", address(p.Remote)); err == nil {
						return &faultyConn{Conn: c, fault: fault}, nil
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			dialer := net.Dialer{Control: dialControl(fault, p.DSCP)}
			if p.Local.Address != "" {
				dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(p.Local.Address)}
			}
			for {
				c, err := dialer.DialContext(ctx, "tcp", address(p.Remote))
				if err == nil {
					return &faultyConn{Conn: c, fault: fault}, nil
				}
				if !asksAgain(ctx, fault, err) {
					return nil, err
				}
			}
		},
	}
}

type faultyListener struct {
	net.Listener
	fault string
	free  chan struct{} // of a serial server
	count atomic.Int64
}

func (l *faultyListener) Accept() (harness.Conn, error) {
	if l.fault == "tires" && l.count.Add(1) > 10 {
		return nil, errors.New("enough")
	}
	if l.fault == "serial" {
		l.free <- struct{}{}
	}
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: c, fault: l.fault, l: l}, nil
}

type faultyConn struct {
	net.Conn
	fault string
	l     *faultyListener // nil at the client
	got   int             // bytes read
	again int64           // retransmissions at the last sample
	wrote bool
	idle  *time.Timer
}

func (c *faultyConn) Read(b []byte) (int, error) {
	if c.fault == "clock-ends-at-ack" && c.l == nil && c.got > 0 {
		c.awaitAcknowledged()
	}
	if c.fault == "idle-timer-of-server" && c.l != nil {
		if c.idle == nil {
			c.idle = time.AfterFunc(10*time.Second, c.Abort)
		}
		defer c.idle.Reset(10 * time.Second)
	}
	n, err := c.Conn.Read(b)
	c.got += n
	if c.fault == "dies-with-client" && c.l != nil && err != nil {
		os.Exit(1)
	}
	return n, err
}

func (c *faultyConn) Sample(x *contract.Sample, sender bool) {
	if sender && c.fault == "counts-since-sample" {
		all := int64(c.tcpInfo().Total_retrans)
		since := all - c.again
		x.Retransmits, c.again = &since, all
	}
	if sender && (c.fault == "transmits-half" || c.fault == "transmits-all-again") {
		t := c.tcpInfo()
		all, acked, again := int64(t.Bytes_sent), max(0, int64(t.Bytes_acked)-1), int64(0)
		if c.fault == "transmits-half" {
			all /= 2
		} else {
			again = all + 1
		}
		x.TransmittedBytes, x.RetransmittedBytes, x.AckedBytes = &all, &again, &acked
	}
}

func (c *faultyConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote = true
	if c.l != nil && len(b) == 1 && b[0] == contract.ByteAccepted {
		switch c.fault {
		case "forgets":
			c.Abort()
		case "closes-first":
			_ = c.Close()
		}
	}
	return n, err
}

func (c *faultyConn) SetDeadline(t time.Time) error {
	if c.fault == "no-first-byte-limit" && c.l == nil && !c.wrote {
		return nil
	}
	return c.Conn.SetDeadline(t)
}

func (c *faultyConn) Info() *contract.Info { return nil }
func (c *faultyConn) Close() error {
	switch {
	case c.fault == "serial" && c.l != nil:
		<-c.l.free
	case c.fault == "never-closes" && c.l != nil:
		return nil
	case c.fault == "closes-late" && c.l == nil:
		time.Sleep(8 * time.Second)
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	_ = c.Conn.(*net.TCPConn).SetLinger(-1)
	return c.Conn.Close()
}

func (c *faultyConn) Abort() {
	switch {
	case c.fault == "never-aborts" && c.l != nil:
		return
	case c.fault == "drains":
		_ = c.Conn.(*net.TCPConn).SetLinger(-1)
	default:
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
	}
	if c.fault == "serial" && c.l != nil {
		<-c.l.free
	}
	_ = c.Conn.Close()
}

package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

// TestServerAgainstClients plays clients that do not keep the contract.
func TestServerAgainstClients(t *testing.T) {
	header := func(n int, size uint64) []byte {
		tid, _ := contract.ParseTransferID(id(n))
		return contract.Header{ID: tid, SizeBytes: size}.Append(nil)
	}
	payload := func(n int) []byte {
		b := make([]byte, n)
		copy(b, bytes.Repeat([]byte("payload "), n/8+1))
		return b
	}
	// An open payload in chunks of the given sizes, of which 0 is its end.
	chunked := func(n int, atMost uint64, payload []byte, chunks ...int) []byte {
		b := header(n, 0)
		tid, _ := contract.ParseTransferID(id(n))
		b = contract.Header{ID: tid, SizeBytes: atMost, Open: true}.Append(b[:0])
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
		{name: "more than announced", send: append(header(6, 10), payload(20)...), answer: "."},
		{name: "as it should be", send: append(header(7, 10), payload(10)...), answer: "."},
		{name: "open", send: chunked(8, 200_000, payload(100_000), 1, 99_990, 9, 0), answer: "."},
		{name: "open, nothing", send: chunked(9, 0, nil, 0), answer: "."},
		{name: "open, no end", send: chunked(10, 1000, payload(500), 500), code: contract.CodeReset, text: "after 500 bytes, before"},
		{name: "open, half a chunk", send: chunked(11, 1000, payload(500), 500)[:contract.HeaderSize+100], code: contract.CodeReset, text: "after 96 bytes, before"},
		{name: "open, half a length", send: chunked(12, 1000, payload(500), 500, 0)[:contract.HeaderSize+506], code: contract.CodeReset, text: "after 500 bytes, before"},
		{name: "open, too large a chunk", send: contract.AppendChunkLength(chunked(13, contract.MaxSize, nil), contract.MaxChunk+1), code: contract.CodeProtocolViolation, text: "1048577"},
		{name: "open, more than announced", send: chunked(14, 999, payload(1000), 500, 500, 0), code: contract.CodeProtocolViolation, text: "at most 999"},
		{name: "open, too large", send: chunked(15, contract.MaxSize+1, nil, 0), code: contract.CodeProtocolViolation, text: "announces"},
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
		{"rejects", func(c net.Conn) { fmt.Fprint(c, "R"); take(c); fmt.Fprint(c, "!"); quiet(c) }, contract.CodeProtocolViolation, "0x21"},
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

package cxxtest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/cxx/cxxtest"
)

func TestMain(m *testing.M) { cxxtest.Main(m) }

// The shared transfer in C++, over TCP, so that these tests can be either end.

func id(n int) string { return fmt.Sprintf("%032x", n) }

func header(t testing.TB, n int, size uint64, open bool) []byte {
	t.Helper()
	tid, err := contract.ParseTransferID(id(n))
	if err != nil {
		t.Fatal(err)
	}
	return contract.Header{ID: tid, SizeBytes: size, Open: open}.Append(nil)
}

func payload(n int) []byte {
	b := make([]byte, n)
	cxxtest.PayloadKey.Fill(b, 0)
	return b
}

// chunked is an open payload in chunks of the given sizes, of which 0 is its end.
func chunked(payload []byte, sizes ...int) []byte {
	var b []byte
	for _, n := range sizes {
		b = append(contract.AppendChunkLength(b, n), payload[:n]...)
		payload = payload[n:]
	}
	return b
}

// exchange plays a client that sends all that it has to send and then listens.
func exchange(t testing.TB, port int, send []byte) (answer string) {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(cxxtest.Hang)); err != nil {
		t.Fatal(err)
	}
	b := []byte{0}
	if _, err := io.ReadFull(c, b); err != nil || b[0] != contract.ByteReady {
		t.Fatalf("first byte %q, %v", b, err)
	}
	_, _ = c.Write(send) // a server that has seen enough resets the connection, maybe before the end
	_ = c.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(c)
	return string(got)
}

// end waits for how a server ends a transfer.
func end(t testing.TB, server *cxxtest.Process, transfer string) *contract.Event {
	t.Helper()
	timeout := time.After(cxxtest.Hang)
	for {
		select {
		case e, ok := <-server.Events:
			if !ok {
				t.Fatal("the server ended")
			}
			if e.Transfer == transfer && (e.Event == contract.KindResult || e.Event == contract.KindError) {
				return e
			}
		case <-timeout:
			t.Fatalf("no end of transfer %s", transfer)
		}
	}
}

// TestServerAgainstClients plays clients that do not keep the contract.
func TestServerAgainstClients(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "cxxtcp")
	port := cxxtest.FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	sized := func(size uint64, b []byte) func(int) []byte {
		return func(n int) []byte { return append(header(t, n, size, false), b...) }
	}
	open := func(most uint64, b []byte) func(int) []byte {
		return func(n int) []byte { return append(header(t, n, most, true), b...) }
	}
	for i, c := range []struct {
		name   string
		send   func(n int) []byte
		answer string
		code   contract.Code // of the error event; empty: a result, of so many bytes
		size   int64
		text   string
	}{
		{"sized", sized(10, payload(10)), ".", "", 10, ""},
		{"sized, half", sized(1000, payload(500)), "", contract.CodeReset, 0, "after 500 of 1000"},
		{"sized, too large", sized(contract.MaxSize+1, nil), "", contract.CodeProtocolViolation, 0, "announces"},
		{"open", open(200_000, chunked(payload(100_000), 1, 99_990, 9, 0)), ".", "", 100_000, ""},
		{"open, all of it", open(contract.MaxChunk+5, chunked(payload(contract.MaxChunk+5), contract.MaxChunk, 5, 0)), ".", "", contract.MaxChunk + 5, ""},
		{"open, nothing", open(0, chunked(nil, 0)), ".", "", 0, ""},
		{"open, more after the end", open(10, append(chunked(payload(10), 10, 0), "more"...)), ".", "", 10, ""},
		{"open, no end", open(1000, chunked(payload(500), 500)), "", contract.CodeReset, 0, "after 500 bytes, before"},
		{"open, half a chunk", open(1000, chunked(payload(500), 500)[:100]), "", contract.CodeReset, 0, "after 96 bytes, before"},
		{"open, half a length", open(1000, chunked(payload(500), 500, 0)[:506]), "", contract.CodeReset, 0, "after 500 bytes, before"},
		{"open, too large a chunk", open(contract.MaxSize, contract.AppendChunkLength(nil, contract.MaxChunk+1)), "", contract.CodeProtocolViolation, 0, "1048577"},
		{"open, too large by all bits", open(contract.MaxSize, []byte("\xff\xff\xff\xff")), "", contract.CodeProtocolViolation, 0, "4294967295"},
		{"open, more than announced", open(999, chunked(payload(1000), 500, 500, 0)), "", contract.CodeProtocolViolation, 0, "at most 999"},
		{"open, one of nothing", open(0, chunked(payload(1), 1, 0)), "", contract.CodeProtocolViolation, 0, "at most 0"},
		{"open, too large", open(contract.MaxSize+1, chunked(nil, 0)), "", contract.CodeProtocolViolation, 0, "announces"},
	} {
		if got := exchange(t, port, c.send(i+1)); got != c.answer {
			t.Errorf("%s: answer %q, expected %q", c.name, got, c.answer)
		}
		e := end(t, server, id(i+1))
		if e.Code != c.code || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: %s (%s)", c.name, e.Code, e.Message)
		}
		if r := e.Result; r != nil {
			if sum := sha256.Sum256(payload(int(c.size))); r.SizeBytes != c.size || r.Digest != hex.EncodeToString(sum[:]) || r.Final.SentBytes != c.size {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
	}
	for _, send := range [][]byte{nil, header(t, 100, 10, true)[:20]} {
		if got := exchange(t, port, send); got != "" {
			t.Errorf("answer %q to %d bytes of a header", got, len(send))
		}
	}
}

// TestClientOnTheWire reads what a client sends, byte by byte: chunks that are
// the payload's, and an end.
func TestClientOnTheWire(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "cxxtcp")
	for _, c := range []struct {
		unit int64
		most int64
		ms   int64
	}{{0, 1 << 40, 200}, {0, 10_000, 60_000}, {1, 5000, 60_000}, {1452, 100_000, 60_000}, {3000, 2996, 60_000}, {65536, 200_000, 60_000}, {0, 0, 60_000}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			p := d.Parameters(contract.RoleClient, l.Addr().(*net.TCPAddr).Port)
			p.Transfer = contract.Transfer{ID: id(1), SizeBytes: c.most, DurationMS: c.ms}
			if c.unit > 0 {
				p.Options["write_unit"] = c.unit
			}
			client := d.Start(t, cxxtest.Document(t, p))
			k, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			if err := k.SetDeadline(time.Now().Add(cxxtest.Hang)); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Write([]byte{contract.ByteReady}); err != nil {
				t.Fatal(err)
			}
			h := make([]byte, contract.HeaderSize)
			if _, err := io.ReadFull(k, h); err != nil || !bytes.Equal(h, header(t, 1, uint64(c.most), true)) {
				t.Fatalf("header %x, %v", h, err)
			}
			var whole []byte
			for length := make([]byte, contract.ChunkLengthSize); ; {
				if _, err := io.ReadFull(k, length); err != nil {
					t.Fatal(err)
				}
				n, err := contract.ParseChunkLength(length)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				b := make([]byte, n)
				if _, err := io.ReadFull(k, b); err != nil {
					t.Fatal(err)
				}
				whole = append(whole, b...)
			}
			if !bytes.Equal(whole, payload(len(whole))) || int64(len(whole)) > c.most || c.most < 1<<40 && int64(len(whole)) != c.most {
				t.Errorf("%d bytes of at most %d, or other ones than were given", len(whole), c.most)
			}
			if _, err := k.Write([]byte{contract.ByteAccepted}); err != nil {
				t.Fatal(err)
			}
			events, code := client.Wait()
			if code != contract.ExitOK {
				t.Fatalf("exit code %d", code)
			}
			sum := sha256.Sum256(whole)
			r := cxxtest.Only(t, events, contract.KindResult).Result
			if r.SizeBytes != int64(len(whole)) || r.Digest != hex.EncodeToString(sum[:]) || r.Final.SentBytes != r.SizeBytes || *r.Final.AckedBytes != r.SizeBytes {
				t.Errorf("%+v, final %+v", r, r.Final)
			}
		})
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	cxxtest.CheckBounded(t, cxxtest.Build(t, "cxxtcp"))
}

// FuzzServer: whatever follows the header of an open payload, the server takes
// it for what the contract says it is.
func FuzzServer(f *testing.F) {
	f.Add(chunked(payload(20), 20, 0), uint64(20))
	f.Add(chunked(payload(20), 20), uint64(19))
	f.Add([]byte{0, 0x10, 0, 1, 5}, uint64(1<<30))
	f.Add(chunked(payload(300), 1, 2, 297, 0), uint64(contract.MaxSize))
	f.Add(chunked(append(payload(8), 'x'), 9, 0), uint64(9))
	d := cxxtest.Build(f, "cxxtcp")
	port := cxxtest.FreePort(f)
	server := d.Serve(f, d.Parameters(contract.RoleServer, port))
	n := 0
	f.Fuzz(func(t *testing.T, b []byte, most uint64) {
		most %= contract.MaxSize + 2
		n++
		answer := exchange(t, port, append(header(t, n, most, true), b...))
		e := end(t, server, id(n))
		code, size := meaning(b, most)
		if e.Code != code || e.Result != nil && e.Result.SizeBytes != size {
			t.Fatalf("%x of at most %d: %s (%s), %+v; expected %q, %d bytes", b, most, e.Code, e.Message, e.Result, code, size)
		}
		if want := map[contract.Code]string{"": "."}[code]; answer != want {
			t.Fatalf("%x of at most %d: answer %q, expected %q", b, most, answer, want)
		}
	})
}

// meaning is what the contract makes of an open payload that ends with b.
func meaning(b []byte, most uint64) (contract.Code, int64) {
	if most > contract.MaxSize {
		return contract.CodeProtocolViolation, 0
	}
	var whole []byte
	for {
		if len(b) < contract.ChunkLengthSize {
			return contract.CodeReset, 0
		}
		n, err := contract.ParseChunkLength(b[:contract.ChunkLengthSize])
		b = b[contract.ChunkLengthSize:]
		switch {
		case err != nil || uint64(len(whole)+n) > most:
			return contract.CodeProtocolViolation, 0
		case n > len(b):
			return contract.CodeReset, 0
		case n == 0:
			return "", int64(len(whole))
		}
		whole, b = append(whole, b[:n]...), b[n:]
	}
}

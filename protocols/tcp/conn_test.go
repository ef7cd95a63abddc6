package main

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
)

// TestNotSent: of a transfer that a time bounds the kernel takes little more
// than it can send; of any other it takes what its buffer holds.
func TestNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	unsent := func(durationMS int64) int {
		p := &contract.Parameters{Role: contract.RoleClient, Options: map[string]any{"send_buffer": int64(64 << 10)},
			Transfer: contract.Transfer{DurationMS: durationMS}}
		p.Remote = contract.Endpoint{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
		c, err := dial(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Abort()
		// Nobody reads there: the receiver's window closes, and the sender's queue fills.
		k, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		b := make([]byte, 4<<10)
		for last := -1; ; {
			if err := c.SetDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = c.Write(b)
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			err = nil
			var n int
			if cerr := c.(*conn).raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD) }); cerr != nil || err != nil {
				t.Fatal(cerr, err)
			}
			if n == last { // it takes no more
				return n
			}
			last = n
		}
	}
	if n := unsent(1000); n < notSent/4 || n > notSent {
		t.Errorf("%d bytes are unsent of a transfer that a time bounds, expected half of %d and a chunk at most", n, notSent)
	}
	if n := unsent(0); n < notSent+8<<10 {
		t.Errorf("%d bytes are unsent of a transfer that its size bounds, expected what the buffer holds", n)
	}
}

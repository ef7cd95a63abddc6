package link

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"linktrial/internal/process"
)

// TestHoldAfter: what would pass beyond the bound is held with all after it, and
// a moment of release lies before each of these packets arrives.
func TestHoldAfter(t *testing.T) {
	t.Parallel()
	for bound, before := range map[int64]int{2 * 972: 2, 2*972 - 1: 1, 0: 0, -1: 0} {
		l, send, receive := testLink(t)
		l.Begin(3 * 972)
		l.Up.Change(Conditions{Hold: HoldAfter(bound)})
		start := time.Now()
		for i := range 4 {
			send(udpPacket(clientAddress, 1, i))
		}
		settle(t, l.Up)
		up, down := l.Traffic()
		if got := receive(); len(got) != before || up.Held != 4-before || up.Passed != int64(before)*972 || up.Delivered != int64(before) {
			t.Errorf("HoldAfter(%d): %v arrived, %+v", bound, got, up)
		}
		if up.Content != 4*972 || up.Came.Before(start) || up.Marked.Before(up.Came) || up.First.IsZero() != (before == 0) || !up.Answered.IsZero() || down.Packets != 0 {
			t.Errorf("HoldAfter(%d): up %+v, down %+v", bound, up, down)
		}
		released := l.Up.Release()
		settle(t, l.Up)
		up = l.Up.Traffic()
		if got := receive(); len(got) != 4-before || got[0] != before || got[len(got)-1] != 3 || up.Passed != 4*972 || up.Held != 0 {
			t.Errorf("HoldAfter(%d), released: %v, %+v", bound, got, up)
		}
		if before == 0 && up.First.Before(released) {
			t.Errorf("HoldAfter(%d): the first packet was handed on at %s, before it was released at %s", bound, up.First, released)
		}
	}
}

// TestHeldIsLostWithBegin: a new measurement has nothing of the one before.
func TestHeldIsLostWithBegin(t *testing.T) {
	t.Parallel()
	l, send, receive := testLink(t)
	l.Up.Change(Conditions{Hold: HoldAfter(-1)})
	send(udpPacket(clientAddress, 1, 0))
	settle(t, l.Up)
	l.Begin(0)
	if up := l.Up.Traffic(); up.Packets != 0 || up.Held != 0 || !up.Came.IsZero() || len(up.Sources) != 0 {
		t.Errorf("after Begin: %+v", up)
	}
	l.Up.Release()
	send(udpPacket(clientAddress, 1, 1))
	settle(t, l.Up)
	if got := receive(); len(got) != 1 || got[0] != 1 {
		t.Errorf("got %v, expected 1", got)
	}
}

func TestLose(t *testing.T) {
	t.Parallel()
	l, send, receive := testLink(t)
	l.Up.Change(Conditions{Lose: func(p Packet) bool { return p.Came > 2*972 && p.Number%2 == 0 }})
	for i := range 5 {
		send(udpPacket(clientAddress, 1, i))
	}
	settle(t, l.Up)
	if got := receive(); fmt.Sprint(got) != "[0 1 3]" {
		t.Errorf("got %v, expected 0, 1, 3", got)
	}
}

// TestRealLink: between two programs' sockets, an answer comes after the release
// of what it answers.
func TestRealLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	t.Parallel()
	l, err := New([]string{clientAddress, clientAddress2}, []string{serverAddress})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket := func(ns *os.File, address string) (c net.PacketConn) {
		t.Helper()
		err := process.InNamespace(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), func() (err error) {
			c, err = net.ListenPacket("udp4", address+":7000")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	client, server := socket(l.Client, clientAddress2), socket(l.Server, serverAddress)
	defer client.Close()
	defer server.Close()
	l.Begin(5)
	l.Up.Change(Conditions{Hold: HoldAfter(-1)})
	before := time.Now()
	if _, err := client.WriteTo([]byte("hello"), server.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	for l.Up.Traffic().Held == 0 {
		changed := l.Changed()
		if l.Up.Traffic().Held == 0 {
			<-changed
		}
	}
	if up, down := l.Traffic(); up.Content != 5 || up.Came.Before(before) || !up.Marked.Equal(up.Came) || up.Delivered != 0 || down.Packets != 0 {
		t.Errorf("held: up %+v, down %+v", up, down)
	}
	released := l.Up.Release()
	b := make([]byte, 10)
	n, from, err := server.ReadFrom(b)
	if err != nil || string(b[:n]) != "hello" || from.String() != client.LocalAddr().String() {
		t.Fatalf("the server got %q from %v, %v", b[:n], from, err)
	}
	for range 2 { // the second answers nothing
		if _, err := server.WriteTo([]byte("yes"), from); err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.ReadFrom(b); err != nil {
			t.Fatal(err)
		}
	}
	up, down := l.Traffic()
	if up.First.Before(released) || down.First.Before(up.First) || !up.Answered.IsZero() || down.Answered.Before(up.First) || down.Packets != 2 || down.Content != 6 {
		t.Errorf("released at %s: up %+v, down %+v", released, up, down)
	}
	if _, err := client.WriteTo([]byte("thanks"), server.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := server.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	if again := l.Up.Traffic(); again.Answered.Before(down.First) || !again.First.Equal(up.First) || len(again.Sources) != 1 {
		t.Errorf("up %+v", again)
	}
}

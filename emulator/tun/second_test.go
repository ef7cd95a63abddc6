package tun

import (
	"net"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// withSecond is a network whose nodes have a second radio.
func withSecond() *radio.Network {
	n := pair()
	second := *n
	second.MTUBytes = 1000
	second.Nodes = nil
	for _, v := range n.Nodes {
		second.Nodes = append(second.Nodes, radio.Node{Role: v.Role, Address: radio.SecondAddresses[v.Role]})
	}
	n.Second = &second
	return n
}

// TestSecondRadio: packets of the second radios cross their own network, with its MTU
// and counters, and none crosses from one radio to the other.
func TestSecondRadio(t *testing.T) {
	n := withSecond()
	r := up(t, n)
	c := r.dial(t)
	ctx := timeout(t)
	begin := func(name string) {
		t.Helper()
		if err := c.Begin(ctx, radiocontrol.Begin{Trial: name, Seed: 1, Flows: []radiocontrol.Flow{{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 10_000}}}); err != nil {
			t.Fatal(err)
		}
	}
	begin("both")
	server := n.Second.AddressOf(radio.RoleServer)
	var raw net.PacketConn
	in(t, r.ns[radio.RoleServer], func() (err error) {
		raw, err = net.ListenPacket("udp4", server+":0")
		return err
	})
	defer raw.Close()
	in(t, r.ns[radio.RoleClient], func() error { return netSend(n.Second.AddressOf(radio.RoleClient), raw.LocalAddr().String(), 5, 500) })
	if err := raw.SetReadDeadline(time.Now().Add(hang)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2000)
	for i := range 5 {
		if size, _, err := raw.ReadFrom(b); err != nil || size != 500 {
			t.Fatalf("datagram %d: %d bytes, %v", i, size, err)
		}
	}
	rep, err := c.End(ctx, "both")
	if err != nil {
		t.Fatal(err)
	}
	second := 0
	for _, h := range rep.Hops {
		switch {
		case h.Second && h.From == radio.RoleClient:
			if second++; h.DeliveredPackets != 5 {
				t.Errorf("over the second radio %+v", h)
			}
		case !h.Second && h.DeliveredPackets != 0:
			t.Errorf("over the first radio %+v", h)
		}
	}
	if second != 1 || len(rep.Ideal) != 1 || rep.Ideal[0] <= 0 {
		t.Errorf("report %+v", rep)
	}
	// A run on a topology without second radios: they carry nothing, and the devices stay.
	if err := c.Configure(ctx, pair()); err != nil {
		t.Fatal(err)
	}
	begin("one")
	before, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	in(t, r.ns[radio.RoleClient], func() error {
		return netSend(n.Second.AddressOf(radio.RoleClient), server+":9", 3, 100)
	})
	for deadline := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		s, err := c.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if s.Unroutable-before.Unroutable >= 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d packets were found unroutable, expected 3", s.Unroutable-before.Unroutable)
		}
	}
	if rep, err := c.End(ctx, "one"); err != nil || len(rep.Hops) != 2 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestSecondRadioRefused: a network of second radios does not fit where none have devices.
func TestSecondRadioRefused(t *testing.T) {
	r := up(t, pair())
	c := r.dial(t)
	if err := c.Configure(timeout(t), withSecond()); err == nil || !strings.Contains(err.Error(), "second radios") {
		t.Errorf("%v, expected that second radios are refused", err)
	}
}

// netSend sends datagrams of a size in bytes.
func netSend(from, to string, count, size int) error {
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("udp4", to)
	if err != nil {
		return err
	}
	defer c.Close()
	for range count {
		if _, err := c.Write(make([]byte, size)); err != nil {
			return err
		}
	}
	return nil
}

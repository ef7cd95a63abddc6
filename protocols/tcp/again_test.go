package main

import (
	"io"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/link"
)

// TestSentAgain: over a link that loses some segments, the bytes that were sent again are at
// least those of the lost ones and at most those of the segments that were, and all others
// were sent once. Without a loss none are, unless this machine delays an acknowledgement.
func TestSentAgain(t *testing.T) {
	needRoot(t)
	t.Parallel()
	const size = 200_000
	for name, lose := range map[string]map[int]bool{"no loss": nil, "three segments": {20: true, 60: true, 61: true}} {
		t.Run(name, func(t *testing.T) {
			l, err := link.New([]string{"10.9.0.1"}, []string{"10.9.0.2"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			segments := 0
			var lost atomic.Int64
			l.Up.Change(link.Conditions{BitsPerSecond: 8e6, Backlog: 1 << 20, Delay: 10 * time.Millisecond, Lose: func(p link.Packet) bool {
				if p.Content < 1000 {
					return false
				}
				segments++
				if lose[segments] {
					lost.Add(1)
				}
				return lose[segments]
			}})
			l.Down.Change(link.Conditions{Delay: 10 * time.Millisecond})
			s := afterTransfer(t, l, size)
			all, again := *s.TransmittedBytes, *s.RetransmittedBytes
			switch mss := int64(s.More["mss_bytes"]); {
			case all-again != size:
				t.Errorf("%d bytes sent, %d of them again, expected %d once", all, again, size)
			case int(lost.Load()) != len(lose) || again < lost.Load()*1000 || again > *s.Retransmits*mss:
				t.Errorf("%d segments lost, %d sent again with %d bytes, of %d each", lost.Load(), *s.Retransmits, again, mss)
			}
		})
	}
}

// afterTransfer is the sender's sample when all of so many bytes were acknowledged.
func afterTransfer(t *testing.T, l *link.Link, size int64) *contract.Sample {
	t.Helper()
	address := netip.MustParseAddr("10.9.0.2")
	port, accepted := accepting(t, l.Server, address, nil)
	client := dialed(t, l.Client, netip.Addr{}, address, port, nil)
	t.Cleanup(client.Abort)
	server := <-accepted
	t.Cleanup(server.Abort)
	got := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, server, size)
		got <- err
	}()
	if _, err := client.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		s := &contract.Sample{SentBytes: size}
		client.Sample(s, true)
		if s.AckedBytes != nil && *s.AckedBytes == size {
			return s
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("acknowledged %v of %d bytes", s.AckedBytes, size)
		}
	}
}

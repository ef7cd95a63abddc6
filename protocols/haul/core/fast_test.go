package core

import (
	"testing"
	"time"
)

func TestFastLink(t *testing.T) {
	f := &path{rate: 125e6, delay: 50 * time.Microsecond, queue: 1000}
	b := &path{rate: 125e6, delay: 50 * time.Microsecond, queue: 1000}
	s := newSim(Config{}, Config{}, f, b, 1)
	con, took, ok := s.transfer(16<<20, 5*time.Second)
	t.Log(con, took, ok, s.steps)
	for i, c := range s.conns {
		t.Logf("%d: %+v open %d missing %d credit %d sent %d useful %d deadline", i, c.Stats(), c.open, c.missing, c.peerCredit, c.sent, c.useful)
	}
	if !ok {
		t.Fatal("not complete")
	}
}

package cxxtest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

// CheckBounded carries transfers that a time bounds over one listener: ended
// by the time, or by their size, with the protocol's packets in chunks of
// whatever length it makes.
func CheckBounded(t *testing.T, d *Driver) {
	port := FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	for i, c := range []struct{ most, ms int64 }{
		{1 << 40, 300}, {1 << 40, 1}, {0, 60_000}, {1, 60_000}, {1452, 60_000}, {4096, 60_000}, {300_001, 60_000},
	} {
		p := d.Parameters(contract.RoleClient, port)
		p.SampleIntervalMS = 2
		p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", i+1), SizeBytes: c.most, DurationMS: c.ms, Seed: math.MaxUint64 - uint64(i)}
		client, served := run(t, d, server, p)
		r, _ := CheckTransfer(t, p, client, served)
		byTime := c.most == 1<<40
		if !byTime && r.SizeBytes != c.most {
			t.Errorf("%+v: %d bytes were sent", c, r.SizeBytes)
		}
		if byTime && r.ElapsedNS < c.ms*int64(time.Millisecond) {
			t.Errorf("%+v: over after %s", c, time.Duration(r.ElapsedNS))
		}
		if a := r.Final.AckedBytes; a == nil || *a != r.SizeBytes {
			t.Errorf("%+v: %v bytes acknowledged of %d", c, a, r.SizeBytes)
		}
	}
	server.stop(t)
}

// CheckDrain sends for a time over a relay of a few packets a second, with the
// deepest send buffer that the driver has: when the time is up, little may be
// left. Without a bound the buffer alone, buffer bytes of it, would take hours.
func CheckDrain(t *testing.T, d *Driver, buffer int64) {
	port := FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	relay := NewRelay(t, port, 0)
	relay.SetPace(40 * time.Millisecond)
	p := d.Parameters(contract.RoleClient, relay.Port)
	p.Transfer.SizeBytes, p.Transfer.DurationMS = 1<<40, 2000
	client, served := run(t, d, server, p)
	r, _ := CheckTransfer(t, p, client, served)
	t.Logf("%d bytes in %s", r.SizeBytes, time.Duration(r.ElapsedNS).Round(time.Millisecond))
	if r.SizeBytes > buffer/4 {
		t.Errorf("%d bytes were handed over in %d ms, as a buffer of %d bytes allows", r.SizeBytes, p.Transfer.DurationMS, buffer)
	}
	server.stop(t)
}

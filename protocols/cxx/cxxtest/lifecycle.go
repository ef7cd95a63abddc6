package cxxtest

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

// run carries one transfer to an already serving server and returns both ends' events of it.
func run(t *testing.T, d *Driver, server *Process, p *contract.Parameters) (client, served []*contract.Event) {
	t.Helper()
	client, code := d.Start(t, Document(t, p)).Wait()
	if code != contract.ExitOK {
		t.Fatalf("client: exit code %d, %s", code, Only(t, client, contract.KindError).Message)
	}
	return client, server.transfer(p.Transfer.ID)
}

// transfer collects a server's events of one transfer up to its end.
func (p *Process) transfer(id string) []*contract.Event {
	p.t.Helper()
	var all []*contract.Event
	timeout := time.After(Hang)
	for {
		select {
		case e, ok := <-p.Events:
			if !ok {
				p.t.Fatal("the server ended")
			}
			if e.Transfer != id {
				continue
			}
			all = append(all, e)
			if e.Event == contract.KindResult || e.Event == contract.KindError {
				return all
			}
		case <-timeout:
			p.t.Fatalf("the server reports no end of transfer %s within %s", id, Hang)
		}
	}
}

func (p *Process) stop(t *testing.T) []*contract.Event {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	events, code := p.Wait()
	if code != contract.ExitOK {
		t.Errorf("exit code %d of a server after SIGTERM", code)
	}
	return events
}

// CheckSizes carries transfers of several sizes over one listener, then
// several at once.
func CheckSizes(t *testing.T, d *Driver) {
	port := FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	for i, size := range []int64{0, 1, 7, 8, 31, 1455, 1456, 65536, 3_000_001} {
		p := d.Parameters(contract.RoleClient, port)
		p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", i+1), SizeBytes: size, Seed: uint64(i) * 1e18}
		client, served := run(t, d, server, p)
		c, s := CheckTransfer(t, p, client, served)
		if c.ElapsedNS <= 0 || s.ElapsedNS > c.ElapsedNS+int64(time.Second) || Only(t, client, contract.KindConnected).ConnectNS <= 0 {
			t.Errorf("%d bytes: elapsed %d ns at the client, %d ns at the server", size, c.ElapsedNS, s.ElapsedNS)
		}
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			p := d.Parameters(contract.RoleClient, port)
			p.Transfer = contract.Transfer{ID: fmt.Sprintf("%032x", 100+i), SizeBytes: 500_000, Seed: uint64(i)}
			client, code := d.Start(t, Document(t, p)).Wait()
			if code != contract.ExitOK {
				t.Errorf("flow %d of several: exit code %d, events %d", i, code, len(client))
			}
		})
	}
	all.Wait()
	results := 0
	for _, e := range server.stop(t) {
		if e.Event == contract.KindResult {
			results++
		}
		if e.Event == contract.KindError {
			t.Errorf("server: %s %s", e.Code, e.Message)
		}
	}
	if results != 6 {
		t.Errorf("%d results of several flows, expected 6", results)
	}
}

// CheckLoss carries a transfer over a relay that loses datagrams and is cut
// for a while in the middle; returns the client's last sample.
func CheckLoss(t *testing.T, d *Driver, size int64, loss float64, outage time.Duration) *contract.Sample {
	port := FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	relay := NewRelay(t, port, loss)
	p := d.Parameters(contract.RoleClient, relay.Port)
	p.Transfer.SizeBytes = size
	p.SampleIntervalMS = 5 // the first one says that the transfer runs
	client := d.Start(t, Document(t, p))
	connected := client.Until(contract.KindConnected)
	sample := client.Until(contract.KindSample)
	relay.Cut()
	time.Sleep(outage)
	relay.Restore()
	events, code := client.Wait()
	if code != contract.ExitOK {
		t.Fatalf("exit code %d, %s", code, Only(t, events, contract.KindError).Message)
	}
	c, _ := CheckTransfer(t, p, append([]*contract.Event{connected, sample}, events...), server.transfer(Transfer))
	if c.ElapsedNS < outage.Nanoseconds() {
		t.Errorf("%d ns, shorter than the outage: the link was cut too late", c.ElapsedNS)
	}
	server.stop(t)
	return c.Final
}

// stuck starts a transfer that cannot end: the relay is cut in its middle.
func stuck(t *testing.T, d *Driver, change func(client *contract.Parameters)) (client, server *Process, relay *Relay) {
	t.Helper()
	port := FreePort(t)
	server = d.Serve(t, d.Parameters(contract.RoleServer, port))
	relay = NewRelay(t, port, 0)
	p := d.Parameters(contract.RoleClient, relay.Port)
	p.Transfer.SizeBytes = 1 << 30
	change(p)
	client = d.Start(t, Document(t, p))
	client.Until(contract.KindConnected)
	server.Until(contract.KindConnected)
	relay.Cut()
	return client, server, relay
}

func expectError(t *testing.T, p *Process, codes ...contract.Code) {
	t.Helper()
	events, code := p.Wait()
	e := Only(t, events, contract.KindError)
	known := false
	for _, c := range codes {
		known = known || e.Code == c
	}
	if !known || code != contract.ExitFailed {
		t.Errorf("exit code %d, %s (%s), expected one of %v", code, e.Code, e.Message, codes)
	}
}

// CheckEnds: signals, limits and vanished peers in the middle of a transfer.
func CheckEnds(t *testing.T, d *Driver) {
	same := func(*contract.Parameters) {}
	t.Run("SIGTERM at the client", func(t *testing.T) {
		t.Parallel()
		client, _, _ := stuck(t, d, same)
		client.Signal(syscall.SIGTERM)
		expectError(t, client, contract.CodeAborted)
	})
	t.Run("SIGTERM at the server", func(t *testing.T) {
		t.Parallel()
		_, server, _ := stuck(t, d, same)
		if e := Only(t, server.stop(t), contract.KindError); e.Code != contract.CodeAborted || e.Transfer != Transfer {
			t.Errorf("server: %s %s of transfer %q", e.Code, e.Message, e.Transfer)
		}
	})
	t.Run("transfer limit", func(t *testing.T) {
		t.Parallel()
		client, _, _ := stuck(t, d, func(p *contract.Parameters) { p.Limits.TransferMS = 1500 })
		expectError(t, client, contract.CodeTransferTimeout)
	})
	t.Run("server killed", func(t *testing.T) {
		t.Parallel()
		client, server, relay := stuck(t, d, func(p *contract.Parameters) { p.Limits.TransferMS = 3000 })
		server.Kill()
		relay.Restore()
		expectError(t, client, contract.CodeTransferTimeout, contract.CodeReset)
	})
	t.Run("client killed, server goes on", func(t *testing.T) {
		t.Parallel()
		port := FreePort(t)
		server := d.Serve(t, d.Parameters(contract.RoleServer, port))
		p := d.Parameters(contract.RoleClient, port)
		p.Transfer.ID, p.Transfer.SizeBytes = "ffffffffffffffffffffffffffffffff", 1<<30
		killed := d.Start(t, Document(t, p))
		killed.Until(contract.KindSample)
		killed.Kill()
		p = d.Parameters(contract.RoleClient, port)
		client, served := run(t, d, server, p)
		CheckTransfer(t, p, client, served)
		server.stop(t)
	})
}

// CheckSlow connects and transfers over a relay with a long delay.
func CheckSlow(t *testing.T, d *Driver, delay time.Duration) {
	port := FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	relay := NewRelay(t, port, 0)
	relay.SetDelay(delay)
	p := d.Parameters(contract.RoleClient, relay.Port)
	p.Transfer.SizeBytes = 1000
	client, served := run(t, d, server, p)
	c, _ := CheckTransfer(t, p, client, served)
	if c.ConnectNS < 4*delay.Nanoseconds() {
		t.Errorf("connected in %s, sooner than a handshake of two round trips can be", time.Duration(c.ConnectNS))
	}
	server.stop(t)
}

// CheckConnect checks failures to connect and to listen: no listener, no answer,
// no route, a port in use.
func CheckConnect(t *testing.T, d *Driver, nobodyListens contract.Code) {
	t.Run("no listener", func(t *testing.T) {
		t.Parallel()
		p := d.Parameters(contract.RoleClient, FreePort(t))
		p.Limits.ConnectMS = 1000
		expectError(t, d.Start(t, Document(t, p)), nobodyListens)
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		relay := NewRelay(t, FreePort(t), 1)
		p := d.Parameters(contract.RoleClient, relay.Port)
		p.Limits.ConnectMS = 4500 // longer than one dial of UDT
		begin := time.Now()
		expectError(t, d.Start(t, Document(t, p)), contract.CodeConnectTimeout)
		if took := time.Since(begin); took < 4*time.Second {
			t.Errorf("given up after %s, before the limit", took)
		}
	})
	t.Run("SIGTERM while connecting", func(t *testing.T) {
		t.Parallel()
		relay := NewRelay(t, FreePort(t), 1)
		client := d.Start(t, Document(t, d.Parameters(contract.RoleClient, relay.Port)))
		client.Until(contract.KindReady)
		client.Signal(syscall.SIGTERM)
		expectError(t, client, contract.CodeAborted)
	})
	t.Run("server comes late", func(t *testing.T) {
		t.Parallel()
		port := FreePort(t)
		relay := NewRelay(t, port, 0)
		p := d.Parameters(contract.RoleClient, relay.Port)
		client := d.Start(t, Document(t, p))
		client.Until(contract.KindReady)
		time.Sleep(time.Second)
		server := d.Serve(t, d.Parameters(contract.RoleServer, port))
		events, code := client.Wait()
		if code != contract.ExitOK {
			t.Fatalf("exit code %d, %s", code, Only(t, events, contract.KindError).Message)
		}
		server.stop(t)
	})
	t.Run("address of no interface", func(t *testing.T) {
		t.Parallel()
		p := d.Parameters(contract.RoleClient, 7000)
		p.Local.Address = "192.0.2.77" // RFC 5737: documentation
		expectError(t, d.Start(t, Document(t, p)), contract.CodeUnreachable)
		p = d.Parameters(contract.RoleServer, 7000)
		p.Local.Address = "192.0.2.77"
		expectError(t, d.Start(t, Document(t, p)), contract.CodeListenFailed)
	})
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		port := FreePort(t)
		p := d.Parameters(contract.RoleServer, port)
		server := d.Serve(t, p)
		expectError(t, d.Start(t, Document(t, p)), contract.CodeListenFailed)
		server.stop(t)
	})
	t.Run("query", func(t *testing.T) {
		t.Parallel()
		events, code := d.Start(t, Document(t, d.Parameters(contract.RoleQuery, 0))).Wait()
		if code != contract.ExitOK || Only(t, events, contract.KindReady).Info.Implementation == "" {
			t.Errorf("exit code %d", code)
		}
	})
}

// Package sctp_test runs the SCTP driver, a program in C++ (src), for real.
package sctp_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/cxx/cxxtest"
)

// userland is the driver on the stack that every node has, and that a UDP
// relay can carry.
func userland(t *testing.T) *cxxtest.Driver {
	d := cxxtest.Build(t, "sctp")
	d.Options["stack"] = "userland"
	return d
}

func TestMain(m *testing.M) { cxxtest.Main(m) }

func TestGarbage(t *testing.T) {
	t.Parallel()
	d := userland(t)
	d.Options = map[string]any{}
	cxxtest.CheckGarbage(t, d)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	cxxtest.CheckOptions(t, userland(t))
}

func TestSizes(t *testing.T) {
	t.Parallel()
	cxxtest.CheckSizes(t, userland(t))
}

func TestRejection(t *testing.T) {
	t.Parallel()
	cxxtest.CheckRejection(t, userland(t))
}

func TestConnect(t *testing.T) {
	t.Parallel()
	cxxtest.CheckConnect(t, userland(t), contract.CodeConnectRefused)
}

func TestEnds(t *testing.T) {
	t.Parallel()
	cxxtest.CheckEnds(t, userland(t))
}

func TestLoss(t *testing.T) {
	t.Parallel()
	d := userland(t)
	// The lower bound keeps the test short; the outage is some timeouts long.
	maps.Copy(d.Options, map[string]any{"rto_min": 100, "rto_initial": 200, "rto_max": 1000})
	final := cxxtest.CheckLoss(t, d, 4<<20, 0.02, 2*time.Second)
	if final.Retransmits == nil || *final.Retransmits == 0 || final.Timeouts == nil || *final.Timeouts == 0 {
		t.Errorf("a lossy link and an outage without retransmissions or timeouts: %+v", final)
	}
	if final.CwndBytes == nil || final.FlightBytes == nil || final.RTOUS == nil || *final.RTOUS > 1e6 {
		t.Errorf("figures of the protocol are missing or not within the options: %+v", final)
	}
}

// TestKernel runs the kernel's stack where there is one, and elsewhere holds
// the driver to saying so.
func TestKernel(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "sctp")
	d.Options["stack"] = "kernel"
	events, code := d.Start(t, cxxtest.Document(t, d.Parameters(contract.RoleProbe, 0))).Wait()
	if code == contract.ExitOK {
		if info := cxxtest.Only(t, events, contract.KindReady).Info; info.Implementation != "linux-kernel" {
			t.Errorf("info %+v", info)
		}
		cxxtest.CheckSizes(t, d)
		cxxtest.CheckRejection(t, d)
		return
	}
	e := cxxtest.Only(t, events, contract.KindError)
	if code != contract.ExitUnsupported || e.Code != contract.CodeUnsupported || !strings.Contains(e.Message, "no SCTP") {
		t.Errorf("exit code %d, %s (%s)", code, e.Code, e.Message)
	}
	// auto then is the userland's.
	d.Options["stack"] = "auto"
	events, _ = d.Start(t, cxxtest.Document(t, d.Parameters(contract.RoleProbe, 0))).Wait()
	if info := cxxtest.Only(t, events, contract.KindReady).Info; info.Implementation != "usrsctp 0.9.5.0" {
		t.Errorf("info %+v", info)
	}
}

// No datagram is larger than the interface carries, and message_size does not
// change that.
func TestOptionsAct(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]map[string]any{
		"defaults": {},
		"large":    {"message_size": 1 << 16},
		"small":    {"message_size": 100, "nodelay": false, "sack_delay": 0},
		"buffers":  {"send_buffer": 1 << 16, "receive_buffer": 1 << 16},
		"sack 500": {"sack_delay": 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := userland(t)
			maps.Copy(d.Options, options)
			port := cxxtest.FreePort(t)
			server := d.Serve(t, d.Parameters(contract.RoleServer, port))
			relay := cxxtest.NewRelay(t, port, 0)
			events, code := d.Start(t, cxxtest.Document(t, d.Parameters(contract.RoleClient, relay.Port))).Wait()
			if code != contract.ExitOK {
				t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
			}
			if max := 1500 - 20 - 8; relay.Largest() > max || relay.Largest() < max-200 {
				t.Errorf("largest datagram %d bytes, expected at most %d and not much less", relay.Largest(), max)
			}
			server.Kill()
		})
	}
}

func TestBoundsOfEachOther(t *testing.T) {
	t.Parallel()
	d := userland(t)
	maps.Copy(d.Options, map[string]any{"rto_min": 2000, "rto_initial": 1000})
	events, code := d.Start(t, cxxtest.Document(t, d.Parameters(contract.RoleClient, 7000))).Wait()
	if e := cxxtest.Only(t, events, contract.KindError); code != contract.ExitFailed || e.Code != contract.CodeBadParameters {
		t.Errorf("exit code %d, %s (%s)", code, e.Code, e.Message)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	cxxtest.CheckIdle(t, userland(t), 0)
}

// TestConformance runs the suite of the driver contract, without the checks
// that are long (here for the protocol's own sake) and that other tests stand for.
func TestConformance(t *testing.T) {
	t.Parallel()
	cxxtest.CheckConformance(t, cxxtest.Build(t, "sctp"), "client-killed")
}

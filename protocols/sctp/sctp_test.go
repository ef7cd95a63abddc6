// Package sctp_test runs the SCTP driver, a program in C++ (src), for real.
package sctp_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"syscall"
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
		t.Errorf("metrics of the protocol are missing or not within the options: %+v", final)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	cxxtest.CheckBounded(t, userland(t))
}

// Messages of a byte and of 64 KiB: chunks of many messages, and as long as one.
func TestBoundedMessages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 1 << 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			d := userland(t)
			d.Options["message_size"] = n
			port := cxxtest.FreePort(t)
			server := d.Serve(t, d.Parameters(contract.RoleServer, port))
			p := d.Parameters(contract.RoleClient, port)
			p.Transfer.SizeBytes, p.Transfer.DurationMS = 20_000, 60_000
			events, code := d.Start(t, cxxtest.Document(t, p)).Wait()
			if code != contract.ExitOK {
				t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
			}
			if r := cxxtest.Only(t, events, contract.KindResult).Result; r.SizeBytes != p.Transfer.SizeBytes {
				t.Errorf("%d bytes were sent", r.SizeBytes)
			}
			server.Kill()
		})
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	const buffer = 4 << 20
	d := userland(t)
	d.Options["send_buffer"] = buffer
	cxxtest.CheckDrain(t, d, buffer)
}

// Chunk types (RFC 9260, section 3.2) and their place in a packet: after
// the common header, whose first two fields are the ports.
const (
	commonHeader   = 12
	initAck, abort = 2, 6
)

// TestRedial: the answers to the first dial's cookie are lost for good, so that
// it has no association, and half of one stays with the server. A
// second dial comes through within limits.connect_ms, and the server gets rid of
// the half, with the client's ABORT or without.
func TestRedial(t *testing.T) {
	t.Parallel()
	for name, abortLost := range map[string]bool{"abort arrives": false, "abort lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := userland(t)
			maps.Copy(d.Options, map[string]any{"rto_min": 100, "rto_initial": 200, "rto_max": 1000})
			port := cxxtest.FreePort(t)
			server := d.Serve(t, d.Parameters(contract.RoleServer, port))
			relay := cxxtest.NewRelay(t, port, 0)
			var first uint16 // the SCTP port of the first dial
			aborts := 0
			relay.Lose(func(b []byte, toServer bool) bool {
				if len(b) <= commonHeader {
					return false
				}
				from, to, chunk := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), b[commonHeader]
				if first == 0 && toServer {
					first = from
				}
				if toServer && from == first && chunk == abort {
					aborts++
					return abortLost
				}
				return !toServer && to == first && chunk != initAck
			})
			p := d.Parameters(contract.RoleClient, relay.Port)
			begin := time.Now()
			events, code := d.Start(t, cxxtest.Document(t, p)).Wait()
			if code != contract.ExitOK {
				t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
			}
			if r := cxxtest.Only(t, events, contract.KindResult).Result; r.ConnectNS < int64(2*time.Second) {
				t.Errorf("connected in %s: the first dial was not lost", time.Duration(r.ConnectNS))
			}
			if e := server.Until(contract.KindResult); e.Transfer != p.Transfer.ID {
				t.Errorf("a result of transfer %s", e.Transfer)
			}
			t.Logf("done after %s", time.Since(begin).Round(100*time.Millisecond))
			// The next one is served as ever, and the server ends with exit code 0.
			p = d.Parameters(contract.RoleClient, relay.Port)
			p.Transfer.ID = strings.Repeat("f", 32)
			if events, code = d.Start(t, cxxtest.Document(t, p)).Wait(); code != contract.ExitOK {
				t.Errorf("the next: exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
			}
			server.Signal(syscall.SIGTERM)
			events, code = server.Wait()
			for _, e := range events {
				if e.Event == contract.KindError {
					t.Errorf("the server reports %s (%s)", e.Code, e.Message)
				}
			}
			if code != contract.ExitOK || aborts == 0 {
				t.Errorf("the server's exit code is %d, and %d ABORTs were sent", code, aborts)
			}
		})
	}
}

// TestGivesUpEarly: an association that the library gives up, here after two
// INITs, is asked for again until limits.connect_ms.
func TestGivesUpEarly(t *testing.T) {
	t.Parallel()
	d := userland(t)
	maps.Copy(d.Options, map[string]any{"rto_min": 100, "rto_initial": 100, "rto_max": 100, "max_retransmissions": 1})
	relay := cxxtest.NewRelay(t, cxxtest.FreePort(t), 1)
	p := d.Parameters(contract.RoleClient, relay.Port)
	p.Limits.ConnectMS = 2000
	events, code := d.Start(t, cxxtest.Document(t, p)).Wait()
	if e := cxxtest.Only(t, events, contract.KindError); code != contract.ExitFailed || e.Code != contract.CodeConnectTimeout {
		t.Errorf("exit code %d, %s (%s)", code, e.Code, e.Message)
	}
}

// TestAnswerTakesLong: what only takes long is waited for, and not dialled again.
func TestAnswerTakesLong(t *testing.T) {
	t.Parallel()
	d := userland(t)
	port := cxxtest.FreePort(t)
	server := d.Serve(t, d.Parameters(contract.RoleServer, port))
	relay := cxxtest.NewRelay(t, port, 0)
	relay.SetDelay(900 * time.Millisecond)
	dials := map[uint16]bool{}
	relay.Lose(func(b []byte, toServer bool) bool {
		if toServer {
			dials[binary.BigEndian.Uint16(b)] = true
		}
		return false
	})
	// Shorter than a round trip: the cookie is repeated in vain before its answer can be there.
	maps.Copy(d.Options, map[string]any{"rto_min": 100, "rto_initial": 400, "rto_max": 1000})
	p := d.Parameters(contract.RoleClient, relay.Port)
	p.Transfer.SizeBytes = 1000
	events, code := d.Start(t, cxxtest.Document(t, p)).Wait()
	if code != contract.ExitOK {
		t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
	}
	relay.Lose(nil) // and what was noted is read
	if len(dials) != 1 {
		t.Errorf("%d dials, expected one", len(dials))
	}
	server.Kill()
}

// TestKernel runs the kernel's stack where there is one, and elsewhere holds
// the driver to saying so.
func TestKernel(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "sctp")
	d.Options["stack"] = "kernel"
	events, code := d.Start(t, cxxtest.Document(t, d.Parameters(contract.RoleQuery, 0))).Wait()
	if code == contract.ExitOK {
		if info := cxxtest.Only(t, events, contract.KindReady).Info; info.Implementation != "linux-kernel" {
			t.Errorf("info %+v", info)
		}
		cxxtest.CheckSizes(t, d)
		return
	}
	e := cxxtest.Only(t, events, contract.KindError)
	if code != contract.ExitUnsupported || e.Code != contract.CodeUnsupported || !strings.Contains(e.Message, "no SCTP") {
		t.Errorf("exit code %d, %s (%s)", code, e.Code, e.Message)
	}
	// auto then is the userland's.
	d.Options["stack"] = "auto"
	events, _ = d.Start(t, cxxtest.Document(t, d.Parameters(contract.RoleQuery, 0))).Wait()
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

// TestLibraryIsHeld: no thread calls usrsctp beside another one (in_library), because
// the library's own locks leave gaps. The sanitizers do not see into the library.
func TestLibraryIsHeld(t *testing.T) {
	t.Parallel()
	direct := regexp.MustCompile(`\busrsctp_\w+\(`)
	held := 0
	for _, name := range []string{"src/userland.cpp", "src/userland_engine.cpp"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			held += strings.Count(line, "in_library(usrsctp_")
			if call := direct.FindString(line); call != "" {
				t.Errorf("%s:%d: %s…) is called without in_library", name, i+1, call)
			}
		}
	}
	if held < 20 {
		t.Errorf("%d calls of the library were found, expected more", held)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	cxxtest.CheckIdle(t, userland(t), 0)
}

// TestConformance runs the suite of the driver contract, without the checks
// that are long (because of the protocol itself) and that other tests cover.
func TestConformance(t *testing.T) {
	t.Parallel()
	cxxtest.CheckConformance(t, cxxtest.Build(t, "sctp"), "client-killed")
}

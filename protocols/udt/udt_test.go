// Package udt_test runs the UDT driver, a program in C++ (src), for real.
package udt_test

import (
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/cxx/cxxtest"
)

func TestMain(m *testing.M) { cxxtest.Main(m) }

func TestGarbage(t *testing.T) {
	t.Parallel()
	cxxtest.CheckGarbage(t, cxxtest.Build(t, "udt"))
}

func TestOptions(t *testing.T) {
	t.Parallel()
	cxxtest.CheckOptions(t, cxxtest.Build(t, "udt"))
}

func TestSizes(t *testing.T) {
	t.Parallel()
	cxxtest.CheckSizes(t, cxxtest.Build(t, "udt"))
}

// UDT has no refusal: a closed port is silence to it.
func TestConnect(t *testing.T) {
	t.Parallel()
	cxxtest.CheckConnect(t, cxxtest.Build(t, "udt"), contract.CodeConnectTimeout)
}

func TestEnds(t *testing.T) {
	t.Parallel()
	cxxtest.CheckEnds(t, cxxtest.Build(t, "udt"))
}

func TestLoss(t *testing.T) {
	t.Parallel()
	final := cxxtest.CheckLoss(t, cxxtest.Build(t, "udt"), 2<<20, 0.02, time.Second)
	if final.Retransmits == nil || *final.Retransmits == 0 || final.LossEvents == nil || *final.LossEvents == 0 {
		t.Errorf("a lossy link without retransmissions: %+v", final)
	}
	if final.CwndBytes == nil || final.FlightBytes == nil || final.SRTTUS == nil {
		t.Errorf("metrics of the protocol are missing: %+v", final)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	cxxtest.CheckBounded(t, cxxtest.Build(t, "udt"))
}

// The library's send buffer holds 8192 packets.
func TestDrain(t *testing.T) {
	t.Parallel()
	cxxtest.CheckDrain(t, cxxtest.Build(t, "udt"), 8192*1456)
}

// The options reach the library: mss shows in the datagrams, max_bandwidth in
// the rate, the clock in what the driver says of itself.
func TestOptionsAct(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "udt")
	for name, c := range map[string]struct {
		options map[string]any
		largest int
	}{
		"defaults":     {map[string]any{}, 1500 - 28},
		"mss":          {map[string]any{"mss": 700}, 700 - 28},
		"tsc":          {map[string]any{"clock": "tsc"}, 1500 - 28},
		"buffers":      {map[string]any{"send_buffer": 1 << 16, "receive_buffer": 1 << 16, "udp_send_buffer": 1 << 15, "udp_receive_buffer": 1 << 18, "flight_window": 64}, 1500 - 28},
		"large window": {map[string]any{"send_buffer": 64 << 20, "receive_buffer": 64 << 20, "flight_window": 100000}, 1500 - 28},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := cxxtest.FreePort(t)
			sp := d.Parameters(contract.RoleServer, port)
			sp.Options = c.options
			server := d.Serve(t, sp)
			relay := cxxtest.NewRelay(t, port, 0)
			p := d.Parameters(contract.RoleClient, relay.Port)
			p.Options = c.options
			events, code := d.Start(t, cxxtest.Document(t, p)).Wait()
			if code != contract.ExitOK {
				t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
			}
			if relay.Largest() != c.largest {
				t.Errorf("largest datagram %d bytes, expected %d", relay.Largest(), c.largest)
			}
			want := "system"
			if c.options["clock"] == "tsc" {
				want = "tsc"
			}
			if got := cxxtest.Only(t, events, contract.KindResult).Result.Info; got.Implementation != "libudt 4.11" || got.Detail["clock"] != want {
				t.Errorf("info %+v", got)
			}
			server.Kill()
		})
	}
}

// TestSlow: a handshake takes two round trips, here 3.6 s in all; the
// library alone gives up after three.
func TestSlow(t *testing.T) {
	t.Parallel()
	cxxtest.CheckSlow(t, cxxtest.Build(t, "udt"), 900*time.Millisecond)
}

// The library's collector looks around every second.
func TestIdle(t *testing.T) {
	t.Parallel()
	cxxtest.CheckIdle(t, cxxtest.Build(t, "udt"), 4)
}

// TestConformance runs the suite of the driver contract, without the checks
// that are long (because of the protocol itself) and that other tests cover.
func TestConformance(t *testing.T) {
	t.Parallel()
	cxxtest.CheckConformance(t, cxxtest.Build(t, "udt"), "hundred", "client-killed", "server-killed")
}

// A connection whose socket was closed while its handshake was answered does not end the
// driver (src/closed.cpp): the library alone does.
func TestClosedWhileConnecting(t *testing.T) {
	t.Parallel()
	run := func(name string, arguments ...string) error {
		program := filepath.Join(t.TempDir(), name)
		arguments = append([]string{"-O2", "-pthread", "-o", program, "testdata/closed.cpp"}, append(arguments, "-l:libudt.a")...)
		if out, err := exec.Command("g++", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return exec.Command(program).Run()
	}
	if err := run("driver", "src/closed.cpp", "-Wl,--wrap=_ZN10CUDTUnited16connect_completeEi"); err != nil {
		t.Errorf("the driver ends: %v", err)
	}
	if run("library") == nil {
		t.Error("the library alone does not end: there is nothing to mend")
	}
}

// A client whose handshake is under way when a minute of the listener begins is answered
// (src/cookie.cpp).
func TestCookieOfTheMinuteBefore(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "udt")
	p := d.Parameters(contract.RoleServer, cxxtest.FreePort(t))
	before := time.Now()
	d.Serve(t, p)
	ready := time.Now() // the listener began before
	c, err := net.Dial("udp", net.JoinHostPort(p.Local.Address, strconv.Itoa(p.Local.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The packet's header (udt4 packet.h) and the handshake (CHandShake).
	const control, version, stream, mss, window, request, answer, id = 1 << 31, 4, 1, 1500, 8192, 1, -1, 7
	ask := func(kind int32, cookie uint32) []uint32 {
		var packet []byte
		for _, word := range []uint32{control, 0, 0, 0, version, stream, 1000, mss, window, uint32(kind), id, cookie, 0x0100007f, 0, 0, 0} {
			packet = binary.BigEndian.AppendUint32(packet, word)
		}
		got := make([]byte, 1500)
		for try := 0; ; try++ {
			if _, err := c.Write(packet); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			n, err := c.Read(got)
			if err == nil && n >= len(packet) {
				words := make([]uint32, len(packet)/4)
				for i := range words {
					words[i] = binary.BigEndian.Uint32(got[4*i:])
				}
				return words
			}
			if try == 5 {
				t.Fatalf("a handshake of kind %d is not answered: %v", kind, err)
			}
		}
	}
	const ofKind, ofCookie = 9, 11
	first := ask(request, 0)
	if time.Since(before) >= time.Minute {
		t.Fatal("this machine took a minute for one answer")
	}
	time.Sleep(time.Until(ready.Add(time.Minute + time.Second)))
	if got := int32(ask(answer, first[ofCookie])[ofKind]); got != answer {
		t.Errorf("answer of kind %d, expected %d", got, answer)
	}
}

// A clock that is set back by an hour during a transfer, or forwards, changes nothing, at
// either end and with either of the library's clocks.
func TestClockStep(t *testing.T) {
	t.Parallel()
	stepped := filepath.Join(t.TempDir(), "step.so")
	if out, err := exec.Command("g++", "-O2", "-Wall", "-shared", "-fPIC", "-o", stepped, "testdata/step.cpp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d := cxxtest.Build(t, "udt")
	for _, clock := range []string{"system", "tsc"} {
		for _, by := range []string{"-3600", "3600"} {
			t.Run(clock+" "+by, func(t *testing.T) {
				t.Parallel()
				at := map[contract.Role]string{}
				as := func(role contract.Role) *cxxtest.Driver {
					at[role] = filepath.Join(t.TempDir(), "now")
					d := *d
					d.Environment = []string{"LD_PRELOAD=" + stepped, "STEPPED=" + at[role], "STEP=" + by}
					return &d
				}
				port := cxxtest.FreePort(t)
				sp := d.Parameters(contract.RoleServer, port)
				sp.Options["clock"] = clock
				server := as(contract.RoleServer).Serve(t, sp)
				p := d.Parameters(contract.RoleClient, port)
				p.Options["clock"], p.Options["max_bandwidth"] = clock, 8_000_000
				p.Transfer.SizeBytes, p.Limits.TransferMS = 3<<20, 20_000
				client := as(contract.RoleClient).Start(t, cxxtest.Document(t, p))
				for client.Until(contract.KindSample).Sample.ElapsedNS < time.Second.Nanoseconds() {
				}
				for _, role := range []contract.Role{contract.RoleClient, contract.RoleServer} {
					if err := os.WriteFile(at[role], nil, 0o644); err != nil {
						t.Fatal(err)
					}
					time.Sleep(300 * time.Millisecond)
				}
				events, code := client.Wait()
				if code != contract.ExitOK {
					t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
				}
				r := cxxtest.Only(t, events, contract.KindResult).Result
				if took := time.Duration(r.ElapsedNS); took < 2500*time.Millisecond || took > 10*time.Second {
					t.Errorf("%s for 3 MiB at 8 Mbit/s", took)
				}
				server.Signal(syscall.SIGTERM)
				if _, code := server.Wait(); code != contract.ExitOK {
					t.Errorf("exit code %d of the server", code)
				}
				if cpu := client.CPU(); clock == "system" && cpu > 2*time.Second {
					t.Errorf("the client used %s of a processor: its waits end at once", cpu)
				}
			})
		}
	}
}

// TestPromptAnswer: the server's first byte, a short packet, is acknowledged when
// it arrives, by either clock, and not at the library's next look after a silent
// connection, 100 ms later; and the measurement of the counter's frequency, 100 ms,
// is no time to connect. The third best of the connections is looked at, because
// a busy machine delays some, and the library asks again after 250 ms.
func TestPromptAnswer(t *testing.T) {
	t.Parallel()
	d := cxxtest.Build(t, "udt")
	for _, clock := range []string{"system", "tsc"} {
		port := cxxtest.FreePort(t)
		sp := d.Parameters(contract.RoleServer, port)
		sp.Options["clock"] = clock
		server := d.Serve(t, sp)
		relay := cxxtest.NewRelay(t, port, 0)
		relay.SetDelay(2 * time.Millisecond) // an answer that comes at once is lost to the library
		var took []time.Duration
		for i := range 9 {
			p := d.Parameters(contract.RoleClient, relay.Port)
			p.Options["clock"], p.Transfer.SizeBytes = clock, 0
			p.Transfer.ID = strings.Repeat(strconv.Itoa(i), 32)
			events, code := d.Start(t, cxxtest.Document(t, p)).Wait()
			if code != contract.ExitOK {
				t.Fatalf("exit code %d, %s", code, cxxtest.Only(t, events, contract.KindError).Message)
			}
			took = append(took, time.Duration(cxxtest.Only(t, events, contract.KindResult).Result.ConnectNS))
		}
		slices.Sort(took)
		if took[2] >= 100*time.Millisecond {
			t.Errorf("clock %s: connected in %s, expected a few round trips of 4 ms", clock, took)
		}
		t.Logf("clock %s: %s", clock, took)
		server.Kill()
	}
}

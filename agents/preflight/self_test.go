package preflight

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"linktrial/agents/runner"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/nodesensor"
	"linktrial/protocols/contract"
)

func expect(t *testing.T, check *linktrialv1.Check, state linktrialv1.CheckState, words ...string) {
	t.Helper()
	if check.State != state {
		t.Errorf("state %s, expected %s: %v", check.State, state, check)
	}
	for _, w := range words {
		if !strings.Contains(check.Found+check.Remedy, w) {
			t.Errorf("%q is not in what was found: %v", w, check)
		}
	}
	if check.Found == "" || check.Expected == "" || check.Meaning == "" || (state == failed || state == warning) && check.Remedy == "" {
		t.Errorf("a check without words: %v", check)
	}
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		offset, bound time.Duration
		unknown       string
		state         linktrialv1.CheckState
		word          string
	}{
		{offset: 3 * time.Millisecond, bound: time.Millisecond, state: ok, word: "behind"},
		{offset: -310 * time.Millisecond, bound: time.Millisecond, state: failed, word: "310 ms ahead of"},
		{offset: 100 * time.Millisecond, state: ok},
		{offset: 101 * time.Millisecond, state: failed},
		{offset: -90 * time.Millisecond, bound: 20 * time.Millisecond, state: warning, word: "to within 20 ms"},
		{unknown: "no control link", state: unknown, word: "no control link"},
	} {
		expect(t, judgeClock(journal.ClockOffset{Offset: c.offset, Error: c.bound, Unknown: c.unknown}), c.state, c.word)
	}
}

func TestDisk(t *testing.T) {
	const floor = 64 << 20
	for _, c := range []struct {
		free  int64
		err   error
		floor int64
		state linktrialv1.CheckState
		word  string
	}{
		{free: 5 << 30, floor: floor, state: ok, word: "5.0 GiB free"},
		{free: 1<<30 - 1, floor: floor, state: warning, word: "1023 MiB"},
		{free: 127 << 20, floor: floor, state: failed, word: "--state"},
		{free: 0, floor: -1, state: warning},
		{err: errors.New("no such folder"), floor: floor, state: unknown, word: "no such folder"},
	} {
		expect(t, judgeDisk(c.free, c.err, c.floor), c.state, c.word)
	}
}

func TestBattery(t *testing.T) {
	for _, c := range []struct {
		b     nodesensor.Battery
		there bool
		state linktrialv1.CheckState
		word  string
	}{
		{there: false, state: notChecked, word: "no battery"},
		{nodesensor.Battery{Charge: 0.05}, true, ok, "5 %"},
		{nodesensor.Battery{Charge: 0.8, Discharging: true}, true, ok, "80 %, discharging"},
		{nodesensor.Battery{Charge: 0.49, Discharging: true}, true, warning, "supply"},
		{nodesensor.Battery{Charge: 0.19, Discharging: true}, true, failed, "supply"},
	} {
		expect(t, judgeBattery(c.b, c.there), c.state, c.word)
	}
}

type driverList struct {
	states []runner.State
	err    error
}

func (l driverList) List(context.Context) ([]runner.State, error) { return l.states, l.err }

func TestDrivers(t *testing.T) {
	state := func(name, unsupported string) runner.State {
		return runner.State{Driver: journal.Driver{Name: name, Version: "1", Unsupported: unsupported}}
	}
	both := []runner.State{state("tcp", ""), state("sctp", "no kernel SCTP")}
	bring := state("scps", "no gateway")
	bring.Manifest = &contract.Manifest{Name: "scps", External: "a build of SCPS"}
	brought := []runner.State{state("tcp", ""), bring}
	for _, c := range []struct {
		name   string
		list   driverList
		wanted []string
		states []linktrialv1.CheckState
		word   string
	}{
		{"all run", driverList{states: both[:1]}, nil, []linktrialv1.CheckState{ok}, "tcp 1"},
		{"one cannot, nobody asked", driverList{states: both}, nil, []linktrialv1.CheckState{warning}, "no kernel SCTP"},
		{"one cannot, and is wanted", driverList{states: both}, []string{"tcp", "sctp"}, []linktrialv1.CheckState{failed}, "no kernel SCTP"},
		{"one cannot, another is wanted", driverList{states: both}, []string{"tcp"}, []linktrialv1.CheckState{ok}, "tcp 1"},
		{"one needs what a user brings, nobody asked", driverList{states: brought}, nil, []linktrialv1.CheckState{ok}, "tcp 1; scps would need a build of SCPS"},
		{"one needs what a user brings, and is wanted", driverList{states: brought}, []string{"scps"}, []linktrialv1.CheckState{failed}, "no gateway"},
		{"one is missing", driverList{states: both}, []string{"udt", "sctp"}, []linktrialv1.CheckState{failed, failed}, "udt"},
		{"none", driverList{}, nil, []linktrialv1.CheckState{failed}, "no driver"},
		{"no folder", driverList{err: errors.New("no such folder")}, nil, []linktrialv1.CheckState{unknown}, "no such folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Config{Drivers: c.list}.checkDrivers(t.Context(), c.wanted)
			if len(got) != len(c.states) {
				t.Fatalf("%d checks, expected %d: %v", len(got), len(c.states), got)
			}
			for i := range got {
				word := c.word
				if i > 0 {
					word = ""
				}
				expect(t, got[i], c.states[i], word)
			}
		})
	}
}

func TestRadio(t *testing.T) {
	there := []net.IP{net.IPv4(10, 77, 0, 1)}
	for _, c := range []struct {
		name  string
		f     radioInterface
		want  int
		state linktrialv1.CheckState
		words []string
	}{
		{"in order", radioInterface{"radio0", true, true, 1500, there}, 1500, ok, []string{"10.77.0.1", "1500"}},
		{"nobody knows the MTU", radioInterface{"radio0", true, true, 1400, there}, 0, ok, nil},
		{"down", radioInterface{"radio0", false, false, 1500, there}, 1500, failed, []string{"is down", "up'"}},
		{"no carrier", radioInterface{"eth1", true, false, 1500, there}, 1500, failed, []string{"carrier", "cable"}},
		{"other address", radioInterface{"radio0", true, true, 1500, []net.IP{net.IPv4(10, 77, 0, 9)}}, 1500, failed, []string{"but 10.77.0.9"}},
		{"no address", radioInterface{"radio0", true, true, 1500, nil}, 1500, failed, []string{"but none"}},
		{"small MTU", radioInterface{"radio0", true, true, 576, there}, 1500, failed, []string{"MTU 576", "mtu 1500"}},
		{"large MTU", radioInterface{"radio0", true, true, 1500, there}, 1400, warning, []string{"mtu 1400"}},
		{"large MTU and down", radioInterface{"radio0", false, true, 1500, there}, 1400, failed, []string{"mtu 1400"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := &linktrialv1.Check{State: ok, Expected: "x", Meaning: "y"}
			judgeRadio(check, c.f, "10.77.0.1", c.want)
			expect(t, check, c.state, c.words...)
		})
	}
	linkLocal := []net.IP{net.ParseIP("fe80::77:1")}
	check := &linktrialv1.Check{State: ok, Expected: "x", Meaning: "y"}
	judgeRadio(check, radioInterface{"radio0", true, true, 1500, linkLocal}, "fe80::77:1%radio0", 1500)
	expect(t, check, ok, "has fe80::77:1%radio0")
	judgeRadio(check, radioInterface{"radio0", true, true, 1500, linkLocal}, "fd00::1", 1500)
	expect(t, check, failed, "'ip address add fd00::1/64 dev radio0'")
}

func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		packets, bytes uint64
		in             time.Duration
		state          linktrialv1.CheckState
	}{
		{0, 0, time.Second, ok},
		{3, 200, time.Second, warning},
		{11, 200, time.Second, failed},
		{2, 1001, time.Second, failed},
		{11, 900, 2 * time.Second, warning}, // a machine that was slow to look again
		{0, 0, 0, unknown},
	} {
		expect(t, judgeTraffic("radio0", c.packets, c.bytes, c.in), c.state)
	}
}

func TestBusy(t *testing.T) {
	r := Busy("client", &linktrialv1.PreflightRequest{Peers: []*linktrialv1.PreflightPeer{{Name: "server"}}})
	if len(r.Checks) != 2 || r.Checks[1].Peer != "server" {
		t.Fatalf("%v", r.Checks)
	}
	for _, c := range r.Checks {
		expect(t, c, notChecked, "a run uses this node")
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 7, 0, 9, 1, 2}, false, true, 7)
	f.Add([]byte{129, 0, 0, 0, 0, 7, 0, 9}, true, false, 3)
	f.Add([]byte{8, 0, 0, 0}, false, false, 1)
	f.Fuzz(func(t *testing.T, b []byte, v6, raw bool, id int) {
		seq, ok := parseReply(b, v6, raw, id)
		if !ok {
			if seq != 0 {
				t.Errorf("sequence number %d of something else", seq)
			}
			return
		}
		if len(b) < 8 || (b[0] != 0) != v6 || seq != int(b[6])<<8|int(b[7]) || raw && id != int(b[4])<<8|int(b[5]) {
			t.Errorf("%x was taken as the reply %d of %d", b, seq, id)
		}
	})
}

func TestAddresses(t *testing.T) {
	for _, c := range [][2]string{{"10.0.0.1", "nowhere"}, {"", "10.0.0.1"}, {"10.0.0.1", "fd00::1"}} {
		if p, err := newPinger("", c[0], c[1]); err == nil {
			p.close()
			t.Errorf("%q: no error", c)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	if p, err := newPinger("none0", "127.0.0.1", "127.0.0.1"); err == nil || !strings.Contains(err.Error(), "none0") {
		t.Errorf("interface that is not there: %v", err)
		if err == nil {
			p.close()
		}
	}
	if p, err := newPinger("", "192.0.2.77", "127.0.0.1"); err == nil || !strings.Contains(err.Error(), "192.0.2.77") {
		t.Errorf("address of nobody: %v", err)
		if err == nil {
			p.close()
		}
	}
}

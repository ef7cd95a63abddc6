package e2e

import (
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/testkind"
)

// logged is a plan of probes whose packets are logged by both ends and by the radio:
// a call, which goes both ways, alone, and beside a transfer that fills the radio's queue.
const logged = `
name: logged
radio: transports-link
topology: vip-lot
size: 96 KiB
sweep:
  - {name: bandwidth, set: rate, values: [256 kbit/s]}
  - {name: loss, set: channel.loss, values: [0.02]}
treatments:
  - {name: cubic, protocol: tcp, options: {congestion: cubic}}
  - {name: voice, protocol: probe, options: {pattern: voip-g711, packets: true}, dscp: EF}
probes:
  - {treatment: voice, alone: 8s}
  - {treatment: voice, from: server, alone: 8s}
iterations: 2
seed: 3
limits: {connect: 10s, transfer: 60s}
capture: true
`

// TestProbesAgreeWithTheRadio: in the real-time lab, a probe's delays are those of
// the emulated radio's own packet log within 0.5 ms, and its losses exactly those. The
// run passes its audit.
func TestProbesAgreeWithTheRadio(t *testing.T) {
	testkind.Waits("for probes over a slow radio")
	p := newProgram(t)
	r := p.start("rehearse", p.plan("logged", logged))
	r.wait(5 * time.Minute)
	// Where emulator or driver wait for a processor, packets leave the radio later
	// than its log says: that is how late this machine is, and when it is busy most
	// may be. A fault in what is measured moves all of them, and none can be much earlier.
	// That all are near is what the same in virtual time holds.
	expectProbes(t, p, r.output(), 0.9)
	exports, err := filepath.Glob(filepath.Join(p.work, "results", "*"))
	if err != nil || len(exports) != 1 {
		t.Fatalf("%q, %v", exports, err)
	}
	if out, code := p.audit("--journals", filepath.Join(p.data, "agents", "rehearsal"), "--exports", exports[0]); code != 0 {
		testkind.Failed(t, "audit: exit %d:\n%s", code, out)
	}
	nothingLeft(t)
}

// The same in virtual time, where computing takes no time.
func TestProbesAgreeWithTheRadioVirtual(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("logged", logged))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	expectProbes(t, p, stdout, 0)
}

// expectProbes holds the probes of a rehearsal against the packet logs of its radio.
func expectProbes(t *testing.T, p *program, table string, late float64) {
	t.Helper()
	for _, part := range []string{"\nalone ", "\nbeside cubic ", "client → server", "server → client"} {
		if !strings.Contains(table, part) {
			t.Fatalf("the table of probes has no %q:\n%s", part, table)
		}
	}
	run := &p.exported().Runs[0]
	files := map[string]string{}
	err := filepath.WalkDir(p.data, func(path string, _ fs.DirEntry, err error) error {
		files[filepath.Base(path)] = path
		return nil //nolint:nilerr // a folder that another process removes has no log
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range run.Trials {
		spec := &run.Sheet.Trials[trial.Index]
		// A busy machine may have stopped the radio in an attempt before.
		last := &trial.Attempts[len(trial.Attempts)-1]
		if len(last.Probes) != 2 || last.Verdict != journal.Succeeded {
			t.Fatalf("trial %d: %+v", trial.Index, trial.Attempts)
		}
		seen := radioLog(t, files[fmt.Sprintf("trial-%04d-%d.pcapng", trial.Index, last.Attempt)], run.Sheet.Treatment("voice").Port)
		for k, p := range last.Probes {
			flow, name := &spec.Probes[k], fmt.Sprintf("%s, from the %s", trial.Treatment, p.From)
			if p.Verdict != journal.Succeeded || p.From != flow.From || p.To != flow.To {
				t.Fatalf("trial %d: %+v", trial.Index, p)
			}
			// The identity is of the agents' run, whose name a rehearsal in guests keeps.
			id := runsheet.TransferID(run.ID, trial.Index, last.Attempt, len(spec.Flows)+k).String()
			sent, arrived := packetsOf(t, files[id+"."+string(p.From)+".csv"]), packetsOf(t, files[id+"."+string(p.To)+".csv"])
			if len(sent) == 0 {
				t.Fatalf("%s: trial %d has no log of probe %s", name, trial.Index, id)
			}
			got := p.Metrics
			compareWithRadio(t, name, run.Sheet.Network, flow, sent, arrived, seen[p.From], len(spec.Flows) == 0, late)
			if int(got.Sent) != len(sent) || int(got.Received) != len(arrived) || got.Sent-got.Received != got.Lost || got.Lost == 0 && len(arrived) < len(sent) {
				t.Errorf("%s: trial %d: %+v, the logs have %d sent and %d arrived", name, trial.Index, got, len(sent), len(arrived))
			}
		}
	}
}

// compareWithRadio holds what the ends say of each packet against what the radio did to it.
func compareWithRadio(t *testing.T, name string, n *radio.Network, flow *runsheet.Flow, sent, arrived map[uint32]packetLine, seen map[uint32]hopsOf, alone bool, late float64) {
	t.Helper()
	const near = 500 * time.Microsecond
	worst, worstDelay := time.Duration(0), time.Duration(0)
	apart := 0
	for number, s := range sent {
		h, ok := seen[number]
		a, came := arrived[number]
		if !ok || h.lost == came {
			t.Errorf("%s: packet %d: on the radio %t, lost there %t, arrived %t", name, number, ok, h.lost, came)
			continue
		}
		if h.dscp != 46 {
			t.Errorf("%s: packet %d has DSCP %d on the radio, expected 46", name, number, h.dscp)
		}
		if !came {
			continue
		}
		last := &n.Links[len(n.Links)-1]
		if flow.FromServer() {
			last = &n.Links[0]
		}
		air := time.Duration(float64(h.bytes+n.FrameOverheadBytes) * 8e9 / n.UserRate(last))
		leaves := h.lastStart + int64(air) + int64(last.Delay)
		off := time.Duration(a.arrived - leaves)
		// The emulator reads packets that come together with one look at its clock
		// (executor/credible, radioSlack).
		if off < -2*time.Millisecond {
			t.Errorf("%s: packet %d arrived %s before it had left the radio", name, number, -off)
		}
		off = off.Abs()
		worst = max(worst, off)
		if alone { // nothing waits in a queue: the first hop begins when the packet is sent
			d := time.Duration((a.arrived - s.sent) - (leaves - h.firstStart)).Abs()
			worstDelay = max(worstDelay, d)
			off = max(off, d)
		}
		if off > near {
			apart++
		}
	}
	t.Logf("%s: %d sent, %d arrived; arrival at most %s from the radio's, delay at most %s, %d packets further than %s", name, len(sent), len(arrived), worst, worstDelay, apart, near)
	if float64(apart) > late*float64(len(sent)) {
		t.Errorf("%s: %d of %d packets are further than %s from the radio's log, the worst %s and %s", name, apart, len(sent), near, worst, worstDelay)
	}
}

type packetLine struct{ sent, arrived int64 }

// packetsOf reads the packets that one end of a probe has logged.
func packetsOf(t *testing.T, path string) map[uint32]packetLine {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint32]packetLine{}
	for _, r := range rows[1:] {
		n, err := strconv.ParseUint(r[0], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		var p packetLine
		if p.sent, err = strconv.ParseInt(r[1], 10, 64); err != nil {
			t.Fatal(err)
		}
		if len(r) == 5 {
			if p.arrived, err = strconv.ParseInt(r[2], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		out[uint32(n)] = p
	}
	return out
}

// hopsOf is what became of one packet on the hops of the radio.
type hopsOf struct {
	firstStart, lastStart int64 // of its transmissions, in nanoseconds since 1970
	lost                  bool
	bytes                 int
	dscp                  byte
}

// radioLog reads the probes' packets of a packet log by the end that sent them and
// their numbers; port is the listener's.
func radioLog(t *testing.T, path string, port int) map[radio.Role]map[uint32]hopsOf {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const blockPacket, header, ip, udp = 6, 28, 20, 8
	out := map[radio.Role]map[uint32]hopsOf{radio.RoleClient: {}, radio.RoleServer: {}}
	for len(b) >= 12 {
		size := int(binary.LittleEndian.Uint32(b[4:]))
		block := b[:size]
		b = b[size:]
		if binary.LittleEndian.Uint32(block) != blockPacket {
			continue
		}
		at := int64(binary.LittleEndian.Uint32(block[12:]))<<32 | int64(binary.LittleEndian.Uint32(block[16:]))
		length := int(binary.LittleEndian.Uint32(block[20:]))
		packet, rest := block[header:header+length], string(block[header+length:])
		// The plan's probe alone sends UDP with packets of this kind.
		if length < ip+udp+24 || packet[9] != 17 || packet[ip+udp] != 'D' {
			continue
		}
		from := radio.RoleClient
		if int(binary.BigEndian.Uint16(packet[ip:])) == port {
			from = radio.RoleServer
		}
		n := binary.BigEndian.Uint32(packet[ip+udp+4:])
		h, before := out[from][n]
		if !before {
			h.firstStart = at
		}
		h.lastStart, h.bytes, h.dscp = at, length, packet[1]>>2
		h.lost = h.lost || strings.Contains(rest, "lost by the channel") || strings.Contains(rest, "dropped by the queue")
		out[from][n] = h
	}
	return out
}

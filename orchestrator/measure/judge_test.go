package measure_test

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/report"
)

func of(x float64) *float64 { return &x }

// probe is a row whose packets all take the same time.
func probe(name string, from radio.Role, sent, lost int64, ms float64) report.ProbeRow {
	p := report.ProbeRow{Probe: name, From: from, Trials: 1, Measured: 1, Sent: sent, Lost: lost, Received: sent - lost, DelayP50MS: of(ms), DelayP95MS: of(ms), UncertaintyMS: of(0)}
	for range 101 {
		p.PercentilesMS = append(p.PercentilesMS, ms)
	}
	if lost > 0 {
		p.LossBursts, p.LongestLossBurst = lost, 1
	}
	if strings.HasPrefix(name, "voice") {
		p.MOS = of(4)
	}
	return p
}

// messages are those of a probe: of 1 KiB so many, and a longer one that was lost.
func messages(sent, lost int64, ms float64) []report.MessagesRow {
	m := report.MessagesRow{Bytes: 1024, Packets: 1, Sent: sent, Delivered: sent - lost}
	if lost < sent {
		m.TimeP50MS, m.TimeP95MS = of(ms), of(ms)
	}
	return []report.MessagesRow{{Bytes: 20, Packets: 1}, m, {Bytes: 10240, Packets: 9, Sent: 1}}
}

// sending is a table's messages from a role.
func sending(t *report.RunTable, from radio.Role, sent, lost int64, ms float64) {
	row(t, "messages", from).Messages = messages(sent, lost, ms)
}

// loads changes the small packets beside TCP of one way, and has others beside Haul.
func loads(t *report.RunTable, from radio.Role, tcp, haul report.ProbeRow) {
	var kept []report.ProbeRow
	for _, p := range t.Probes {
		if p.Beside == "" || p.From != from {
			kept = append(kept, p)
		}
	}
	tcp.Beside, tcp.BesideLabel, haul.Beside, haul.BesideLabel = "tcp-cubic", "TCP CUBIC", "haul", "Haul"
	t.Probes = append(kept, tcp, haul)
}

// good is a link on which everything is measured and good.
func good() report.RunTable {
	t := report.RunTable{RadioTitle: "Radio", TopologyTitle: "Here", Place: "real radio", ProbeClock: &report.ProbeClock{}}
	for _, from := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		c := probe("capacity-there", from, 1000, 0, 30)
		if from == radio.RoleServer {
			c.Probe = "capacity-back"
		}
		c.Capacity = &report.CapacityRow{Measured: 1, MaximumBPS: of(2e6), MeanBPS: of(2e6), LossShare: of(0), LargestPayloadBytes: 1472}
		beside := probe("idle", from, 200, 0, 800)
		beside.Beside, beside.BesideLabel = "tcp-cubic", "TCP CUBIC"
		said := probe("messages", from, 240, 0, 30)
		said.Messages = messages(75, 0, 40)
		t.Probes = append(t.Probes, c, probe("idle", from, 160, 0, 30), said, probe("voice-g711", from, 500, 0, 30), beside)
	}
	t.Rows = []report.Row{
		{Treatment: "tcp-cubic", Label: "TCP CUBIC", Trials: 1, Valid: 1, AverageKBps: of(200)},
		{Treatment: "haul", Label: "Haul", Trials: 1, Valid: 1, AverageKBps: of(220)},
	}
	return t
}

// row is the probe of a table that is of this treatment and role, and not beside transfers.
func row(t *report.RunTable, name string, from radio.Role) *report.ProbeRow {
	for i := range t.Probes {
		if p := &t.Probes[i]; p.Probe == name && p.From == from && p.Beside == "" {
			return p
		}
	}
	panic(name)
}

// without is a table without the rows of a probe.
func without(t *report.RunTable, name string) {
	var kept []report.ProbeRow
	for _, p := range t.Probes {
		if p.Probe != name {
			kept = append(kept, p)
		}
	}
	t.Probes = kept
}

func TestJudge(t *testing.T) {
	client, server := radio.RoleClient, radio.RoleServer
	for _, x := range []struct {
		name   string
		change func(*report.RunTable)
		want   string // voice, chat, chat while a file is sent, pictures, files
		says   string // in the text of the page
	}{
		{"all good", func(*report.RunTable) {}, "yes yes yes yes yes", "yes: quality of G.711, client → server: 4 MOS"},
		{"one way is too late for speech", func(r *report.RunTable) { *row(r, "voice-g711", server) = probe("voice-g711", server, 500, 0, 450) },
			"no yes yes yes yes", "no: delay, 95 % of packets, server → client: 450 ms, expected at most 400 ms (ITU-T G.114)"},
		{"clocks leave the delay open", func(r *report.RunTable) {
			p := probe("voice-g711", server, 500, 0, 200)
			p.UncertaintyMS = of(210)
			*row(r, "voice-g711", server) = p
		}, "undecided yes yes yes yes", "undecided: delay, 95 % of packets, server → client: 200 ms (-10 to 410)"},
		{"losses spoil speech", func(r *report.RunTable) { *row(r, "voice-g711", client) = probe("voice-g711", client, 500, 150, 30) }, "no yes yes yes yes", "no: quality of G.711"},
		{"clocks not compared", func(r *report.RunTable) {
			r.ProbeClock.Unknown = "no comparison has arrived"
			for i := range r.Probes {
				r.Probes[i].UncertaintyMS, r.Probes[i].MOS = nil, nil
			}
		}, "undecided undecided undecided yes yes", "the nodes' clocks were not compared (no comparison has arrived)"},
		{"no room for speech", func(r *report.RunTable) {
			without(r, "voice-g711")
			row(r, "capacity-back", server).Capacity.MaximumBPS = of(16e3)
		}, "no yes yes yes yes", "no: capacity, server → client: 16 kbit/s (15 to 17), expected at least 24 kbit/s"},
		{"room for speech, and none sent", func(r *report.RunTable) { without(r, "voice-g711") }, "undecided yes yes yes yes", "Voice client → server: it was not sent."},
		{"too few packets to tell the loss", func(r *report.RunTable) { *row(r, "idle", client) = probe("idle", client, 40, 0, 30) }, "yes undecided yes yes yes", "0 of 40 packets"},
		{"lossy", func(r *report.RunTable) { *row(r, "idle", client) = probe("idle", client, 160, 40, 30) }, "yes no yes yes yes", "no: loss, client → server: 25 %"},
		{"messages are lost", func(r *report.RunTable) { sending(r, server, 100, 20, 40) }, "yes no yes yes yes",
			"no: loss of messages of 1 KiB, server → client: 20 % (13.3 to 28.9), expected at most 5 % (ours); 20 of 100 messages"},
		{"messages are late", func(r *report.RunTable) { sending(r, client, 75, 0, 5200) }, "yes no yes yes yes",
			"no: time of 95 % of messages of 1 KiB, client → server: 5200 ms, expected at most 5000 ms (ours); 75 messages"},
		{"few messages leave their loss to small packets", func(r *report.RunTable) { sending(r, client, 10, 0, 40) }, "yes yes yes yes yes", "10 of 10 messages"},
		{"one of few is lost", func(r *report.RunTable) { sending(r, client, 10, 1, 40) }, "yes undecided yes yes yes", "undecided: loss of messages of 1 KiB, client → server: 10 % ("},
		{"all messages are lost", func(r *report.RunTable) { sending(r, client, 10, 10, 0) }, "yes no yes yes yes", "no: loss of messages of 1 KiB, client → server: 100 %"},
		{"the run ended before messages", func(r *report.RunTable) {
			*row(r, "messages", client) = report.ProbeRow{Probe: "messages", From: client, Trials: 1}
		}, "yes undecided yes yes yes", "Messages client → server: the run ended before it."},
		{"no time for a message", func(r *report.RunTable) { sending(r, client, 0, 0, 40) }, "yes undecided yes yes yes", "Messages client → server: the time was too short for one of 1 KiB."},
		{"an earlier version's, without messages", func(r *report.RunTable) { without(r, "messages") }, "yes yes yes yes yes", "yes: loss, client → server: 0 %"},
		{"a file delays chat, by TCP alone", func(r *report.RunTable) {
			loads(r, client, probe("idle", client, 200, 0, 8000), probe("idle", client, 200, 0, 300))
		}, "yes yes yes yes yes",
			"yes: delay, 95 % of packets, beside Haul, client → server: 300 ms, expected at most 5000 ms (ours); beside TCP CUBIC: no"},
		{"a file delays chat, by either", func(r *report.RunTable) {
			loads(r, client, probe("idle", client, 200, 0, 8000), probe("idle", client, 200, 0, 7000))
		}, "yes yes no yes yes",
			"no: delay, 95 % of packets, beside TCP CUBIC, client → server: 8000 ms"},
		{"beside transfers that failed", func(r *report.RunTable) {
			for i := range r.Probes {
				if r.Probes[i].Beside != "" {
					r.Probes[i].FailedTransfers = 1
				}
			}
		}, "yes yes undecided yes yes", "Small packets beside TCP CUBIC, client → server: the transfer failed, so that they may have met less load."},
		{"late beside a transfer that failed", func(r *report.RunTable) {
			failed := probe("idle", client, 200, 0, 8000)
			failed.FailedTransfers = 1
			loads(r, client, failed, probe("idle", client, 200, 0, 7000))
		}, "yes yes no yes yes", "no: delay, 95 % of packets, beside TCP CUBIC, client → server: 8000 ms"},
		{"a slow link", func(r *report.RunTable) { r.Rows[0].AverageKBps, r.Rows[1].AverageKBps = of(1), of(1.5) },
			"yes yes yes no no", "at the 1.5 KB/s of Haul"},
		{"a picture takes about as long as it may", func(r *report.RunTable) { r.Rows[0].AverageKBps, r.Rows[1].AverageKBps = of(1.66), of(1.64) },
			"yes yes yes undecided no", "time of 100 KiB, client → server: 60.2 s (54.2 to 66.3), expected at most 60 s"},
		{"pictures and no files", func(r *report.RunTable) { r.Rows[0].AverageKBps, r.Rows[1].AverageKBps = of(4), of(3) }, "yes yes yes yes no", "time of 10 MiB"},
		{"transfers failed", func(r *report.RunTable) {
			for i := range r.Rows {
				r.Rows[i].Valid, r.Rows[i].AverageKBps = 0, nil
				r.Rows[i].Failures = []report.Failure{{Verdict: journal.Failed, Reason: "connect", Attempts: 1}}
			}
		}, "yes yes yes undecided undecided", "Transfer of Haul: failed: connect."},
		{"aborted after the search", func(r *report.RunTable) {
			r.Partial, r.Rows = true, nil
			without(r, "voice-g711")
			without(r, "idle")
		}, "undecided undecided undecided undecided undecided", "Partial: the run was aborted."},
	} {
		t.Run(x.name, func(t *testing.T) {
			table := good()
			x.change(&table)
			v := measure.ValuesOf([]report.RunTable{table}, nil)
			uses := measure.Judge(&v, measure.Whole, measure.Defaults)
			var got []string
			for i := range uses {
				got = append(got, string(uses[i].Outcome))
			}
			if s := strings.Join(got, " "); s != x.want {
				t.Errorf("%s, expected %s", s, x.want)
			}
			page := measure.Page{Campaign: "m4t7xk2p", Values: v, Uses: uses}
			if text := page.Text(); !strings.Contains(text, x.says) {
				t.Errorf("no %q in\n%s", x.says, text)
			}
		})
	}
}

// What is still to come is not called missing.
func TestWhileItRuns(t *testing.T) {
	table := good()
	table.Partial, table.Rows = true, nil
	without(&table, "idle")
	v := measure.ValuesOf([]report.RunTable{table}, nil)
	v.Running = true
	page := measure.Page{Values: v, Uses: measure.Judge(&v, measure.Whole, measure.Defaults)}
	text := page.Text()
	for _, says := range []string{"Partial: the measurement has not ended.", "not measured: Transfers: not yet."} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in\n%s", says, text)
		}
	}
	if strings.Contains(text, "ended before") {
		t.Error(text)
	}
}

// Where the highest rate that is tried was not too much, the capacity is a lower bound.
func TestCapacityAboveTheHighestRate(t *testing.T) {
	table := good()
	c := row(&table, "capacity-there", radio.RoleClient).Capacity
	c.MaximumBPS, c.Highest = of(200.1e6), 1
	v := measure.ValuesOf([]report.RunTable{table}, nil)
	l := v.Lines()[0]
	if l.Value != 200100 || measure.Quantity(l.Value, l.Unit) != "200.1 Mbit/s" || !strings.HasPrefix(l.Note, "at least: no rate was too much") {
		t.Errorf("%+v", l)
	}
}

// A radio that nobody has named is not called by the label of the plan.
func TestUnnamedRadioHasNoTitle(t *testing.T) {
	table := good()
	table.Place, table.RadioTitle = radio.Unnamed, "Radio without a profile"
	page := measure.Page{Topology: "Here", Started: time.Unix(0, 0), Values: measure.ValuesOf([]report.RunTable{table}, nil)}
	if first, _, _ := strings.Cut(page.Text(), "\n"); first != "Measure this link: real, unnamed radio, Here, 1970-01-01 00:00:00 UTC" {
		t.Error(first)
	}
}

func TestThresholdsAreChecked(t *testing.T) {
	if err := measure.Defaults.Check(); err != nil {
		t.Error(err)
	}
	wrong := measure.Defaults
	wrong.ChatLoss = 5
	if err := wrong.Check(); err == nil || err.Error() != "threshold chat_loss: expected 0 % to 100 %, found 500 %" {
		t.Error(err)
	}
	v := measure.ValuesOf([]report.RunTable{good()}, nil)
	strict := measure.Defaults
	strict.FileSeconds = 1
	if got := measure.Judge(&v, measure.Whole, strict)[4].Outcome; got != measure.No {
		t.Errorf("10 MiB in 1 s: %s", got)
	}
}

func TestFoundIsTheLowerWay(t *testing.T) {
	table := good()
	row(&table, "capacity-back", radio.RoleServer).Capacity.MeanBPS = of(64e3)
	v := measure.ValuesOf([]report.RunTable{table}, nil)
	if bps, ok := v.FoundBPS(); !ok || bps != 64e3 {
		t.Errorf("%g, %t", bps, ok)
	}
	row(&table, "capacity-there", radio.RoleClient).Capacity = nil
	v = measure.ValuesOf([]report.RunTable{table}, nil)
	if bps, ok := v.FoundBPS(); ok {
		t.Errorf("%g of one way", bps)
	}
}

// The files hold every value and judgement; positions come from telemetry.
func TestFilesOfAPage(t *testing.T) {
	v := measure.ValuesOf([]report.RunTable{good()}, nil)
	page := measure.Page{Campaign: "m4t7xk2p", Started: time.Unix(0, 0), Values: v, Uses: measure.Judge(&v, measure.Whole, measure.Defaults)}
	if page.KML() != nil {
		t.Error("KML without positions")
	}
	rows, err := csv.NewReader(strings.NewReader(string(page.CSV()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range rows[1:] {
		count[r[1]]++
	}
	// Voice has two checks each way, and so has chat of small packets, of messages and beside
	// a transfer; pictures and files have one.
	if count["value"] != len(v.Lines()) || count["use"] != 5 || count["check"] != 18 {
		t.Errorf("%v, %d values", count, len(v.Lines()))
	}
	at := func(role string, latitude, longitude float64) []report.Telemetry {
		return []report.Telemetry{{Role: role, Metric: "latitude", Mean: latitude}, {Role: role, Metric: "longitude", Mean: longitude}}
	}
	runs := []report.Run{{Trials: []report.Trial{
		{Attempts: []report.Attempt{{Telemetry: append(at("client", 39.03, -76.96), at("server", 39.0308993, -76.96)...)}}},
		{Attempts: []report.Attempt{{Telemetry: append(at("client", 39.03, -76.96), report.Telemetry{Role: "relay", Metric: "latitude", Mean: 1})}}},
	}}}
	page.Positions = measure.PositionsOf(runs)
	if len(page.Positions) != 2 {
		t.Fatalf("%+v", page.Positions) // of the relay half is known
	}
	if text := page.Text(); !strings.Contains(text, "distance 100 m") {
		t.Errorf("no distance in\n%s", text)
	}
	kml := string(page.KML())
	for d := xml.NewDecoder(strings.NewReader(kml)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(kml, "<coordinates>-76.9600000,39.0300000 -76.9600000,39.0308993</coordinates>") || !strings.Contains(kml, "voice: yes") {
		t.Error(kml)
	}
}

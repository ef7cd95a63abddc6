package document

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// described is a campaign of three runs over one radio, which says of itself all that a sheet
// and nodes can say. The third run is on real radios; the second one's client differs.
func described() *report.Dataset {
	profile := radio.Profile{
		Name: "made-up", Title: "Made-up radio\x1b[2J", Manufacturer: "Nobody", Model: "M", Waveform: "W", Hash: strings.Repeat("a", 64),
		Parameters: []radio.Parameter{
			{Name: "channel_bandwidth", Value: 5, Unit: "MHz", Source: "its manual"},
			{Name: "transmit_power", Value: 2, Unit: "W", Source: "a letter", Uncertain: true},
			{Name: "antenna_gain", Unit: "dBi", Source: "not given", Unknown: true},
			{Name: "emulation.rate", Value: 4110000.0000000005, Unit: "bit/s", Source: "calibrated"},
		},
		Notes: []string{"Its accelerator is off."},
		Emulation: &radio.Emulation{Medium: radio.MediumShared, RateBitsPerSecond: 4.11e6, ProcessingDelay: 20 * time.Millisecond, MTUBytes: 1500,
			Queue: radio.Queue{Bytes: 65536}, Channel: radio.Channel{Model: radio.ChannelUniform, Loss: 0.01}},
	}
	ds := reporttest.Campaign()
	for i, id := range []string{"c-1", "c-2", "c-3"} {
		r := reporttest.NewRun(id, profile.Name, profile.Title, "hill", "Hill", 1<<20, 3, reporttest.Cubic, reporttest.UDT)
		r.Sheet.Radio = profile
		r.Sheet.Topology = radio.Topology{Name: "hill", Title: "Hill", Source: "a map", Hash: strings.Repeat("b", 64), Notes: []string{"There is a wood."},
			Stations: []radio.Station{{Name: "top", Role: radio.RoleServer, Latitude: 39.03, Longitude: -76.96, Elevation: 80}, {Name: "foot", Role: radio.RoleClient, Latitude: 39.02, Longitude: -76.96}},
			Links:    []radio.Path{{A: radio.RoleClient, B: radio.RoleServer, DistanceMetres: 94.5, Source: "measured"}}}
		client := r.Provenance["client"]
		client.Qdiscs = `[{"kind":"noqueue","dev":"lo","root":true},{"kind":"fq_codel","dev":"radio0","root":true},{"kind":"fq","dev":"radio0"}]`
		client.Interfaces = []journal.Interface{{Name: "lo", MTU: 65536}, {Name: "radio0", MTU: 1500, Driver: "tun", Offloads: map[string]bool{"rx-gro": true, "tx-tcp-segmentation": false}}}
		client.Sysctls = map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_fin_timeout": "60"}
		client.Priority = &journal.Priority{Nice: -5, Policy: "other", CPUWeight: 1000}
		client.Drivers = []journal.Driver{{Name: "tcp", Version: "1.3.0", Implementation: "linux-kernel", Digest: "sha256:" + strings.Repeat("c", 64)}, {Name: "quic", Version: "9"}}
		r.Clocks["client"] = []journal.ClockOffset{{When: "before", Offset: time.Duration(i-1) * 5 * time.Millisecond, Error: time.Duration(3-i) * time.Millisecond}, {When: "after", Unknown: "no control link"}}
		switch i {
		case 1:
			client.Kernel = "6.13"
			client.Sysctls["net.ipv4.tcp_congestion_control"] = "bbr"
		case 2:
			r.Place = journal.PlaceReal
		}
		r.Provenance = map[string]journal.Provenance{"client": client, "server": r.Provenance["server"]}
		ds.Runs = append(ds.Runs, r)
	}
	return ds
}

func TestConditionsOfRadios(t *testing.T) {
	sections := sectionsOf(t, conditions, described())
	table := tableCalled(sections, "Parameters of Made-up radio")
	require.NotNil(t, table)
	require.Len(t, table.Rows, 4, "one table, though three runs used it")
	assert.Equal(t, "Parameters of Made-up radio [2J", table.Caption, "no control character")
	assert.Equal(t, []string{"channel bandwidth", "5 MHz", "", "its manual"}, table.Rows[0].Cells)
	assert.Equal(t, []string{"transmit power", "2 W", "uncertain: its source doubts it", "a letter"}, table.Rows[1].Cells)
	assert.Equal(t, []string{"antenna gain", "not known", "unknown: no source gives it", "not given"}, table.Rows[2].Cells)
	assert.Equal(t, []string{"emulated rate", "4.11 Mbit/s", "", "calibrated"}, table.Rows[3].Cells)
	assert.True(t, table.Rows[3].Group)
	assert.Equal(t, "loses packets independently, 1 %", factOf(sections, "Channel"))
	assert.Equal(t, "64 KiB, drop-tail", factOf(sections, "Queue"))
	all := strings.Join(textsOf(sections), "\n")
	assert.Contains(t, all, "Measured at: emulated, real time (runs 1, 2).")
	assert.Contains(t, all, "Measured at: real radio (run 3). The radios are real")
	assert.Contains(t, all, "Emulated as follows in runs 1, 2.")
	assert.Contains(t, all, "as no source gives it: antenna gain.")

	real := described()
	real.Runs = real.Runs[2:]
	sections = sectionsOf(t, conditions, real)
	assert.Len(t, tableCalled(sections, "Parameters of").Rows, 3, "nothing was emulated")
	assert.Empty(t, factOf(sections, "Queue"))
}

func TestConditionsOfASweep(t *testing.T) {
	ds := described()
	swept := *ds.Runs[1].Sheet.Radio.Emulation
	swept.Channel.Loss = 0.2
	ds.Runs[1].Sheet.Radio.Emulation = &swept
	ds.Runs[1].Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "channel.loss", Value: "0.2", Label: "0.2"}}
	sections := sectionsOf(t, conditions, ds)
	assert.Equal(t, "loses packets independently, 1 % (run 1); loses packets independently, 20 % (run 2)", factOf(sections, "Channel"))
	assert.Equal(t, "1500 B", factOf(sections, "MTU"), "what does not differ is said once")
	assert.Contains(t, tableCalled(sections, "Parameters of").Notes[0], "sweep has set some of them")
	assert.Empty(t, tableCalled(sectionsOf(t, conditions, described()), "Parameters of").Notes)
}

func TestConditionsOfPlacesAndNodes(t *testing.T) {
	sections := sectionsOf(t, conditions, described())
	stations := tableCalled(sections, "Stations of Hill")
	require.NotNil(t, stations)
	assert.Equal(t, []string{"top", "server", "39.03", "-76.96", "80"}, stations.Rows[0].Cells)
	assert.Equal(t, []string{"client", "server", "94.5", "measured"}, tableCalled(sections, "Links of Hill").Rows[0].Cells)

	nodes := tableCalled(sections, "Nodes")
	require.Len(t, nodes.Rows, 3)
	assert.Equal(t, "6.12", cellOf(t, nodes, 0, "Kernel"))
	assert.Equal(t, "runs 1, 3", cellOf(t, nodes, 0, "Runs"))
	assert.Equal(t, "nice -5, scheduler other, CPU weight 1000", cellOf(t, nodes, 0, "Priority of the agent"))
	assert.Equal(t, "6.13", cellOf(t, nodes, 2, "Kernel"))
	assert.Equal(t, "run 2", cellOf(t, nodes, 2, "Runs"))
	interfaces := tableCalled(sections, "Network interfaces")
	require.Len(t, interfaces.Rows, 1)
	assert.Equal(t, []string{"client", "radio0", "1500", "tun", "fq_codel", "GRO"}, interfaces.Rows[0].Cells)

	drivers := tableCalled(sections, "Drivers as the nodes had them")
	require.Len(t, drivers.Rows, 1, "quic is no treatment's")
	assert.Equal(t, []string{"tcp", "1.3.0", "linux-kernel", "sha256:cccccccccccc…", "client"}, drivers.Rows[0].Cells)
	settings := tableCalled(sections, "Settings of the kernel")
	assert.Equal(t, []string{"net.ipv4.tcp_congestion_control", "cubic", "client", "runs 1, 3"}, settings.Rows[0].Cells)
	assert.Equal(t, []string{"net.ipv4.tcp_congestion_control", "bbr", "client", "run 2"}, settings.Rows[1].Cells)
}

func TestConditionsOfClocks(t *testing.T) {
	sections := sectionsOf(t, conditions, described())
	clocks := tableCalled(sections, "Clocks of the nodes")
	require.Len(t, clocks.Rows, 1, "after the run they were not compared")
	assert.Equal(t, []string{"client", "before the run", "3", "-5.000", "3.000"}, clocks.Rows[0].Cells)
	assert.Contains(t, strings.Join(textsOf(sections), "\n"), "in run 3: no control link.", "nodes of a lab have one clock")
}

func TestConditionsOfUnnamedAndImported(t *testing.T) {
	ds := described()
	ds.Runs[2].Place = journal.PlaceUnnamed
	ds.Runs[2].Imported = &report.Import{Campaign: "abcd", Origin: "the other team", File: "results.json", SHA256: "ff", By: "a\tperson", At: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	all := strings.Join(textsOf(sectionsOf(t, conditions, ds)), "\n")
	assert.Contains(t, all, "In run 3 the radio was a real, unnamed radio")
	assert.Contains(t, all, "Which radio was used in 1 run: nobody has named it.")
	assert.Contains(t, all, "Measured by another orchestrator: campaign abcd imported from results.json of the other team by a person")
	assert.NotContains(t, strings.Join(textsOf(sectionsOf(t, conditions, described())), "\n"), "another orchestrator")
}

func TestConditionsOfWhatIsNotKnown(t *testing.T) {
	queued := &report.Dataset{Campaign: "c", Runs: []report.Run{{ID: "r", State: "queued"}}}
	all := strings.Join(textsOf(sectionsOf(t, conditions, queued)), "\n")
	assert.Contains(t, all, "The run sheet, and so radio, place and method, of run 1.")
	assert.Empty(t, sectionsOf(t, conditions, &report.Dataset{}))
	bare := described()
	for i := range bare.Runs {
		bare.Runs[i].Provenance, bare.Runs[i].Clocks = nil, nil
	}
	sections := sectionsOf(t, conditions, bare)
	assert.Nil(t, sectionNamed(sections, "conditions-nodes"))
	assert.Nil(t, sectionNamed(sections, "conditions-drivers"))
	assert.Nil(t, sectionNamed(sections, "conditions-settings"))
	assert.Contains(t, strings.Join(textsOf(sections), "\n"), "What the nodes were (kernel, settings, versions) in all 3 runs")
}

func TestEmulationInWords(t *testing.T) {
	for _, c := range []struct {
		channel radio.Channel
		text    string
	}{
		{radio.Channel{Model: radio.ChannelPerfect}, "loses nothing"},
		{radio.Channel{Model: radio.ChannelGilbertElliott, Slot: 10 * time.Millisecond, GoodToBad: 0.000472, BadToGood: 0.0042, LossBad: 1}, "Gilbert–Elliott in slots of 10 ms: good to bad 0.000472, bad to good 0.0042, loss 0 % in the good state and 100 % in the bad one"},
		{radio.Channel{Model: radio.ChannelMarkov, Alpha: 0.1, Beta: 0.3}, "two-state Markov chain: α 0.1, β 0.3; 25 % of the slots are bad"},
		{radio.Channel{Model: radio.ChannelOnOff, Loss: 0.2, OnOff: &radio.OnOff{PeriodMin: time.Second, PeriodMax: 2 * time.Second, OnFactor: 1.5, OffFactor: 0.5}}, "ON and OFF periods of 1 s to 2 s, mean loss 20 %, times 1.5 and 0.5"},
		{radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{BitErrorRates: []float64{1e-6, 0.01}}}, "hidden Markov bit errors of 2 states, with bit error rates 1e-06, 0.01"},
		{radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Period: time.Minute, Length: 5 * time.Second, Loss: 1}}, "outages of 5 s every 60 s, loss 100 % in them"},
		{radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Times: make([]radio.Outage, 2), Loss: 1}}, "2 outages at stated times, loss 100 % in them"},
		{radio.Channel{Model: radio.ChannelTrace}, "follows a trace of rate, delay and loss"},
		{radio.Channel{Model: radio.ChannelMobility}, "follows the distance between the stations"},
		{radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{{Model: radio.ChannelPerfect}, {Model: radio.ChannelUniform, Loss: 0.5}}}, "loses nothing; and loses packets independently, 50 %"},
	} {
		assert.Equal(t, c.text, channelText(&c.channel))
	}
	var f spreadFacts
	emulationFacts(&f, 0, &radio.Emulation{Medium: radio.MediumHalfDuplex, RateBitsPerSecond: 4800, MTUBytes: 576, Turnaround: 30 * time.Millisecond, FrameOverheadBytes: 8,
		Queue: radio.Queue{Packets: 50, RED: &radio.RED{MinBytes: 1000, MaxBytes: 3000, MaxProbability: 0.1, ECN: true}}, Channel: radio.Channel{Model: radio.ChannelPerfect}, Reverse: &radio.Channel{Model: radio.ChannelPerfect},
		Framing: &radio.Framing{FrameBytes: 250, HeaderBytes: 8}, FEC: &radio.FEC{Code: radio.FECReedSolomon, CodeRate: 0.875, BlockSymbols: 255, DataSymbols: 223, InterleavingDepth: 4, ResidualBER: 1e-5},
		ARQ: &radio.ARQ{NACKTimerFrames: 5, Persistence: 3, InOrder: true}, Reordering: &radio.Reordering{Share: 0.01, Delay: 50 * time.Millisecond}, Duplication: &radio.Duplication{Share: 0.002},
		Access: &radio.Access{TDMA: &radio.TDMA{Slot: 10 * time.Millisecond, Owners: []radio.Role{radio.RoleClient, radio.RoleServer}}},
		Sites:  map[string]radio.Site{"hill": {RateBitsPerSecond: 2400, Channel: &radio.Channel{Model: radio.ChannelPerfect}, Reverse: &radio.Channel{Model: radio.ChannelPerfect}}, "dale": {}},
	}, "hill")
	got := map[string]string{}
	for _, x := range f.facts(1, 1) {
		got[x.Name] = x.Value
	}
	assert.Equal(t, map[string]string{
		"Medium": "half duplex: both directions of a link share its rate", "Rate on the air": "4.8 kbit/s", "Processing delay": "0 s a hop", "Turnaround": "30 ms between transmitters",
		"Overhead": "8 B a packet", "MTU": "576 B", "Queue": "50 packets; RED from 1000 B to 3000 B, probability 0.1 at most, marks packets (ECN)", "Channel": "loses nothing", "Channel back": "loses nothing",
		"Frames": "250 B, 8 B of them header", "Error-correcting code": "reed-solomon (255, 223), rate 0.875, interleaving depth 4, bit error rate behind it 1e-05",
		"ARQ": "selective repeat, NACK after 5 frames, at most 3 retransmissions of a frame, delivered in order", "Reordering": "1 % of the packets are held back for 50 ms at their destination",
		"Duplication": "0.2 % of the packets come out twice at their destination", "Access": "TDMA, slots of 10 ms: client, server", "Between relay and client at hill": "2.4 kbit/s; loses nothing; back: loses nothing",
	}, got)
}

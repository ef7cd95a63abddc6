package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
)

const grouped = `name: grouped
radio: decola-radio
topology: point-to-point
size: [3 KB, 10 KB]
treatments:
  - {name: reno, protocol: tcp, options: {congestion: reno}}
  - {name: later, protocol: scps-tp, missing: not built}
  - {name: udt, protocol: udt}
mixes:
  - {name: both, label: Both, flows: [{treatment: reno, count: 2, duration: 10s}, {treatment: udt, duration: 10s, start: 1s}]}
  - {name: half, flows: [{treatment: later, duration: 10s}]}
groups:
  - name: one
    treatments: [reno, later]
    sweep:
      - {name: bandwidth, set: rate, values: [16 kbit/s, 1 Mbit/s]}
      - {name: channel, set: [channel.alpha, channel.beta], values: [[0.001, 0.01], [0.1, 1]]}
      - {name: packet, set: option.mss, values: [360 B], labels: [400 B]}
    exclude:
      - {bandwidth: 16 kbit/s, size: 10 KB}
    iterations: 4
    limits: {transfer: 1h}
  - name: two
    notes: [Two at once]
    radio: lttcp-uniform
    treatments: [both, half]
    flows: [{count: 3, spacing: 100ms, duration: 20s}]
  - name: three
    size: 1 KB
    treatments: [reno]
    sweep:
      - {name: flows, set: flows.count, values: [1, 10]}
iterations: 2
seed: 7
published:
  source: a paper
  figures:
    - {group: one, where: {bandwidth: 1 Mbit/s, size: 3072 B}, treatment: reno, metric: normalised-throughput, value: 0.5}
    - {group: one, where: {channel: "(0.1, 1)"}, treatment: ideal, metric: normalised-throughput, at_least: 0.1, at_most: 0.9, about: true}
    - {group: one, treatment: reno, reference: later, metric: gain-percent, at_least: 90, source: figure 3}
    - {group: one, where: {bandwidth: 1 Mbit/s}, relative_to: {bandwidth: 16 kbit/s}, metric: throughput-kbit-per-s, change_percent: -82.4}
    - {group: three, metric: throughput-mbit-per-s, best: {flows: "10"}}
    - {group: three, metric: throughput-mbit-per-s, rises: flows}
    - {group: three, metric: throughput-mbit-per-s, flat_from: {flows: "10"}}
    - {group: one, metric: timeouts, order: [later, reno]}
    - {group: two, treatment: both, metric: timeouts, text: "one"}
`

func parse(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGroups(t *testing.T) {
	p := parse(t, grouped)
	var got []string
	for i := range p.Cells {
		c := &p.Cells[i]
		ch := c.Radio.Emulation.Channel
		got = append(got, fmt.Sprintf("%s %s %d %g %g/%g [%s] ×%d %v", c.Group, c.Radio.Name, c.SizeBytes, c.Radio.Emulation.RateBitsPerSecond, ch.Alpha, ch.Beta, c.Label, c.Iterations, c.Runnable()))
	}
	want := []string{
		"one decola-radio 3072 16000 0.001/0.01 [bandwidth 16 kbit/s, channel (0.001, 0.01), packet 400 B] ×4 [reno]",
		"one decola-radio 3072 16000 0.1/1 [bandwidth 16 kbit/s, channel (0.1, 1), packet 400 B] ×4 [reno]",
		"one decola-radio 3072 1e+06 0.001/0.01 [bandwidth 1 Mbit/s, channel (0.001, 0.01), packet 400 B] ×4 [reno]",
		"one decola-radio 3072 1e+06 0.1/1 [bandwidth 1 Mbit/s, channel (0.1, 1), packet 400 B] ×4 [reno]",
		"one decola-radio 10240 1e+06 0.001/0.01 [bandwidth 1 Mbit/s, channel (0.001, 0.01), packet 400 B] ×4 [reno]",
		"one decola-radio 10240 1e+06 0.1/1 [bandwidth 1 Mbit/s, channel (0.1, 1), packet 400 B] ×4 [reno]",
		"two lttcp-uniform 3072 1e+07 0/0 [] ×2 [both]",
		"two lttcp-uniform 10240 1e+07 0/0 [] ×2 [both]",
		"three decola-radio 1024 64000 0.01/0.1 [flows 1] ×2 [reno]",
		"three decola-radio 1024 64000 0.01/0.1 [flows 10] ×2 [reno]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	c := p.Cells[0]
	settings := []runsheet.Setting{{Axis: "bandwidth", Parameter: "rate", Value: "16 kbit/s", Label: "16 kbit/s"}, {Axis: "channel", Parameter: "channel.alpha", Value: "0.001", Label: "(0.001, 0.01)"},
		{Axis: "channel", Parameter: "channel.beta", Value: "0.01", Label: "(0.001, 0.01)"}, {Axis: "packet", Parameter: "option.mss", Value: "360 B", Label: "400 B"}}
	if !reflect.DeepEqual(c.Settings, settings) {
		t.Errorf("settings %+v", c.Settings)
	}
	if mss := c.Treatments[0].Options["mss"]; fmt.Sprint(mss) != "360" || c.Treatments[1].Options["mss"] != "360 B" {
		t.Errorf("options %v and, of a missing treatment, %v", c.Treatments[0].Options, c.Treatments[1].Options)
	}
	if _, changed := p.Treatments[0].Options["mss"]; changed {
		t.Error("a cell's option changed the plan's treatment")
	}
	if c.Limits.Transfer != time.Hour || p.Cells[6].Limits.Transfer != 5*time.Minute {
		t.Errorf("limits %s, %s", c.Limits.Transfer, p.Cells[6].Limits.Transfer)
	}
	two := p.Cells[6]
	if len(two.Treatments) != 0 || len(two.Listeners) != 3 || len(two.Mixes) != 2 || two.Mixes[1].Missing != "later is missing: not built" {
		t.Errorf("cell of mixes: %+v", two)
	}
	if f := two.Mixes[0].Flows; f[0].Count != 2 || f[1].Start != time.Second || f[1].Treatment != "udt" || f[0].From != radio.RoleClient {
		t.Errorf("flows of a mix: %+v", f)
	}
	if p.Cells[9].Flows[0].Count != 10 || p.Cells[8].Flows[0].Count != 1 {
		t.Errorf("swept flows: %+v, %+v", p.Cells[8].Flows, p.Cells[9].Flows)
	}
	if !reflect.DeepEqual(p.Groups, []string{"one", "two", "three"}) || !reflect.DeepEqual(p.Missing(), []string{"later", "half"}) || p.Notes[0] != "two: Two at once" {
		t.Errorf("groups %q, missing %q, notes %q", p.Groups, p.Missing(), p.Notes)
	}
	if p.Trials() != 6*4+2*2+2*2 {
		t.Errorf("%d trials", p.Trials())
	}
}

func TestValues(t *testing.T) {
	p := parse(t, grouped)
	if len(p.PublishedValues) != 9 {
		t.Fatalf("%d published values", len(p.PublishedValues))
	}
	f := p.PublishedValues[0]
	if f.Metric != plan.MetricNormalised || *f.Value != 0.5 || f.Source != "a paper" || !reflect.DeepEqual(f.Where, []plan.Condition{{Axis: "size", Value: "3 KiB"}, {Axis: "bandwidth", Value: "1 Mbit/s"}}) {
		t.Errorf("%+v", f)
	}
	met := 0
	for i := range p.Cells {
		if c := p.Cells[i].Sheet(i); c.At("group") == f.Group && plan.Meets(&c, f.Where) {
			met++
		}
	}
	if met != 2 {
		t.Errorf("%d runs meet the first published value's conditions, want one for each channel", met)
	}
	if f := p.PublishedValues[1]; f.Treatment != plan.Ideal || *f.AtLeast != 0.1 || *f.AtMost != 0.9 || !f.About {
		t.Errorf("%+v", f)
	}
	if f := p.PublishedValues[2]; f.Reference != "later" || f.Source != "figure 3" {
		t.Errorf("%+v", f)
	}
	if f := p.PublishedValues[3]; *f.ChangePercent != -82.4 || f.RelativeTo[0].Value != "16 kbit/s" {
		t.Errorf("%+v", f)
	}
	if f := p.PublishedValues[4]; *f.Best != (plan.Condition{Axis: "flows", Value: "10"}) {
		t.Errorf("%+v", f)
	}
	if p.PublishedValues[5].Rises != "flows" || p.PublishedValues[6].FlatFrom.Axis != "flows" || len(p.PublishedValues[7].Order) != 2 || p.PublishedValues[8].Text != "one" {
		t.Errorf("%+v", p.PublishedValues[5:])
	}
}

func TestGroupsRefused(t *testing.T) {
	cat := testCatalog(t)
	for _, c := range []struct{ old, new, want string }{
		{"set: rate", "set: rat", "the profile's emulation has no rat; there are medium, rate"},
		{"[16 kbit/s, 1 Mbit/s]}", "[16 kbit/s, fast]}", `p:16:58: groups[0].sweep[0].values[1]: decola-radio: emulation.rate.value: expected a rate`},
		{"[0.1, 1]]", "[0.1, 2]]", "emulation.channel.beta: expected a number from 1e-09 to 1"},
		{"[0.1, 1]]", "[0.1]]", "values[1]: 1 values for 2 parameters"},
		{"[0.1, 1]]", "[0.001, 0.01]]", `the value "(0.001, 0.01)" is given twice`},
		{"labels: [400 B]", "labels: [400 B, 500 B]", "2 labels for 1 values"},
		{"option.mss", "option.msss", `no treatment here has an option "msss"`},
		{"[360 B], labels", "[3 B], labels", "expected 88 B to 32767 B, found 3 B"},
		{"name: packet", "name: channel", `"channel" is an axis already`},
		{"name: packet", "name: size", `"size" is an axis already`},
		{"set: option.mss", "set: rate", "rate is set twice"},
		{"flows.count", "flows.number", `unknown parameter of flows "flows.number"`},
		{"{bandwidth: 16 kbit/s, size", "{bandwidth: 17 kbit/s, size", `unknown bandwidth "17 kbit/s"`},
		{"{bandwidth: 16 kbit/s, size", "{bandwidht: 16 kbit/s, size", `unknown key "bandwidht" (did you mean "bandwidth"?)`},
		{"name: two", "name: one", `group "one" is given twice`},
		{"[both, half]", "[both, halb]", `unknown treatment "halb" (did you mean "half"?); there are reno, later, udt, both, half`},
		{"name: both", "name: reno", `treatment "reno" is given already`},
		{"{treatment: later, duration", "{duration", "flows[0].treatment is missing"},
		{"duration: 20s}", "duration: 20s, size: 1 KB}", "by its size or by its duration, not by both"},
		{"duration: 20s}", "duration: 20m}", "a flow of 20m0s is longer than the limit of a transfer, 5m0s"},
		{"duration: 20s}", "duration: 20s, from: relay}", "topology point-to-point has no relay"},
		{"duration: 20s}", "duration: 20s, from: server}", "leads from the server to itself"},
		{"duration: 20s}", "duration: 20s, from: server, to: relay}", `expected server, where the listeners of a run are, found "relay"`},
		{"duration: 20s}", "on_off: {on: 1s, idle: 1s}}", "needs a duration"},
		{"count: 3, spacing: 100ms, duration: 20s}", "count: 1000, duration: 200s, on_off: {on: 1s, idle: 1s}}", "on-times in a trial, at most 20000 fit"},
		{"count: 3", "count: 0", `expected a whole number from 1 to 1000, found "0"`},
		{"group: one, where: {bandwidth: 1 Mbit/s, size: 3072 B}", "where: {}", "figures[0].group is missing"},
		{"size: 3072 B}", "size: 4 KB}", "no run of the plan meets these conditions"},
		{"value: 0.5}", "value: 0.5, at_least: 0.1}", "expected one statement"},
		{"at_least: 0.1, at_most: 0.9", "at_least: 0.9, at_most: 0.1", "at_least 0.9 is more than at_most 0.1"},
		{"reference: later, ", "", "figures[2].reference is missing"},
		{"relative_to: {bandwidth: 16 kbit/s}, ", "", "change_percent and relative_to go together"},
		{"metric: timeouts, order", "metric: timeous, order", `unknown "timeous" (did you mean "timeouts"?)`},
		{"rises: flows", "rises: loss", `unknown axis "loss" (did you mean "flows"?); there are radio, topology, size, flows`},
		{`best: {flows: "10"}`, `best: {flows: "10", size: 1 KB}`, "expected one axis and its value"},
		{"iterations: 4", "iterations: 20000", "groups[0].iterations: expected a whole number from 1 to 10000"},
		{"radio: lttcp-uniform", "radio: prc-152", `unknown radio "prc-152"`},
		{"groups:\n", "groups: []\nnothing:\n", "expected 1 to 200 groups, found 0"},
	} {
		text := strings.Replace(grouped, c.old, c.new, 1)
		if text == grouped {
			t.Fatalf("%q is not in the plan", c.old)
		}
		_, err := plan.Parse(nil, "p", []byte(text), cat)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: got\n%v\nwant\n%s", c.old, c.new, err, c.want)
		}
	}
	many := strings.Replace(small, "seed: 7", "seed: 7\nsweep:\n"+
		"  - {name: a, set: rate, values: ["+numbers("%d Mbit/s", 100)+"]}\n  - {name: b, set: mtu, values: ["+numbers("%d000 B", 51)+"]}", 1)
	if _, err := plan.Parse(nil, "p", []byte(many), cat); err == nil || !strings.Contains(err.Error(), "p:10:3: sweep: makes 5100 runs, at most 1000 fit in a plan") {
		t.Errorf("5100 runs: %v", err)
	}
	wrong := strings.Replace(many, numbers("%d000 B", 51), numbers("%d B", 9), 1) // all below the smallest MTU
	if _, err := plan.Parse(nil, "p", []byte(wrong), cat); err == nil || strings.Count(err.Error(), "expected a size from 576 B") != 9 || strings.Count(err.Error(), "\n") != 8 {
		t.Errorf("9 wrong values in 900 combinations, each of which is to be reported once: %v", err)
	}
	unsized := strings.Replace(small, "size: 64 KiB\n", "", 1)
	if _, err := plan.Parse(nil, "p", []byte(unsized), cat); err == nil || !strings.Contains(err.Error(), "size is missing") {
		t.Errorf("no size: %v", err)
	}
	if p := parse(t, strings.Replace(small, "size: 64 KiB\n", "flows: [{duration: 1s}]\n", 1)); len(p.Cells) != 1 || p.Cells[0].SizeBytes != 0 {
		t.Errorf("flows of a duration need no size: %+v", p.Cells)
	}
}

func numbers(format string, n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i+1))
	}
	return strings.Join(out, ", ")
}

// A treatment waits for an option or a choice as it does for a driver, and
// ends waiting when it comes to exist.
func TestMissingOptionOrChoice(t *testing.T) {
	cat := testCatalog(t)
	text := strings.Replace(small, "  - {name: a, protocol: tcp}\n", "  - {name: a, protocol: tcp}\n  - {name: b, protocol: tcp, options: {congestion: radio}, missing: no such congestion control}\n", 1)
	p, err := plan.Parse(nil, "p", []byte(text), cat.WithChoices("tcp", "congestion", []string{"cubic", "reno"}))
	if err != nil || p.Treatments[1].Missing != "no such congestion control" || p.Treatments[1].Options["congestion"] != "radio" || p.Trials() != 2 {
		t.Errorf("got %+v, %v", p, err)
	}
	p, err = plan.Parse(nil, "p", []byte(text), cat.WithChoices("tcp", "congestion", []string{"cubic", "radio", "reno"}))
	if err != nil || p.Treatments[1].Missing != "" || p.Trials() != 4 {
		t.Errorf("got %+v, %v", p, err)
	}
	p, err = plan.Parse(nil, "p", []byte(strings.Replace(text, "congestion: radio", "segment_shape: round", 1)), cat)
	if err != nil || p.Treatments[1].Missing == "" {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err = plan.Parse(nil, "p", []byte(strings.Replace(text, "congestion: radio", "receive_buffer: 1 B", 1)), cat); err == nil {
		t.Error("a wrong value of an option that exists was waited for")
	}
}

package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

// What a plan makes is counted before any of it is made, and refused with the
// number and the bound.
func TestBounds(t *testing.T) {
	cat := testCatalog(t)
	many := func(n int) string {
		return strings.TrimSuffix(strings.Repeat("{count: 1000, duration: 1s}, ", n), ", ")
	}
	axis := func(name, set string, values string) string {
		return fmt.Sprintf("  - {name: %s, set: %s, values: [%s]}\n", name, set, values)
	}
	for _, c := range []struct{ name, iterations, more, want string }{
		{"flows times iterations", "10000", "flows: [{count: 1000, duration: 1s}]", "7:13: iterations: the plan has 10000000 flows in its 10000 trials, at most 200000 fit"},
		{"a list of flows", "10000", "flows: [" + many(100) + "]", "9:8: flows: 100000 flows in a trial, at most 1000 fit"},
		{"a long list of flows", "10000", "flows: [" + many(200) + "]", "9:8: flows: expected at most 100 entries, found 200"},
		{"a sweep of their number", "300", "flows: [{duration: 1s}]\nsweep: [{name: n, set: flows.count, values: [1, 1000]}]", "7:13: iterations: the plan has 300300 flows in its 600 trials, at most 200000 fit"},
		{"a sweep of their number over several entries", "1", "flows: [{duration: 1s}, {duration: 1s}]\nsweep: [{name: n, set: flows.count, values: [1, 1000]}]", "10:49: sweep[0].values[1]: 2000 flows in a trial, at most 1000 fit"},
		{"a sweep of their duration", "1", "flows: [{count: 10, duration: 1s, on_off: {on: 1ms, idle: 0s}}]\nsweep: [{name: n, set: flows.duration, values: [1s, 200s]}]", "10:53: sweep[0].values[1]: about 2000010 on-times in a trial, at most 20000 fit"},
		{"a sweep of their duration beyond the limit", "1", "flows: [{duration: 1s}]\nsweep: [{name: n, set: flows.duration, values: [1s, 100h]}]", "10:53: sweep[0].values[1]: a flow of 100h0m0s is longer than the limit of a transfer, 5m0s"},
		{"on-times times iterations", "1000", "flows: [{count: 10, duration: 60s, on_off: {on: 1s, idle: 0s}}]", "7:13: iterations: the plan has 610000 flows in its 1000 trials, at most 200000 fit"},
		{"combinations of axes", "1", "sweep:\n" + axis("a", "rate", numbers("%d Mbit/s", 1000)) + axis("b", "mtu", numbers("%d000 B", 1000)) + axis("c", "channel.loss", numbers("0.%d", 1000)) + axis("d", "processing_delay", numbers("%dms", 1000)), "10:3: sweep: makes 1000000000000 runs, at most 1000 fit in a plan"},
		{"axes", "1", "sweep: [" + strings.Repeat("{}, ", 1000) + "]", "9:8: sweep: expected at most 16 axes, found 1000"},
		{"a sweep of an unknown radio", "1", "sweep:\n" + axis("a", "rate", numbers("%d Mbit/s", 1000)) + axis("b", "mtu", numbers("%d000 B", 1000)) + "groups: [{name: g, radio: nope}]", `12:27: groups[0].radio: unknown radio "nope"`},
		{"exclusions", "1", "exclude: [" + strings.Repeat("{radio: mpu4}, ", 1000) + "]", "9:10: exclude: expected at most 500 entries, found 1000"},
		{"a document", "1", "notes: [" + strings.Repeat("a,", 100_000) + "]", "the document has more than 100000 values"},
		{"runs of several groups", "1", "sweep:\n" + axis("a", "rate", numbers("%d Mbit/s", 100)) + "groups: [" + groups(200, "notes: [x]") + "]", "groups: make 1100 runs up to group g10, at most 1000 fit in a plan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, "iterations: 2", "iterations: "+c.iterations, 1) + c.more + "\n"
			_, err := plan.Parse(nil, "p", []byte(text), cat)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n%.1000v\nwant\n%s", err, c.want)
			}
		})
	}
}

func groups(n int, rest string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("{name: g%d, %s}", i, rest))
	}
	return strings.Join(out, ", ")
}

// An element of a list without a value is an error, whatever the list; so is a
// plan that makes no trial. Each is said once.
func TestNullElements(t *testing.T) {
	cat := testCatalog(t)
	for _, c := range []struct{ old, new, want string }{
		{"radio: mpu4", "radio: [null]", "p:2:9: radio[0] is empty"},
		{"radio: mpu4", "radio: [mpu4, ~]", "p:2:15: radio[1] is empty"},
		{"radio: mpu4", "radio:\n  -", "p:3:4: radio[0] is empty"},
		{"topology: k-lot", "topology: [null]", "p:3:12: topology[0] is empty"},
		{"size: 64 KiB", "size: [null]", "p:4:8: size[0] is empty"},
		{"size: 64 KiB", "size: {k-lot: null}", "p:4:8: size.k-lot is empty"},
		{"  - {name: a, protocol: tcp}\n", "  - {name: a, protocol: tcp}\n  -\n", "p:7:4: treatments[1] is empty"},
		{"seed: 7", "seed: 7\nnotes: [null]", "p:9:9: notes[0] is empty"},
		{"seed: 7", "seed: 7\nexclude: [null]", "p:9:11: exclude[0] is empty"},
		{"seed: 7", "seed: 7\nsweep: [null]", "p:9:9: sweep[0] is empty"},
		{"seed: 7", "seed: 7\nsweep: [{name: a, set: [null], values: [1]}]", "p:9:25: sweep[0].set[0] is empty"},
		{"seed: 7", "seed: 7\nsweep: [{name: a, set: rate, values: [null]}]", "p:9:39: sweep[0].values[0] is empty"},
		{"seed: 7", "seed: 7\nsweep: [{name: a, set: [rate, mtu], values: [[1 Mbit/s, null]]}]", "p:9:57: sweep[0].values[0][1] is empty"},
		{"seed: 7", "seed: 7\nsweep: [{name: a, set: rate, values: [1 Mbit/s], labels: [null]}]", "p:9:59: sweep[0].labels[0] is empty"},
		{"seed: 7", "seed: 7\nflows: [null]", "p:9:9: flows[0] is empty"},
		{"seed: 7", "seed: 7\nmixes: [null]", "p:9:9: mixes[0] is empty"},
		{"seed: 7", "seed: 7\nmixes: [{name: m, flows: [null]}]", "p:9:27: mixes[0].flows[0] is empty"},
		{"seed: 7", "seed: 7\ngroups: [null]", "p:9:10: groups[0] is empty"},
		{"seed: 7", "seed: 7\npublished: {source: s, rows: [null]}", "p:9:31: published.rows[0] is empty"},
		{"seed: 7", "seed: 7\npublished: {source: s, figures: [null]}", "p:9:34: published.figures[0] is empty"},
		{"protocol: tcp", "protocol: tcp, options: {congestion: null}", "p:6:40: treatments[0].options.congestion is empty"},
		{"radio: mpu4", "radio: null", "p:1:1: radio is missing"},
		{"seed: 7", "seed: 7\ngroups: []", "p:9:9: groups: expected 1 to 200 groups, found 0"},
	} {
		text := strings.Replace(small, c.old, c.new, 1)
		if text == small {
			t.Fatalf("%q is not in the plan", c.old)
		}
		_, err := plan.Parse(nil, "p", []byte(text), cat)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got\n%v\nwant\n%s", c.new, err, c.want)
		}
	}
}

// Reading and compiling end when nobody waits for them any more.
func TestStop(t *testing.T) {
	cat := testCatalog(t)
	gone := errors.New("the caller has gone")
	asked := 0
	stop := func() error {
		if asked++; asked == 3 {
			return gone
		}
		return nil
	}
	text := []byte(strings.Replace(small, "seed: 7", "seed: 7\nsweep: [{name: a, set: rate, values: ["+numbers("%d Mbit/s", 10)+"]}]", 1))
	if _, err := plan.Parse(stop, "p", text, cat); !errors.Is(err, gone) || asked != 3 {
		t.Errorf("plan: %v, asked %d times", err, asked)
	}
	p, err := plan.Parse(nil, "p", text, cat)
	if err != nil {
		t.Fatal(err)
	}
	asked = 0
	if _, err := sheet.Compile(stop, p); !errors.Is(err, gone) || asked != 3 {
		t.Errorf("sheets: %v, asked %d times", err, asked)
	}
}

// A plan as large as the bound is read; one trial more is refused before any is made.
func TestLargestPlan(t *testing.T) {
	cat := testCatalog(t)
	text := func(iterations int) []byte {
		return []byte(strings.Replace(small, "iterations: 2", fmt.Sprintf("iterations: %d", iterations), 1) +
			"sweep: [{name: a, set: rate, values: [" + numbers("%d Mbit/s", 20) + "]}]\n")
	}
	p, err := plan.Parse(nil, "p", text(5000), cat)
	if err != nil || p.Trials() != 100_000 {
		t.Fatalf("%v, %d trials", err, p.Trials())
	}
	if _, err := plan.Parse(nil, "p", text(5001), cat); err == nil || !strings.Contains(err.Error(), "the plan has 100020 trials, at most 100000 fit") {
		t.Fatal(err)
	}
}

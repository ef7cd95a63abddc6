package contract

import (
	"encoding/json"
	"strings"
	"testing"
)

const probeResult = `{"event":"result","transfer":"000102030405060708090a0b0c0d0e0f","result":{"size_bytes":500,"elapsed_ns":5,"probe":` +
	`{"sent":5,"received":4,"lost":1,"duplicated":1,"reordered":1,"sent_bytes":500,"received_bytes":400,"loss_bursts":1,"longest_loss_burst":1,` +
	`"delay":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5},"jitter_mean_ns":1,"jitter_max_ns":2}}}`

// TestProbeResult: values that contradict each other are no event.
func TestProbeResult(t *testing.T) {
	e, err := ParseEvent([]byte(probeResult))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(e); err != nil || string(b) != probeResult {
		t.Errorf("%s, %v", b, err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"lost", `"lost":1`, `"lost":2`, "expected sent less received"},
		{"a negative count", `"duplicated":1`, `"duplicated":-1`, "negative duplicated"},
		{"more bursts than lost", `"loss_bursts":1`, `"loss_bursts":2`, "in 2 bursts"},
		{"no burst of what is lost", `"loss_bursts":1,"longest_loss_burst":1`, `"loss_bursts":0,"longest_loss_burst":0`, "in 0 bursts"},
		{"more reordered than received", `"reordered":1`, `"reordered":5`, "5 reordered of 4"},
		{"delays out of order", `"p95_ns":3`, `"p95_ns":9`, "out of order"},
		{"a mean beyond the longest", `"mean_ns":2,"p50`, `"mean_ns":6,"p50`, "out of order"},
		{"jitter", `"jitter_max_ns":2`, `"jitter_max_ns":0`, "jitter_mean_ns 1 above"},
		{"no delays", `"delay":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5},`, "", "expected delays exactly where"},
	} {
		text := strings.Replace(probeResult, c.old, c.new, 1)
		if text == probeResult {
			t.Fatalf("%s: %q is not in the event", c.name, c.old)
		}
		if _, err := ParseEvent([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
}

// TestPercentiles: the distribution of delays is that of the other values.
func TestPercentiles(t *testing.T) {
	with := func(change func(p []int64) []int64) string {
		p := make([]int64, DelayPercentiles)
		for i := range p {
			p[i] = map[int]int64{0: -3, 95: 3, 99: 4, 100: 5}[i]
			if i > 0 && i < 95 {
				p[i] = 2
			} else if i > 95 && i < 99 {
				p[i] = 3
			}
		}
		b, err := json.Marshal(change(p))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(probeResult, `"max_ns":5`, `"max_ns":5,"percentiles_ns":`+string(b), 1)
	}
	if _, err := ParseEvent([]byte(with(func(p []int64) []int64 { return p }))); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name, want string
		change     func(p []int64) []int64
	}{
		{"too few", "expected the 101 from 0 to 100", func(p []int64) []int64 { return p[:100] }},
		{"out of order", "percentiles_ns out of order", func(p []int64) []int64 { p[7] = 3; return p }},
		{"another median", "are not those of its min_ns", func(p []int64) []int64 {
			for i := range 50 {
				p[i+1] = 1
			}
			return p
		}},
	} {
		if _, err := ParseEvent([]byte(with(c.change))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
}

const capacity = `,"capacity":{"maximum_bps":8000,"mean_bps":8000,"payload_bps":6400,"interval_ns":1000000000,"intervals":2,"rate_bps":8000,"packet_bytes":500,"payload_bytes":400,` +
	`"largest_payload_bytes":1472,"held_ns":2000000000,"held_sent":5,"held_received":4,"held_delay":{"min_ns":1,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5},"steps":3,"search_ns":7,"end":"found"}`

// TestCapacity: a capacity that cannot be true is no event.
func TestCapacity(t *testing.T) {
	with := strings.Replace(probeResult, `"jitter_max_ns":2`, `"jitter_max_ns":2`+capacity, 1)
	e, err := ParseEvent([]byte(with))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(e); err != nil || string(b) != with {
		t.Errorf("%s, %v", b, err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"more received than sent", `"held_sent":5`, `"held_sent":3`, "capacity.held_sent 3, expected at least 4"},
		{"more than the probe sent", `"held_sent":5`, `"held_sent":6`, "of 5 and 4 in all"},
		{"above the rate that was sent", `"rate_bps":8000`, `"rate_bps":7000`, "sent at rate_bps 7000"},
		{"more in an interval than arrived", `"maximum_bps":8000`, `"maximum_bps":80000`, "20 packets in interval_ns, of 4"},
		{"a mean above the maximum", `"maximum_bps":8000`, `"maximum_bps":7000`, "above maximum_bps 7000"},
		{"more payload than packets", `"packet_bytes":500`, `"packet_bytes":400`, "capacity.packet_bytes 400, expected at least 401"},
		{"larger packets than pass", `"largest_payload_bytes":1472`, `"largest_payload_bytes":300`, "above largest_payload_bytes 300"},
		{"no delay", `"held_delay":{"min_ns":1,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5},`, "", "without held_delay"},
		{"delays out of order", `"p99_ns":4,"max_ns":5},"steps"`, `"p99_ns":9,"max_ns":5},"steps"`, "delays out of order"},
		{"an unknown end", `"end":"found"`, `"end":"lost"`, `capacity.end "lost"`},
		{"no steps", `"steps":3`, `"steps":0`, "capacity.steps 0"},
	} {
		text := strings.Replace(with, c.old, c.new, 1)
		if text == with {
			t.Fatalf("%s: %q is not in the event", c.name, c.old)
		}
		if _, err := ParseEvent([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
}

const messages = `,"messages":[{"bytes":20,"packets":1,"sent":2,"delivered":2,"time":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5}},{"bytes":40,"packets":2,"sent":1,"delivered":0}]`

// TestMessages: messages that cannot be are no event.
func TestMessages(t *testing.T) {
	with := strings.Replace(probeResult, `"jitter_max_ns":2`, `"jitter_max_ns":2`+messages, 1)
	e, err := ParseEvent([]byte(with))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(e); err != nil || string(b) != with {
		t.Errorf("%s, %v", b, err)
	}
	nine := `"messages":[` + strings.Repeat(`{"bytes":20,"packets":1,"sent":0,"delivered":0},`, 9)
	for _, c := range []struct{ name, old, new, want string }{
		{"more delivered than sent", `"sent":2,"delivered":2`, `"sent":2,"delivered":3`, "messages of 20 bytes: delivered 3, expected 0 to 2"},
		{"a negative count", `"sent":1,"delivered":0`, `"sent":-1,"delivered":0`, "messages of 40 bytes: sent -1"},
		{"more packets than were sent", `"sent":1,"delivered":0`, `"sent":2,"delivered":0`, "messages of 6 packets and 120 bytes sent, of 5 and"},
		{"more delivered than arrived", `"sent":1,"delivered":0}`, `"sent":1,"delivered":1,"time":{"min_ns":1,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5}},{"bytes":41,"packets":1,"sent":1,"delivered":1,"time":{"min_ns":1,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5}}`, "of 4 and"},
		{"lost without a lost packet", `"packets":1,"sent":2,"delivered":2`, `"packets":1,"sent":3,"delivered":2`, "2 messages not delivered and 1 packets lost"},
		{"no times", `,"time":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5}},{`, `},{`, "2 delivered, expected times exactly where some were"},
		{"times of nothing", `"sent":2,"delivered":2`, `"sent":2,"delivered":0`, "0 delivered, expected times"},
		{"faster than its packets", `"time":{"min_ns":-3`, `"time":{"min_ns":-4`, "delivered in -4 ns, its packets took at least -3 ns"},
		{"times out of order", `"time":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":3`, `"time":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":1`, "delays out of order"},
		{"sizes out of order", `"bytes":40`, `"bytes":20`, "20 bytes after those of 20, expected the smallest first"},
		{"more packets than bytes", `"packets":2`, `"packets":41`, "packets 41, expected 1 to 40"},
		{"too large for a product", `"bytes":40`, `"bytes":4611686018427387904`, "bytes 4611686018427387904, expected 1 to"},
		{"too many sizes", `"messages":[`, nine, "messages of 11 sizes, expected at most 8"},
	} {
		text := strings.Replace(with, c.old, c.new, 1)
		if text == with {
			t.Fatalf("%s: %q is not in the event", c.name, c.old)
		}
		if _, err := ParseEvent([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
}

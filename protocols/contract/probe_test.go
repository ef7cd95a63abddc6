package contract

import (
	"encoding/json"
	"strings"
	"testing"
)

const probeResult = `{"event":"result","transfer":"000102030405060708090a0b0c0d0e0f","result":{"size_bytes":500,"elapsed_ns":5,"probe":` +
	`{"sent":5,"received":4,"lost":1,"duplicated":1,"reordered":1,"sent_bytes":500,"received_bytes":400,"loss_bursts":1,"longest_loss_burst":1,` +
	`"delay":{"min_ns":-3,"mean_ns":2,"p50_ns":2,"p95_ns":3,"p99_ns":4,"max_ns":5},"jitter_mean_ns":1,"jitter_max_ns":2}}}`

// TestProbeResult: figures that contradict each other are no event.
func TestProbeResult(t *testing.T) {
	e, err := ParseEvent([]byte(probeResult))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(e); err != nil || string(b) != probeResult {
		t.Errorf("%s, %v", b, err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a digest", `"probe":`, `"digest":"` + strings.Repeat("0", 64) + `","probe":`, "expected none"},
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

package measure_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/sheet"
	"linktrial/plans"
)

// linkOf are the values of a link of a capacity in bit/s, a one-way delay in ms and a share of
// packets lost, over which TCP carries less where they are lost.
func linkOf(bps, delay, loss float64) *measure.Values {
	v := &measure.Values{}
	for w, from := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		v.Capacity[w] = &report.ProbeRow{From: from, Capacity: &report.CapacityRow{Measured: 1, MeanBPS: of(bps), MaximumBPS: of(bps), LargestPayloadBytes: 1472}}
		p := probe("idle", from, 100, int64(100*loss), delay)
		v.Idle[w] = &p
	}
	kbps := bps / 8 / 1024
	v.Transfers = []report.Row{
		{Treatment: "tcp-cubic", Label: "TCP CUBIC", Trials: 1, Valid: 1, AverageKBps: of(0.95 * kbps / (1 + 30*loss)), ConnectSeconds: of(2 * delay / 1e3)},
		{Treatment: "haul", Label: "Haul", Trials: 1, Valid: 1, AverageKBps: of(0.9 * kbps * (1 - loss))},
	}
	return v
}

func comparison(t *testing.T, budget time.Duration, protocols ...string) measure.Comparison {
	t.Helper()
	chosen, err := measure.ProtocolsOf(protocols)
	if err != nil {
		t.Fatal(err)
	}
	return measure.Comparison{Campaign: "m4t7xk2p", Radio: "unnamed-radio", Topology: "point-to-point", Budget: budget, Protocols: chosen}
}

// Every proposal is a plan that the orchestrator takes, of whole iterations of all protocols,
// and is reckoned to end within its budget, and at the latest by its bound.
func TestComparisonsFitIntoTheirBudget(t *testing.T) {
	c := loadCatalog(t)
	for _, bps := range []float64{16e3, 64e3, 2e6, 50e6} {
		for _, loss := range []float64{0, 0.05, 0.2} {
			for _, delay := range []float64{1, 300, 2000} {
				t.Run(fmt.Sprintf("%g bit/s, loss %g, delay %g ms", bps, loss, delay), func(t *testing.T) {
					const budget = 20 * time.Minute
					v := linkOf(bps, delay, loss)
					p, err := measure.Propose(v, comparison(t, budget))
					if loss == 0.2 && delay == 2000 && err != nil { // transfers of minutes: no iteration fits
						if !strings.Contains(err.Error(), "not one iteration fits into 20 min") {
							t.Error(err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					parsed, err := plan.Parse(nil, p.Name+".yaml", []byte(p.Text), c)
					if err != nil {
						t.Fatalf("%v\n%s", err, p.Text)
					}
					sheets, err := sheet.Compile(nil, parsed)
					if err != nil {
						t.Fatal(err)
					}
					sh := sheets[0]
					if len(sheets) != 1 || sh.Iterations() != p.Iterations || len(sh.Trials) != 3*p.Iterations || sh.Cell.SizeBytes != p.SizeBytes {
						t.Errorf("%d sheets, %d trials of %d bytes; expected %d iterations of %d bytes", len(sheets), len(sh.Trials), sh.Cell.SizeBytes, p.Iterations, p.SizeBytes)
					}
					// Nothing is known of the rate of an unnamed radio: its estimate is the limit of every transfer.
					if estimate := sheet.Total(sh); estimate > p.Bound {
						t.Errorf("the sheet takes up to %s, bound %s", estimate, p.Bound)
					}
					if p.Estimated > budget || p.Estimated <= 0 || p.Bound < p.Estimated {
						t.Errorf("estimated %s of %s, bound %s", p.Estimated, budget, p.Bound)
					}
					took := float64(p.SizeBytes) / 1024 / max(*v.Transfers[0].AverageKBps, *v.Transfers[1].AverageKBps)
					if limit := sh.Limits.Transfer.Seconds(); limit < 3*took {
						t.Errorf("a transfer of %d bytes may take %g s, and took %g s with the fastest protocol", p.SizeBytes, limit, took)
					}
					if sh.Limits.Connect < time.Duration(4*delay)*time.Millisecond {
						t.Errorf("connections may take %s", sh.Limits.Connect)
					}
					if trips := took / (2 * delay / 1e3); p.SizeBytes < 32<<10 || trips < 20 || took < 5 {
						t.Errorf("a transfer of %d bytes takes %g s, which are %g round trips", p.SizeBytes, took, trips)
					}
					text := strings.Join(p.Sentences, " ")
					if p.Decides == strings.Contains(text, "cannot decide") {
						t.Errorf("decides %t, smallest %g: %s", p.Decides, p.Smallest, text)
					}
				})
			}
		}
	}
}

// A faster link, or a longer one, has no smaller transfers.
func TestSizesGrowWithTheLink(t *testing.T) {
	sizes := map[[2]float64]int64{}
	size := func(bps, delay float64) int64 {
		if n := sizes[[2]float64{bps, delay}]; n > 0 {
			return n
		}
		p, err := measure.Propose(linkOf(bps, delay, 0), comparison(t, 4*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		sizes[[2]float64{bps, delay}] = p.SizeBytes
		return p.SizeBytes
	}
	rates, delays := []float64{16e3, 64e3, 2e6, 50e6}, []float64{1, 300, 2000}
	for i, bps := range rates {
		for k, delay := range delays {
			if i > 0 && size(bps, delay) < size(rates[i-1], delay) || k > 0 && size(bps, delay) < size(bps, delays[k-1]) {
				t.Errorf("%g bit/s and %g ms: %d bytes are fewer than those of a link that is less", bps, delay, size(bps, delay))
			}
		}
	}
	if small, large := size(16e3, 1), size(50e6, 1); small >= 100<<10 || large < 16<<20 {
		t.Errorf("%d bytes at 16 kbit/s, %d at 50 Mbit/s", small, large)
	}
}

// What cannot be decided is said before it starts, with a budget that decides: a comparison of
// that budget does.
func TestWhatAComparisonCannotDecide(t *testing.T) {
	for _, x := range []struct {
		bps, delay, loss float64
		budget           time.Duration
		says             string
	}{
		{2e6, 30, 0, 5 * time.Minute, "cannot decide a difference of 20 % in 5 min"},
		{16e3, 300, 0, 20 * time.Minute, "cannot decide a difference of 20 % in 20 min"},
		{64e3, 2000, 0, 20 * time.Minute, "cannot decide anything: with 3 protocols, differences are decided from 7 iterations on"},
	} {
		v := linkOf(x.bps, x.delay, x.loss)
		p, err := measure.Propose(v, comparison(t, x.budget))
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(p.Sentences, " "); p.Decides || !strings.Contains(text, x.says) {
			t.Errorf("%+v: decides %t (%d iterations, %g): %s", x, p.Decides, p.Iterations, p.Smallest, text)
		}
		if nothing := strings.Contains(x.says, "anything"); nothing != math.IsInf(p.Smallest, 1) {
			t.Errorf("%+v: the smallest difference is %g", x, p.Smallest)
		}
		again, err := measure.Propose(v, comparison(t, p.DecisiveBudget))
		if err != nil || !again.Decides || again.Smallest > 0.2 {
			t.Errorf("%+v: %s decides %t, smallest %g, %v", x, p.DecisiveBudget, again.Decides, again.Smallest, err)
		}
		less, err := measure.Propose(v, comparison(t, p.DecisiveBudget-2*time.Minute))
		if err != nil || less.Decides {
			t.Errorf("%+v: two minutes less than %s decide, too (%v)", x, p.DecisiveBudget, err)
		}
	}
}

// What is promised is what the conclusion decides, which is corrected for every two of the
// protocols: three comparisons of three, six of four.
func TestProposalsPromiseWhatTheConclusionDecides(t *testing.T) {
	for pairs, protocols := range map[int][]string{1: {"tcp-cubic", "haul"}, 3: {"tcp-cubic", "quic", "haul"}, 6: {"tcp-cubic", "quic", "haul", "udt"}} {
		p, err := measure.Propose(linkOf(2e6, 30, 0), comparison(t, 20*time.Minute, protocols...))
		if err != nil {
			t.Fatal(err)
		}
		if want := report.NewFinding(pairs, report.AssumedSpread).Smallest(p.Iterations); p.Smallest != want {
			t.Errorf("%q: %d iterations decide %g, expected %g", protocols, p.Iterations, p.Smallest, want)
		}
		if says := fmt.Sprintf("It decides a difference of %.1f %% between two of them with 80 %% chance", 100*p.Smallest); !strings.Contains(strings.Join(p.Sentences, " "), says) {
			t.Errorf("no %q in %q", says, p.Sentences)
		}
	}
}

// The limits of a transfer follow from the slowest protocol, and not where it has lost already.
func TestLimitsOfAComparison(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*measure.Values)
		says   string
	}{
		{"as measured", func(*measure.Values) {}, "limits: {connect: 10s, transfer: 25s, attempts: 1}"},
		{"TCP is a fifth as fast", func(v *measure.Values) { *v.Transfers[0].AverageKBps = 44 }, "transfer: 35s"},
		{"TCP is somewhat slower", func(v *measure.Values) { *v.Transfers[0].AverageKBps = 170 }, "transfer: 30s"},
		{"TCP carried nothing", func(v *measure.Values) { v.Transfers[0] = report.Row{Treatment: "tcp-cubic", Failed: 1} }, "transfer: 35s, attempts: 1}"},
		{"no transfer was carried", func(v *measure.Values) { v.Transfers = nil }, "# No transfer was carried; nine tenths of the capacity are 219.7 KB/s"},
		{"lossy", func(v *measure.Values) { v.Idle[measure.Back].Lost = 10 }, "limits: {connect: 35s"},
		{"clocks not compared", func(v *measure.Values) {
			v.Idle[measure.Back].UncertaintyMS, v.Transfers[0].ConnectSeconds = nil, of(1.5)
		}, "at least 20 round trips of 1.51 s"},
		{"round trip not known", func(v *measure.Values) {
			v.Idle[measure.Back].UncertaintyMS, v.Transfers[0].ConnectSeconds = nil, nil
		}, "the round trip is not known"},
	} {
		v := linkOf(2e6, 30, 0)
		x.change(v)
		p, err := measure.Propose(v, comparison(t, time.Hour))
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if !strings.Contains(p.Text, x.says) {
			t.Errorf("%s: expected %q in\n%s", x.name, x.says, p.Text)
		}
		if !strings.Contains(p.Text, "the campaign m4t7xk2p") {
			t.Errorf("%s: the measurement is not named", x.name)
		}
	}
}

func TestComparisonsThatAreRefused(t *testing.T) {
	good := linkOf(2e6, 30, 0)
	small := linkOf(2e6, 30, 0)
	small.Capacity[measure.There].Capacity.LargestPayloadBytes = 1100
	for _, x := range []struct {
		values *measure.Values
		c      measure.Comparison
		says   string
	}{
		{&measure.Values{}, comparison(t, time.Hour), "no capacity in both directions"},
		{good, comparison(t, time.Second), "a comparison of 1 s: expected 1 min to 24 h"},
		{good, comparison(t, 25*time.Hour), "expected 1 min to 24 h"},
		{good, comparison(t, time.Hour, "haul"), "at least two protocols"},
		{linkOf(16e3, 30, 0), comparison(t, time.Minute), "not one iteration fits into 1 min"},
		{small, comparison(t, time.Hour, "haul", "quic"), "Without QUIC: it needs packets with 1200 bytes of payload, and the link carries 1100 at most."},
	} {
		if _, err := measure.Propose(x.values, x.c); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v, expected %q", err, x.says)
		}
	}
	p, err := measure.Propose(small, comparison(t, time.Hour))
	if err != nil || slices.Contains(p.Labels, "QUIC") || !strings.Contains(strings.Join(p.Sentences, " "), "Without QUIC") {
		t.Errorf("QUIC over small packets: %v, %v", p.Labels, err)
	}
}

func TestProtocolsToCompare(t *testing.T) {
	c := loadCatalog(t)
	for _, x := range [][2]string{{"tcp-cubik,haul", `"tcp-cubik" to compare (did you mean "tcp-cubic"?)`}, {"haul,haul", "haul is there twice"}} {
		if _, err := measure.ProtocolsOf(strings.Split(x[0], ",")); err == nil || !strings.Contains(err.Error(), x[1]) {
			t.Errorf("%s: %v", x[0], err)
		}
	}
	// The usual ones are those of the plan two-laptops.
	text, err := plans.Files.ReadFile("two-laptops.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := measure.Propose(linkOf(2e6, 30, 0), comparison(t, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "  - ") && !strings.Contains(p.Text, line) {
			t.Errorf("%s is not in\n%s", line, p.Text)
		}
	}
	// All that can be named are treatments that the drivers take.
	all := []string{"tcp-cubic", "tcp-reno", "tcp-bbr", "tcp-westwood", "quic", "sctp", "udt", "lt-tcp", "haul"}
	if p, err = measure.Propose(linkOf(2e6, 30, 0), comparison(t, 4*time.Hour, all...)); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Parse(nil, "compare.yaml", []byte(p.Text), c); err != nil || len(p.Labels) != len(all) {
		t.Errorf("%v: %v", p.Labels, err)
	}
}

package channel

import (
	"math"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
)

const (
	packet = 10 * time.Millisecond // airtime of a full-sized packet
	bit    = 10 * time.Microsecond // 1000 bits a packet
)

func process(t testing.TB, c radio.Channel, seed uint64) Process {
	t.Helper()
	p, err := New(c, Params{Packet: packet, Bit: float64(bit)}, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fates is the first n opportunities of a back-to-back sender; 1 is lost.
func fates(p Process, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		at := time.Duration(i) * packet
		if p.Lost(at, at+packet) {
			out[i] = 1
		}
	}
	return out
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func TestUniformLoss(t *testing.T) {
	const n = 200_000
	for _, loss := range []float64{0, 0.001, 0.1, 0.5, 0.9, 1} {
		got := mean(fates(process(t, radio.Channel{Model: radio.ChannelUniform, Loss: loss}, 7), n))
		if tolerance := 4 * math.Sqrt(loss*(1-loss)/n); math.Abs(got-loss) > tolerance {
			t.Errorf("loss %g: got %g, tolerance %g", loss, got, tolerance)
		}
	}
}

func TestUniformLossesAreIndependent(t *testing.T) {
	const n, p = 200_000, 0.3
	x := fates(process(t, radio.Channel{Model: radio.ChannelUniform, Loss: p}, 3), n)
	for lag := 1; lag <= 5; lag++ {
		if r := autocorrelation(x, lag); math.Abs(r) > 4/math.Sqrt(n) {
			t.Errorf("lag %d: correlation %g", lag, r)
		}
	}
	// Also between the packets of one opportunity.
	both := process(t, radio.Channel{Model: radio.ChannelUniform, Loss: p}, 3)
	var first, second []float64
	for i := range n {
		at := time.Duration(i) * packet
		for _, to := range []*[]float64{&first, &second} {
			v := 0.0
			if both.Lost(at, at+packet/2) {
				v = 1
			}
			*to = append(*to, v)
			at += packet / 2
		}
	}
	var xy float64
	for i := range first {
		xy += (first[i] - p) * (second[i] - p)
	}
	if r := xy / n / (p * (1 - p)); math.Abs(r) > 4/math.Sqrt(n) {
		t.Errorf("first and second packet of an opportunity: correlation %g", r)
	}
}

func autocorrelation(x []float64, lag int) float64 {
	m := mean(x)
	var c, v float64
	for i := range x {
		v += (x[i] - m) * (x[i] - m)
		if i+lag < len(x) {
			c += (x[i] - m) * (x[i+lag] - m)
		}
	}
	return c / v
}

func TestGilbertElliottClosedForms(t *testing.T) {
	const n = 1_500_000 // more than one block
	for _, tc := range []struct{ alpha, beta float64 }{{0.01, 0.1}, {0.0428, 0.1}, {0.1, 0.1}, {0.428, 1}, {0.3, 0.6}} {
		c := radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: tc.alpha, BadToGood: tc.beta, LossBad: 1}
		x := fates(process(t, c, 11), n)
		loss := tc.alpha / (tc.alpha + tc.beta)
		rho := 1 - tc.alpha - tc.beta
		// The variance of the mean of a correlated sequence.
		sd := math.Sqrt(loss * (1 - loss) / n * (1 + rho) / (1 - rho))
		if got := mean(x); math.Abs(got-loss) > 4*sd {
			t.Errorf("%+v: loss %g, expected %g ± %g", tc, got, loss, 4*sd)
		}
		var runs [2]int
		var length [2]float64
		for i := 1; i < n-1; {
			j := i
			for j < n && x[j] == x[i] {
				j++
			}
			if x[i-1] != x[i] && j < n {
				runs[int(x[i])]++
				length[int(x[i])] += float64(j - i)
			}
			i = j
		}
		for state, leave := range []float64{tc.alpha, tc.beta} {
			got, want := length[state]/float64(runs[state]), 1/leave
			sd := math.Sqrt(1-leave) / leave / math.Sqrt(float64(runs[state]))
			if math.Abs(got-want) > 4*sd+1e-9 {
				t.Errorf("%+v state %d: mean length %g slots, expected %g ± %g", tc, state, got, want, 4*sd)
			}
		}
		for lag := 1; lag <= 20; lag += 6 {
			want := math.Pow(rho, float64(lag))
			// Runs are the independent samples here.
			if got := autocorrelation(x, lag); math.Abs(got-want) > 4/math.Sqrt(float64(runs[1])) {
				t.Errorf("%+v lag %d: correlation %g, expected %g", tc, lag, got, want)
			}
		}
	}
}

func TestGilbertElliottInitialStateIsStationary(t *testing.T) {
	const n = 20_000
	var bad float64
	for seed := range uint64(n) {
		p := process(t, radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.02, BadToGood: 0.08, LossBad: 1}, seed)
		if p.Lost(0, packet) {
			bad++
		}
	}
	if got := bad / n; math.Abs(got-0.2) > 4*math.Sqrt(0.2*0.8/n) {
		t.Errorf("starts bad in %g of the seeds, expected 0.2", got)
	}
}

func TestGilbertElliottAbsorbingStates(t *testing.T) {
	for _, tc := range []struct {
		alpha, beta float64
		lost        bool
	}{{0, 0, false}, {0, 0.1, false}, {0.1, 0, true}} {
		p := process(t, radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: tc.alpha, BadToGood: tc.beta, LossBad: 1}, 5)
		for _, at := range []time.Duration{0, time.Hour, 30 * 24 * time.Hour} {
			if got := p.Lost(at, at+packet); got != tc.lost {
				t.Errorf("%+v at %s: lost %v", tc, at, got)
			}
		}
	}
}

// What one sender did must not change what another meets at the same moment.
func TestSameTimeSameLoss(t *testing.T) {
	const n = 50_000
	for _, c := range []radio.Channel{
		{Model: radio.ChannelUniform, Loss: 0.3},
		{Model: radio.ChannelGilbertElliott, GoodToBad: 0.05, BadToGood: 0.2, LossGood: 0.1, LossBad: 0.9},
		{Model: radio.ChannelGilbertElliott, GoodToBad: 0.05, BadToGood: 0.2, LossBad: 1, Slot: 70 * time.Millisecond},
	} {
		dense, sparse, seer := process(t, c, 1), process(t, c, 1), process(t, c, 1)
		other := process(t, c, 2)
		differ := 0
		for i := range n {
			at := time.Duration(i) * packet
			want := dense.Lost(at, at+packet)
			if other.Lost(at, at+packet) != want {
				differ++
			}
			if got, until := seer.Foresee(at, at+packet, 0); got != want || until <= at {
				t.Fatalf("%+v at %s: foreseen %v until %s, met %v", c, at, got, until, want)
			}
			if i%97 == 0 && sparse.Lost(at, at+packet) != want {
				t.Fatalf("%+v at %s: a sender after a silence meets another fate", c, at)
			}
		}
		if differ == 0 {
			t.Errorf("%+v: two seeds give the same realisation", c)
		}
	}
}

// Foresee with a place in the opportunity is what Lost does for that place.
func TestForesee(t *testing.T) {
	c := radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.2, LossGood: 0.3, LossBad: 0.8}
	seer, met := process(t, c, 9), process(t, c, 9)
	for i := range 4000 {
		at := time.Duration(i) * packet / 4
		want, _ := seer.Foresee(at, at+packet/4, uint64(i%4))
		if got := met.Lost(at, at+packet/4); got != want {
			t.Fatalf("packet %d of its opportunity at %s: foreseen %v, met %v", i%4, at, want, got)
		}
	}
}

func TestForeseenAnswerHolds(t *testing.T) {
	c := radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.2, LossGood: 0.05, LossBad: 0.8, Slot: 33 * time.Millisecond}
	seer, check := process(t, c, 9), process(t, c, 9)
	for at := time.Duration(0); at < time.Minute; {
		lost, until := seer.Foresee(at, at+packet, 0)
		for probe := at; probe < until; probe += time.Millisecond {
			if got, _ := check.Foresee(probe, probe+packet, 0); got != lost {
				t.Fatalf("from %s until %s foreseen %v, at %s %v", at, until, lost, probe, got)
			}
		}
		at = until
	}
}

// A silence of years must not stall whoever sends next.
func TestLongPauseCostsBoundedWork(t *testing.T) {
	p := process(t, radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.9, BadToGood: 0.9, LossBad: 1, Slot: time.Millisecond}, 4).(*gilbertElliott)
	p.Lost(0, packet)
	p.Lost(10*365*24*time.Hour, 10*365*24*time.Hour+packet)
	if p.sojourn > blockSlots {
		t.Errorf("%d draws for one packet, expected at most %d", p.sojourn, blockSlots)
	}
}

func TestSeedsOfDirectionsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	roles := []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer, "", "a", "ab", "b"}
	for trial := range uint64(50) {
		for _, a := range roles {
			for _, b := range roles {
				s := Seed(trial, a, b)
				if seen[s] {
					t.Fatalf("seed of %d %s→%s is another's too", trial, a, b)
				}
				seen[s] = true
			}
		}
	}
}

func TestCheckReportsEverything(t *testing.T) {
	for _, tc := range []struct {
		c    radio.Channel
		want []string
	}{
		{radio.Channel{Model: "fog"}, []string{`"fog"`}},
		{radio.Channel{}, []string{`""`}},
		{radio.Channel{Model: radio.ChannelUniform, Loss: 1.5, Slot: -1}, []string{"loss is 1.5", "slot"}},
		{radio.Channel{Model: radio.ChannelUniform, Loss: math.NaN()}, []string{"loss"}},
		{radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: -1, BadToGood: 2, LossGood: 3, LossBad: 4},
			[]string{"good_to_bad", "bad_to_good", "loss_good", "loss_bad"}},
	} {
		_, err := New(tc.c, Params{Packet: packet}, 1)
		if err == nil {
			t.Errorf("%+v was accepted", tc.c)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %q does not name %q", tc.c, err, w)
			}
		}
	}
	if _, err := New(radio.Channel{Model: radio.ChannelPerfect}, Params{}, 1); err == nil {
		t.Error("a packet without airtime was accepted")
	}
}

func BenchmarkGilbertElliott(b *testing.B) {
	p := process(b, radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.01, BadToGood: 0.1, LossBad: 1}, 1)
	b.ReportAllocs()
	for i := range b.N {
		at := time.Duration(i) * packet
		p.Lost(at, at+packet)
	}
}

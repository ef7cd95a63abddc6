package catalog_test

import (
	"math"
	"testing"

	"linktrial/internal/radio"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/plans"
)

const kb = 1024

func breedy(t *testing.T) (*catalog.Catalog, *plan.Plan) {
	t.Helper()
	c, err := catalog.Load(catalog.Config{DriversDir: "testdata/drivers"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := plans.Files.ReadFile("breedy-2015.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse(nil, "breedy-2015.yaml", text, c)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// The published values are all of Table 2 (ten columns of four rows), and
// they give the paper's own findings (section V): by how much Mockets beat each
// other protocol, over the three places where every radio worked.
func TestPublishedGivesThePapersFindings(t *testing.T) {
	_, p := breedy(t)
	if len(p.Published) != 40 {
		t.Errorf("%d rows, want 40", len(p.Published))
	}
	mean := func(r, treatment string) (sum float64) {
		for _, topo := range []string{"vip-lot", "flag-pole", "zahl-road"} {
			sum += p.PublishedFor(r, topo, treatment).Average / 3
		}
		return sum
	}
	for _, c := range []struct {
		radio, treatment string
		percent          float64
	}{
		{"prc-117g-anw2c", "tcp-cubic", 45}, {"prc-117g-anw2c", "sctp", 71}, {"prc-117g-anw2c", "udt", 71},
		{"tw-400-tsm-e", "tcp-cubic", 109}, {"tw-400-tsm-e", "sctp", 167}, {"tw-400-tsm-e", "udt", 22},
		{"mpu4", "udt", 48},
	} {
		if got := 100 * (mean(c.radio, "haul")/mean(c.radio, c.treatment) - 1); math.Abs(got-c.percent) > 1 {
			t.Errorf("%s: Mockets beat %s by %.1f %%, the paper says %g", c.radio, c.treatment, got, c.percent)
		}
	}
}

// near is for values rounded to three digits.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.01*math.Abs(want) {
		t.Errorf("%s: %.4g in the profile, %.4g by the derivation", what, got, want)
	}
}

// The sites' parameters follow from Table 2 by the method that
// radio-profiles/prc-117g-anw2c.yaml states.
func TestSitesFollowFromTable2(t *testing.T) {
	c, p := breedy(t)
	for _, name := range []string{"prc-117g-anw2c", "tw-400-tsm-e", "mpu4"} {
		e := c.Profile(name).Emulation
		air := func(packet, rate float64) float64 { return (packet + float64(e.FrameOverheadBytes)) * 8 / rate }
		for _, topo := range []string{"flag-pole", "k-lot", "vip-lot", "zahl-road"} {
			what := name + " at " + topo
			site := e.Sites[topo]
			tcp := p.PublishedFor(name, topo, "tcp-cubic")
			if tcp == nil {
				continue // K Lot, where the paper could not measure
			}
			best := 0.0
			for _, tr := range p.Treatments {
				best = max(best, p.PublishedFor(name, topo, tr.Name).Maximum)
			}
			base := air(1500, e.RateBitsPerSecond)
			rate := (1500 + float64(e.FrameOverheadBytes)) * 8 / (1472/(1.01*best*kb) - base)
			if site.RateBitsPerSecond == 0 {
				if rate < 0.98*e.RateBitsPerSecond {
					t.Errorf("%s: %.4g bit/s by the derivation, none in the profile", what, rate)
				}
				rate = e.RateBitsPerSecond
			} else {
				near(t, what+": rate", site.RateBitsPerSecond, rate)
				rate = site.RateBitsPerSecond
			}
			// An all-knowing sender is a bit faster than the fastest transfer there was.
			if ideal := 1472 / (base + air(1500, rate)) / kb; ideal < 1.005*best || ideal > 1.03*best {
				t.Errorf("%s: Ideal %.1f KB/s, fastest measured %.1f", what, ideal, best)
			}
			acks := air(52, e.RateBitsPerSecond) + air(52, rate)
			ceiling := 2 * 1448 / (2*base + 2*air(1500, rate) + acks) / kb
			cv := tcp.SD / tcp.Average
			if cv < 0.1 {
				rtt := 4*e.ProcessingDelay.Seconds() + base + air(1500, rate) + acks
				w := tcp.Average * kb * rtt / 1448
				if site.Channel.Model != radio.ChannelUniform {
					t.Errorf("%s: channel %+v, want independent losses", what, site.Channel)
				}
				near(t, what+": loss", site.Channel.Loss, 1.5/(w*w))
				continue
			}
			var cell plan.Cell
			for _, x := range p.Cells {
				if x.Radio.Name == name && x.Topology.Name == topo {
					cell = x
				}
			}
			seconds := float64(cell.SizeBytes) / (tcp.Average * kb)
			share := 1 - tcp.Average/ceiling
			length := max((cv*cv*seconds/(2*share)-0.2)/1.5, 0.1)
			perSecond := share / (1.5*length + 0.2) / 2
			slot := site.Channel.Slot.Seconds()
			if site.Channel.Model != radio.ChannelGilbertElliott || slot != 0.01 || site.Channel.LossBad != 1 || site.Channel.LossGood != 0 {
				t.Errorf("%s: channel %+v, want outages in slots of 10 ms", what, site.Channel)
			}
			near(t, what+": bad_to_good", site.Channel.BadToGood, slot/length)
			near(t, what+": good_to_bad", site.Channel.GoodToBad, perSecond*slot/(1-perSecond*length))
		}
	}
}

// The PRC-117G's rate and overhead follow from two values of the VIP Lot.
func TestPRC117GCalibration(t *testing.T) {
	c, p := breedy(t)
	e := c.Profile("prc-117g-anw2c").Emulation
	data := 1472 / (1.01 * p.PublishedFor("prc-117g-anw2c", "vip-lot", "haul").Maximum * kb) / 2
	packets := p.PublishedFor("prc-117g-anw2c", "vip-lot", "udt").Average * kb / 1456
	ack := (1 - packets*2*data) / 400
	rate := (1500 - 58) * 8 / (data - ack)
	near(t, "rate", e.RateBitsPerSecond, rate)
	// The overhead is rounded to 800 B, so that it and the rate give the data packet's airtime.
	near(t, "airtime of 1500 B", (1500+float64(e.FrameOverheadBytes))*8/e.RateBitsPerSecond, data)
}

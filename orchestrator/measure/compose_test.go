package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

func loadCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(catalog.Config{DriversDir: "../catalog/testdata/drivers"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// treatments are those of a plan's only sheet in the order of its trials, after it was
// parsed and compiled as any other plan.
func treatments(t *testing.T, c *catalog.Catalog, p measure.Plan) (names []string, estimate time.Duration) {
	t.Helper()
	parsed, err := plan.Parse(nil, p.Name+".yaml", []byte(p.Text), c)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Text)
	}
	sheets, err := sheet.Compile(nil, parsed)
	if err != nil {
		t.Fatal(err)
	}
	if len(sheets) != 1 {
		t.Fatalf("%d sheets", len(sheets))
	}
	for _, trial := range sheets[0].Trials {
		names = append(names, trial.Treatment)
	}
	return names, sheet.Total(sheets[0])
}

// Every plan is one that the orchestrator takes, is not estimated to last longer than it is
// said to, and is as long as promised at most.
func TestPlansAreBounded(t *testing.T) {
	c := loadCatalog(t)
	for _, x := range []struct {
		bps   float64
		voice []string
		most  time.Duration
	}{
		{0, nil, 10 * time.Minute},
		{16e3, nil, 10 * time.Minute},
		{30e3, []string{"voice-g729-there", "voice-g729-back"}, 10 * time.Minute},
		{64e3, []string{"voice-g729"}, 10 * time.Minute},
		{500e3, []string{"voice-g711"}, 10 * time.Minute},
		{2e6, []string{"voice-g711"}, 2 * time.Minute},
		{100e6, []string{"voice-g711"}, 2 * time.Minute},
	} {
		for _, topology := range []string{"point-to-point", "flag-pole"} {
			for _, part := range []measure.Part{measure.Whole, measure.Search, measure.Rest, measure.Track} {
				t.Run(fmt.Sprintf("%g bit/s at %s, part %d", x.bps, topology, part), func(t *testing.T) {
					l := measure.Link{Radio: "unnamed-radio", Topology: topology, RateBPS: x.bps, Relay: topology == "flag-pole"}
					p := measure.Compose(l, part, "")
					names, estimate := treatments(t, c, p)
					var want []string
					if part == measure.Whole || part == measure.Search {
						want = append(want, "capacity-there", "capacity-back")
					}
					if part != measure.Search {
						want = append(want, "idle")
						switch {
						case part == measure.Track:
						case x.bps >= 256e3:
							want = append(want, "messages")
						default:
							want = append(want, "messages-there", "messages-back")
						}
						want = append(want, x.voice...)
					}
					if part == measure.Whole || part == measure.Rest {
						want = append(want, "tcp-cubic", "haul")
					}
					if !slices.Equal(names, want) {
						t.Errorf("trials of %v, expected %v", names, want)
					}
					if part == measure.Track && x.bps >= 2e6 && p.Bound > 20*time.Second {
						t.Errorf("a track takes up to %s", p.Bound)
					}
					if estimate > p.Bound || p.Bound > x.most {
						t.Errorf("at most %s, estimated %s; promised %s", p.Bound, estimate, x.most)
					}
					if bound := measure.Bound(l); bound > x.most || bound < p.Bound && part != measure.Whole {
						t.Errorf("all parts at most %s, this one %s; promised %s", bound, p.Bound, x.most)
					}
				})
			}
		}
	}
}

// What is known of the rate comes from the profile, but for an unnamed radio, whose profile
// is a label.
func TestRateOfALink(t *testing.T) {
	c := loadCatalog(t)
	for _, x := range []struct {
		radio, topology string
		unnamed         bool
		bps             float64
		relay           bool
	}{
		{"transports-link", "point-to-point", false, 2e6, false},
		{"transports-link", "point-to-point", true, 0, false},
		{"unnamed-radio", "point-to-point", false, 0, false},
		{"prc-152a", "point-to-point", false, 0, false}, // its rate is unknown
		{"transports-link", "flag-pole", false, 2e6, true},
	} {
		got := measure.LinkOf(c.Profile(x.radio), c.Topology(x.topology), x.unnamed)
		want := measure.Link{Radio: x.radio, Topology: x.topology, RateBPS: x.bps, Relay: x.relay}
		if got != want {
			t.Errorf("%+v: %+v, expected %+v", x, got, want)
		}
	}
	shared := *c.Profile("transports-link")
	emulation := *shared.Emulation
	emulation.Medium = radio.MediumShared
	shared.Emulation = &emulation
	if got := measure.LinkOf(&shared, c.Topology("flag-pole"), false).RateBPS; got != 1e6 {
		t.Errorf("two hops that share a medium of 2 Mbit/s carry %g bit/s", got)
	}
}

// A rest names its search, and every part is found by the name of its plan.
func TestRestNamesItsSearch(t *testing.T) {
	l := measure.Link{Radio: "unnamed-radio", Topology: "point-to-point", RateBPS: 1e6}
	for _, part := range []measure.Part{measure.Whole, measure.Search, measure.Rest, measure.Track} {
		p := measure.Compose(l, part, "")
		if got, ok := measure.PartOf(p.Name); !ok || got != part {
			t.Errorf("%s is part %d, %t", p.Name, got, ok)
		}
		if !strings.Contains(p.Text, "\nname: "+p.Name+"\n") {
			t.Errorf("the plan is not called %s:\n%s", p.Name, p.Text)
		}
		if got := measure.SearchOf(p.Text); got != "" {
			t.Errorf("search %q", got)
		}
	}
	rest := measure.Compose(l, measure.Rest, "m4t7xk2p")
	if got := measure.SearchOf(rest.Text); got != "m4t7xk2p" {
		t.Errorf("search %q of\n%s", got, rest.Text)
	}
	if _, ok := measure.PartOf("quickstart"); ok {
		t.Error("quickstart is a measurement")
	}
}

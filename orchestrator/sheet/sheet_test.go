package sheet_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
	"linktrial/plans"
)

var update = flag.Bool("update", false, "write the golden files anew")

func loadCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(catalog.Config{DriversDir: "../catalog/testdata/drivers"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t testing.TB, text string) []*runsheet.Sheet {
	t.Helper()
	p, err := plan.Parse(nil, "test.yaml", []byte(text), loadCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	sheets, err := sheet.Compile(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	return sheets
}

func ready(t testing.TB, name string) []*runsheet.Sheet {
	t.Helper()
	text, err := plans.Files.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, string(text))
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what was compiled; look at the difference, then write it with -update", file)
	}
}

func encode(t testing.TB, s *runsheet.Sheet) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenQuickstart(t *testing.T) {
	sheets := ready(t, "quickstart")
	if len(sheets) != 1 {
		t.Fatalf("%d sheets", len(sheets))
	}
	var out bytes.Buffer
	if err := json.Indent(&out, encode(t, sheets[0]), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "quickstart.json", out.Bytes())
}

// The twelve sheets of breedy-2015: their hashes cover every byte; the rest is
// there to see what a change did.
func TestGoldenBreedy(t *testing.T) {
	var out strings.Builder
	for _, s := range ready(t, "breedy-2015") {
		fmt.Fprintf(&out, "%s\n  sha256 %s\n", sheet.Summary(s), runsheet.Hash(encode(t, s)))
		for _, l := range s.Network.Links {
			c, err := json.Marshal(l.Channel)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "  link %s–%s %g bit/s, %s, channel %s\n", l.A, l.B, l.RateBitsPerSecond, l.Delay, c)
		}
		for _, tr := range s.Treatments {
			fmt.Fprintf(&out, "  treatment %s protocol %s options %v port %d missing %q\n", tr.Name, tr.Protocol, tr.Options, tr.Port, tr.Missing)
		}
		for i, d := range sheet.Estimate(s) {
			tr := s.Trials[i]
			fmt.Fprintf(&out, "  trial %d iteration %d %s channel %016x payload %016x about %s\n", tr.Index, tr.Iteration, tr.Treatment, tr.ChannelSeed, tr.Flows[0].PayloadSeed, d.Round(time.Millisecond))
		}
	}
	golden(t, "breedy-2015.txt", []byte(out.String()))
}

// breedy-2015 is the paper's: twelve cells with its sizes, the protocols in
// its order, ten iterations; haul stands where Mockets stood.
func TestBreedyIsThePapers(t *testing.T) {
	sheets := ready(t, "breedy-2015")
	if len(sheets) != 12 {
		t.Fatalf("%d cells, want 12", len(sheets))
	}
	for i, s := range sheets {
		want := map[string]int64{"vip-lot": 2048 << 10, "flag-pole": 2048 << 10, "zahl-road": 1024 << 10, "k-lot": 1024 << 10}[s.Cell.Topology]
		if s.Cell.SizeBytes != want || s.Cell.Index != i {
			t.Errorf("cell %+v, want index %d and %d bytes", s.Cell, i, want)
		}
		if len(s.Trials) != 40 || s.Iterations() != 10 {
			t.Errorf("%d trials in %d iterations", len(s.Trials), s.Iterations())
		}
		for _, tr := range s.Trials {
			if want := []string{"haul", "tcp-cubic", "sctp", "udt"}[tr.Index%4]; tr.Treatment != want {
				t.Errorf("trial %d is %s, want %s", tr.Index, tr.Treatment, want)
			}
		}
	}
}

func TestSameTextSameBytes(t *testing.T) {
	a, b := ready(t, "breedy-2015"), ready(t, "breedy-2015")
	hashes := map[string]bool{}
	for i := range a {
		x, y := encode(t, a[i]), encode(t, b[i])
		if !bytes.Equal(x, y) {
			t.Errorf("sheet %d differs between two compilations", i)
		}
		hashes[runsheet.Hash(x)] = true
	}
	if len(hashes) != len(a) {
		t.Errorf("%d different hashes of %d sheets", len(hashes), len(a))
	}
}

const four = `name: four
radio: %s
topology: [vip-lot, k-lot]
size: 64 KiB
treatments:
  - {name: a, protocol: tcp}
  - {name: b, protocol: tcp, options: {congestion: reno}}
  - {name: c, protocol: udt}
  - {name: d, protocol: sctp}
iterations: %d
order: %s
seed: %d
`

func blocks(s *runsheet.Sheet) [][]string {
	out := make([][]string, s.Iterations())
	for _, tr := range s.Trials {
		out[tr.Iteration-1] = append(out[tr.Iteration-1], tr.Treatment)
	}
	return out
}

func TestOrders(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	for _, order := range []string{"fixed", "random", "counterbalanced"} {
		s := compile(t, fmt.Sprintf(four, "mpu4", 400, order, 3))[0]
		first := map[string]int{}
		for i, b := range blocks(s) {
			if sorted := slices.Sorted(slices.Values(b)); !slices.Equal(sorted, all) {
				t.Fatalf("%s: iteration %d is %v: not one pass over all", order, i+1, b)
			}
			if order == "fixed" && !slices.Equal(b, all) {
				t.Errorf("fixed: iteration %d is %v", i+1, b)
			}
			first[b[0]]++
		}
		for _, n := range all {
			switch c := first[n]; {
			case order == "counterbalanced" && c != 100:
				t.Errorf("counterbalanced: %s is first %d times of 400, want 100", n, c)
			// 100 expected, standard deviation 8.7; the seed is fixed, so this never flickers.
			case order == "random" && (c < 65 || c > 135):
				t.Errorf("random: %s is first %d times of 400", n, c)
			}
		}
	}
	a := compile(t, fmt.Sprintf(four, "mpu4", 20, "random", 3))
	b := compile(t, fmt.Sprintf(four, "mpu4", 20, "random", 4))
	if fmt.Sprint(blocks(a[0])) == fmt.Sprint(blocks(b[0])) {
		t.Error("two seeds give the same random order")
	}
	if fmt.Sprint(blocks(a[0])) == fmt.Sprint(blocks(a[1])) {
		t.Error("two cells have the same random order")
	}
}

func TestSeeds(t *testing.T) {
	payloads, channels := map[uint64]bool{}, map[uint64]string{}
	n := 0
	for _, s := range compile(t, fmt.Sprintf(four, "[mpu4, tw-400-tsm-e]", 5, "random", 3)) {
		for _, tr := range s.Trials {
			where := fmt.Sprint(s.Cell.Index, "/", tr.Iteration)
			if other, taken := channels[tr.ChannelSeed]; taken && other != where {
				t.Errorf("cell and iteration %s and %s share a channel realisation", other, where)
			}
			channels[tr.ChannelSeed] = where
			for _, f := range tr.Flows {
				payloads[f.PayloadSeed] = true
				n++
			}
		}
	}
	if len(channels) != 4*5 {
		t.Errorf("%d channel realisations, want one for each of 4 cells × 5 iterations", len(channels))
	}
	if len(payloads) != n {
		t.Errorf("%d payload seeds for %d flows", len(payloads), n)
	}
}

// What is added to a plan leaves the seeds of what was there.
func TestSeedsStayWhenThePlanGrows(t *testing.T) {
	short := compile(t, fmt.Sprintf(four, "tw-400-tsm-e", 2, "fixed", 3))
	long := compile(t, strings.Replace(fmt.Sprintf(four, "[mpu4, tw-400-tsm-e]", 3, "fixed", 3), "treatments:\n", "treatments:\n  - {name: z, protocol: tcp, options: {congestion: bbr}}\n", 1))
	type key struct {
		cell      string
		iteration int
		treatment string
	}
	seeds := func(sheets []*runsheet.Sheet) map[key][2]uint64 {
		out := map[key][2]uint64{}
		for _, s := range sheets {
			for _, tr := range s.Trials {
				out[key{s.Cell.Radio + s.Cell.Topology, tr.Iteration, tr.Treatment}] = [2]uint64{tr.ChannelSeed, tr.Flows[0].PayloadSeed}
			}
		}
		return out
	}
	grown := seeds(long)
	for k, v := range seeds(short) {
		if grown[k] != v {
			t.Errorf("%+v: seeds %x became %x", k, v, grown[k])
		}
	}
}

func TestPorts(t *testing.T) {
	s := compile(t, fmt.Sprintf(four, "mpu4", 1, "fixed", 3))[0]
	for i, tr := range s.Treatments {
		if tr.Port != runsheet.FirstPort+i {
			t.Errorf("%s has port %d", tr.Name, tr.Port)
		}
	}
}

// Estimates against numbers worked out by hand from the profiles' parameters.
func TestEstimate(t *testing.T) {
	s := ready(t, "quickstart")[0]
	// Two hops at 6.8 Mbit/s with 800 B a frame: 2.706 ms for 1500 B, 1.002 ms
	// for 52 B, half of them for every packet, the lossy hop 1/(1-0.0104) longer:
	// 6.446 ms for 1448 B, so 1.167 s for 256 KiB, and 2.5 round trips of
	// 4·20 ms + 2·(2.706 + 0.988) ms.
	want := 1167*time.Millisecond + 218*time.Millisecond
	for i, d := range sheet.Estimate(s) {
		if diff := d - want; diff < -5*time.Millisecond || diff > 5*time.Millisecond {
			t.Errorf("trial %d: %v, want about %v", i, d, want)
		}
	}
	if got, want := sheet.Total(s), 18*(sheet.Estimate(s)[0]+sheet.DeadTime); got != want {
		t.Errorf("total %v, want %v", got, want)
	}
	s.Limits.Transfer = 100 * time.Millisecond
	if d := sheet.Estimate(s)[0]; d > 250*time.Millisecond {
		t.Errorf("%v in spite of a limit of 100 ms", d)
	}
}

func TestEstimateByMedium(t *testing.T) {
	s := ready(t, "quickstart")[0]
	pace := map[radio.Medium]time.Duration{}
	for _, m := range []radio.Medium{radio.MediumShared, radio.MediumHalfDuplex, radio.MediumFullDuplex} {
		s.Network.Medium = m
		pace[m] = sheet.Estimate(s)[0]
	}
	if pace[radio.MediumShared] <= pace[radio.MediumHalfDuplex] || pace[radio.MediumHalfDuplex] <= pace[radio.MediumFullDuplex] {
		t.Errorf("estimates %v", pace)
	}
}

// A radio that cannot be emulated is reckoned by its rated throughput, and one
// of which nothing is known by the limit.
func TestEstimateWithoutEmulation(t *testing.T) {
	cat := loadCatalog(t)
	p, err := plan.Parse(nil, "p", []byte(fmt.Sprintf(four, "mpu4", 1, "fixed", 1)), cat)
	if err != nil {
		t.Fatal(err)
	}
	bare := *p.Cells[0].Radio
	bare.Emulation = nil
	bare.Parameters = []radio.Parameter{{Name: "rate", Value: 1, Unit: "Mbit/s", Source: "test"}}
	p.Cells[0].Radio = &bare
	unknown := bare
	unknown.Parameters = []radio.Parameter{{Name: "rate", Unit: "Mbit/s", Source: "test", Unknown: true}}
	p.Cells[1].Radio = &unknown
	sheets, err := sheet.Compile(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	if sheets[0].Network != nil {
		t.Errorf("network %+v", sheets[0].Network)
	}
	if d := sheet.Estimate(sheets[0])[0]; d.Round(time.Millisecond) != 524*time.Millisecond { // 65536 B at 1 Mbit/s
		t.Errorf("by rated throughput: %v", d)
	}
	if d := sheet.Estimate(sheets[1])[0]; d != p.Limits.Transfer {
		t.Errorf("nothing known: %v", d)
	}
	if got := sheet.Summary(sheets[1]); !strings.Contains(got, "which is unknown: at most that long") {
		t.Errorf("summary %q", got)
	}
}

func TestSummary(t *testing.T) {
	got := sheet.Summary(ready(t, "quickstart")[0])
	want := "AN/PRC-117G, ANW2C at VIP Lot, 256 KiB: 18 trials (6 treatments × 3 iterations, fixed order), about 29s"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The agents' reader takes every sheet back as it was.
func TestSheetsDecode(t *testing.T) {
	for _, s := range ready(t, "breedy-2015") {
		b := encode(t, s)
		back, err := runsheet.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if again := encode(t, back); !bytes.Equal(b, again) {
			t.Errorf("sheet %d reads back differently", s.Cell.Index)
		}
	}
}

// A horizon is of the results: it is in the sheet, and by then something can be delivered.
func TestHorizon(t *testing.T) {
	text := `
name: a
radio: prc-117g-anw2c
topology: vip-lot
size: 1 MiB
treatments: [{name: cubic, protocol: tcp}]
iterations: 1
seed: 1
limits: {transfer: 1m, horizon: 30s}
`
	if l := compile(t, text)[0].Limits; l.Horizon != 30*time.Second || l.DeliveryHorizon() != 30*time.Second {
		t.Errorf("%+v", l)
	}
	if l := compile(t, strings.Replace(text, ", horizon: 30s", "", 1))[0].Limits; l.Horizon != 0 || l.DeliveryHorizon() != time.Minute {
		t.Errorf("%+v", l)
	}
	p, err := plan.Parse(nil, "test.yaml", []byte(strings.Replace(text, "30s", "1s", 1)), loadCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = sheet.Compile(nil, p)
	if want := "limits.horizon is 1s, and the radio needs at least 3.897s for the payload: nothing can be delivered by then"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, expected %q", err, want)
	}
}

// What must be delivered by a time can be delivered by then.
func TestDeliveredInTime(t *testing.T) {
	text := `
name: a
radio: prc-117g-anw2c
topology: vip-lot
size: 1 MiB
treatments: [{name: cubic, protocol: tcp}]
iterations: 10
seed: 1
limits: {transfer: 1m}
require: [{failures: {at_most: 30 %}}, {delivered: {by: 4s, at_least: 70 %}}]
`
	if got := compile(t, text)[0].Require; len(got) != 2 || got[1].By != 4*time.Second {
		t.Errorf("%+v", got)
	}
	p, err := plan.Parse(nil, "test.yaml", []byte(strings.Replace(text, "4s", "3s", 1)), loadCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = sheet.Compile(nil, p)
	if want := "require[1].delivered.by is 3s, and the radio needs at least 3.897s for the payload: nothing can be delivered by then"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, expected %q", err, want)
	}
}

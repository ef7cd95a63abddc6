package catalog

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
)

var _ plan.Catalog = (*Catalog)(nil)

func load(t *testing.T, c Config) *Catalog {
	t.Helper()
	cat, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func TestEmbeddedData(t *testing.T) {
	c := load(t, Config{DriversDir: "testdata/drivers"})
	for _, l := range []struct {
		kind      string
		got, want []string
	}{
		{"radios", c.Profiles(), []string{"decola-radio", "hf-4800", "hf-4800-arq", "hf-4800-arq-fec", "hf-4800-fec", "hf-4800-tuned", "hf-ax25", "hf-stanag-5066",
			"lttcp-burst", "lttcp-on-off", "lttcp-uniform", "mpu4", "prc-117g-anw2c", "prc-117g-srw", "prc-152a", "prc-154a-srw", "qaddoura-wlan", "reference-link", "transports-bursts", "transports-link", "transports-outage", "transports-second", "tw-400-tsm-e", "unnamed-radio"}},
		{"topologies", c.Topologies(), []string{"flag-pole", "k-lot", "point-to-point", "two-radios", "vip-lot", "wired-wireless", "zahl-road"}},
		{"protocols", c.Protocols(), []string{"haul", "lttcp", "probe", "quic", "sctp", "split", "tcp", "udt"}},
	} {
		if !slices.Equal(l.got, l.want) {
			t.Errorf("%s: got %v, want %v", l.kind, l.got, l.want)
		}
	}
	if c.Profile("none") != nil || c.Topology("none") != nil || c.Manifest("none") != nil || c.DriverDir("none") != "" {
		t.Error("something was found under a name that does not exist")
	}
	if got := c.DriverDir("tcp"); got != "testdata/drivers/tcp" {
		t.Errorf("driver folder %q", got)
	}
}

// Every radio over every topology is a network whose ends reach each other,
// through the relay where there is one, and every parameter has its source.
func TestEveryRadioOverEveryTopology(t *testing.T) {
	c := load(t, Config{})
	for _, pn := range c.Profiles() {
		p := c.Profile(pn)
		for _, f := range p.Parameters {
			if f.Source == "" || f.Unit == "" {
				t.Errorf("%s: parameter %+v lacks source or unit", pn, f)
			}
		}
		if p.Emulation == nil {
			if len(p.Notes) == 0 {
				t.Errorf("%s cannot be emulated, and its notes do not say why", pn)
			}
			continue
		}
		for _, tn := range c.Topologies() {
			n, err := radio.Resolve(p, c.Topology(tn))
			if err != nil {
				t.Fatal(err)
			}
			if route := n.Route(radio.RoleClient, radio.RoleServer); len(route) != len(c.Topology(tn).Stations) {
				t.Errorf("%s at %s: route %v", pn, tn, route)
			}
		}
	}
}

// The distances of breedy-2015, and positions that reproduce them.
func TestDistances(t *testing.T) {
	const foot = 0.3048
	c := load(t, Config{})
	clientFeet := map[string]float64{"vip-lot": 310.13, "flag-pole": 635.10, "zahl-road": 960.06, "k-lot": 1285.03}
	for name := range clientFeet {
		topo := c.Topology(name)
		for _, l := range topo.Links {
			want := 673.1 * foot
			if l.A == radio.RoleClient || l.B == radio.RoleClient {
				want = clientFeet[name] * foot
			}
			if math.Abs(l.DistanceMetres-want) > 1e-9 {
				t.Errorf("%s: %s–%s is %v m, want %v", name, l.A, l.B, l.DistanceMetres, want)
			}
			between := topo.Station(l.A).DistanceMetres(topo.Station(l.B))
			if math.Abs(between-want) > 0.005*want {
				t.Errorf("%s: the positions of %s and %s are %.2f m apart, want %.2f within 0.5 %%", name, l.A, l.B, between, want)
			}
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A profile of an extra folder may refer to a trace beside it, also when its parameters vary.
func TestTraceAndVary(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../radio-profiles/reference-link.yaml")
	if err != nil {
		t.Fatal(err)
	}
	traced := strings.Replace(strings.Replace(string(text), "name: reference-link", "name: traced", 1),
		"{model: perfect, source: \"chosen\"}", "{model: trace, file: drive.csv, source: here}", 1)
	write(t, filepath.Join(dir, "radio-profiles", "traced.yaml"), traced)
	if _, err := Load(Config{ExtraDirs: []string{dir}}); err == nil || !strings.Contains(err.Error(), "drive.csv") {
		t.Errorf("a trace that is not there: %v", err)
	}
	write(t, filepath.Join(dir, "radio-profiles", "drive.csv"), "time_s,loss\n0,0\n2,0\n1,0\n")
	if _, err := Load(Config{ExtraDirs: []string{dir}}); err == nil || !strings.Contains(err.Error(), "drive.csv:4:1: time goes from 2s to 1s") {
		t.Errorf("a trace whose time goes backward: %v", err)
	}
	write(t, filepath.Join(dir, "radio-profiles", "drive.csv"), "time_s,loss\n0,0\n1,0.5\n")
	c := load(t, Config{ExtraDirs: []string{dir}})
	p, err := c.Vary("traced", []radio.Change{{Path: "rate", Value: "3 Mbit/s"}, {Path: "channel.repeat", Value: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	if tr := p.Emulation.Channel.Trace; p.Emulation.RateBitsPerSecond != 3e6 || !tr.Repeat || tr.Loss[1] != 0.5 || p.Hash != c.Profile("traced").Hash {
		t.Errorf("%+v", p.Emulation)
	}
	if c.Profile("traced").Emulation.RateBitsPerSecond != 100e6 {
		t.Error("varying a profile changed the catalog's")
	}
	if _, err := c.Vary("none", nil); err == nil {
		t.Error("a radio that does not exist was varied")
	}
	if _, err := c.Vary("prc-152a", []radio.Change{{Path: "rate", Value: "3 Mbit/s"}}); err == nil || !strings.Contains(err.Error(), "no emulation section") {
		t.Errorf("a radio without emulation: %v", err)
	}
}

func TestExtraFolder(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../topologies/vip-lot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.Replace(string(text), "name: vip-lot", "name: my-lot", 1)
	write(t, dir+"/topologies/my-lot.yaml", renamed)
	write(t, dir+"/topologies/README.md", "not data")
	c := load(t, Config{ExtraDirs: []string{dir}})
	if c.Topology("my-lot") == nil {
		t.Error("the extra topology is not there")
	}
}

func TestBrokenFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/extra/radio-profiles/x.yaml", "name: x\nfigurs: []\n")
	write(t, dir+"/extra/topologies/vip-lot.yaml", "name: [")
	write(t, dir+"/drivers/tcp/driver.yaml", "name: tcp\noptions: 3\n")
	write(t, dir+"/drivers/udt/README.md", "no manifest: not a driver")
	write(t, dir+"/drivers/README.md", "a file, not a folder")
	_, err := Load(Config{DriversDir: dir + "/drivers", ExtraDirs: []string{dir + "/extra"}})
	var ps yamldoc.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"x.yaml:2:1: unknown key \"figurs\" (did you mean \"figures\"?)", "vip-lot.yaml:1:7: not YAML",
		"tcp/driver.yaml:2:10: options: expected a mapping", "tcp/driver.yaml:1:1: version is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "README") {
		t.Errorf("a file that is no data was read:\n%v", err)
	}
}

func TestNamesMustBeUniqueAndTheirFiles(t *testing.T) {
	text, err := os.ReadFile("../../topologies/vip-lot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"vip-lot": `topology "vip-lot" exists already, in topologies/vip-lot.yaml`, "other": `topology "vip-lot" is in a file called "other"`} {
		dir := t.TempDir()
		write(t, dir+"/topologies/"+file+".yaml", string(text))
		if _, err := Load(Config{ExtraDirs: []string{dir}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s.yaml: got %v, want %s", file, err, want)
		}
	}
}

func TestSiteOfUnknownTopology(t *testing.T) {
	text, err := os.ReadFile("../../radio-profiles/mpu4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := strings.Replace(string(text), "name: mpu4", "name: mine", 1)
	write(t, dir+"/radio-profiles/mine.yaml", strings.Replace(s, "    k-lot:", "    k-lots:", 1))
	_, err = Load(Config{ExtraDirs: []string{dir}})
	if err == nil || !strings.Contains(err.Error(), `unknown topology "k-lots" (did you mean "k-lot"?)`) {
		t.Errorf("got %v", err)
	}
}

func TestMissingFolders(t *testing.T) {
	for _, c := range []Config{{DriversDir: "testdata/none"}, {ExtraDirs: []string{"testdata/none"}}} {
		if _, err := Load(c); err == nil || !strings.Contains(err.Error(), "testdata/none") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestWithChoices(t *testing.T) {
	c := load(t, Config{DriversDir: "testdata/drivers"})
	d := c.WithChoices("tcp", "congestion", []string{"cubic", "reno"})
	if got := d.Manifest("tcp").Options[0].Choices; !slices.Equal(got, []string{"cubic", "reno"}) {
		t.Errorf("choices %v", got)
	}
	if got := c.Manifest("tcp").Options[0].Choices; len(got) != 0 {
		t.Errorf("the original changed: %v", got)
	}
	if c.WithChoices("none", "x", nil) != c || c.WithChoices("tcp", "receive_buffer", []string{"x"}) != c {
		t.Error("what takes no choices changed the catalog")
	}
}

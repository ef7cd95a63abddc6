package plan_test

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamlschema"
	"linktrial/internal/yamlschema/yamlschematest"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
)

// kindPlans are the plans whose campaigns the fixture of the browser tests has
// (e2e/kinds/README.md), by their files' names.
func kindPlans(t *testing.T) (*catalog.Catalog, map[string][]byte) {
	t.Helper()
	drivers := strings.Join([]string{"../../protocols", "../../protocols/haul/cmd"}, string(os.PathListSeparator))
	cat, err := catalog.Load(catalog.Config{DriversDir: drivers})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../e2e/kinds/plans/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("plans of kinds: %v (%v)", files, err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return cat, out
}

// unstated are keys and words that no campaign can have, with the reason. The test of
// words holds that no plan has them.
var unstated = map[string]string{
	"flows.from=server": "listeners are at the server, and a flow leads to another node",
	"flows.to=client":   "listeners are at the server",
	"flows.to=relay":    "listeners are at the server",
}

// declared is what the language of plans has, and what plans use of it: "treatments.at"
// is a key of the mapping treatments, "the plan.order=random" a word that a key takes.
type declared struct{ known, used map[string]bool }

// TestKindsHaveAllOfTheLanguage holds that every key of the language of plans, and every
// word of those from which a key takes one, is in a plan of e2e/kinds: so that pages,
// figures and exports are tried with it.
func TestKindsHaveAllOfTheLanguage(t *testing.T) {
	cat, texts := kindPlans(t)
	d := declared{map[string]bool{}, map[string]bool{}}
	for _, m := range plan.Language.Mappings() {
		for _, k := range m.Keys {
			d.known[m.Name+"."+k.Name] = true
			for _, word := range k.Form.Words {
				d.known[m.Name+"."+k.Name+"="+word] = true
			}
		}
	}
	for file, text := range texts {
		if _, err := plan.Parse(nil, file, text, cat); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var doc any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		d.use(yamlschema.Of(plan.Language.Root), doc)
	}
	if len(d.known) < 120 {
		t.Errorf("the language has %d keys and words, of which this test knows how to find more: %v", len(d.known), d.known)
	}
	for what := range d.known {
		if reason := unstated[what]; !d.used[what] && reason == "" {
			t.Errorf("no plan of e2e/kinds has %s: write one, and make the fixture again with 'make kinds' (e2e/kinds/README.md)", what)
		}
	}
	for what := range unstated {
		if !d.known[what] || d.used[what] {
			t.Errorf("%s is listed as what no plan can have: known %t, used %t", what, d.known[what], d.used[what])
		}
	}
}

// use notes the keys and words of a value.
func (d *declared) use(f yamlschema.Form, v any) {
	switch v := v.(type) {
	case map[string]any:
		m := yamlschematest.MappingOf(f)
		if m == nil {
			return // keys are names of the plan's own, or a driver's
		}
		for key, value := range v {
			k := m.Key(key)
			if k == nil {
				continue
			}
			d.used[m.Name+"."+key] = true
			if m.Name == "groups" {
				d.used[plan.Language.Root.Name+"."+key] = true // what a group states in the plan's place
			}
			d.used[m.Name+"."+key+"="+fmt.Sprint(value)] = true
			d.use(k.Form, value)
		}
	case []any:
		for _, e := range v {
			d.use(f, e)
		}
	}
}

// TestKindsHaveEveryForm holds that what a key alone does not tell is in a plan of
// e2e/kinds, too.
func TestKindsHaveEveryForm(t *testing.T) {
	cat, texts := kindPlans(t)
	var all []*plan.Plan
	for file, text := range texts {
		p, err := plan.Parse(nil, file, text, cat)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name+".yaml" != file {
			t.Errorf("%s is named %s: the name of the file finds the campaign", file, p.Name)
		}
		all = append(all, p)
	}
	cell := func(is func(*plan.Cell) bool) func(*plan.Plan) bool {
		return func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Cells, func(c plan.Cell) bool { return is(&c) })
		}
	}
	flow := func(is func(plan.FlowSpec) bool) func(*plan.Plan) bool {
		return func(p *plan.Plan) bool {
			return cell(func(c *plan.Cell) bool { return slices.ContainsFunc(c.Flows, is) })(p) ||
				slices.ContainsFunc(p.Mixes, func(m plan.Mix) bool { return slices.ContainsFunc(m.Flows, is) })
		}
	}
	set := func(parameter string) func(*plan.Plan) bool {
		return cell(func(c *plan.Cell) bool {
			return slices.ContainsFunc(c.Settings, func(s runsheet.Setting) bool { return strings.HasPrefix(s.Parameter, parameter) })
		})
	}
	places := func(of func(*plan.Cell) string) func(*plan.Plan) bool {
		return func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Cells, func(c plan.Cell) bool { return of(&c) != of(&p.Cells[0]) })
		}
	}
	probeAlone := func(c *plan.Cell, t runsheet.Treatment) bool {
		return slices.ContainsFunc(c.Probes, func(s plan.ProbeSpec) bool { return s.Treatment == t.Name && s.Alone > 0 })
	}
	onlyProbes := func(c *plan.Cell) bool {
		return len(c.Mixes) == 0 && !slices.ContainsFunc(c.Treatments, func(t runsheet.Treatment) bool { return !probeAlone(c, t) })
	}
	forms := map[string]func(*plan.Plan) bool{
		"a trial of one transfer":     cell(func(c *plan.Cell) bool { return len(c.Flows) == 1 && c.Flows[0].Count == 1 && c.Flows[0].Duration == 0 }),
		"several flows at once":       flow(func(f plan.FlowSpec) bool { return f.Count > 1 }),
		"a flow that ends by time":    flow(func(f plan.FlowSpec) bool { return f.Duration > 0 && f.OnMean == 0 }),
		"a flow of a size of its own": flow(func(f plan.FlowSpec) bool { return f.SizeBytes > 0 }),
		"a flow that begins later":    flow(func(f plan.FlowSpec) bool { return f.Start > 0 }),
		"an on/off source":            flow(func(f plan.FlowSpec) bool { return f.OnMean > 0 }),
		"a flow from the relay":       flow(func(f plan.FlowSpec) bool { return f.From == radio.RoleRelay }),
		"several groups":              func(p *plan.Plan) bool { return len(p.Groups) > 1 },
		"no groups":                   func(p *plan.Plan) bool { return len(p.Groups) == 0 },
		"several radios":              places(func(c *plan.Cell) string { return c.Radio.Name }),
		"several topologies":          places(func(c *plan.Cell) string { return c.Topology.Name }),
		"several sizes":               places(func(c *plan.Cell) string { return strconv.FormatInt(c.SizeBytes, 10) }),
		"a sweep of the radio":        set("rate"),
		"a sweep of its channel":      set("channel."),
		"a sweep of an option":        set("option."),
		"a sweep of flows.count":      set("flows.count"),
		"a sweep of flows.duration":   set("flows.duration"),
		"probes beside transfers": cell(func(c *plan.Cell) bool {
			return slices.ContainsFunc(c.Probes, func(s plan.ProbeSpec) bool { return s.Beside }) && !onlyProbes(c)
		}),
		"a probe alone": cell(func(c *plan.Cell) bool {
			return slices.ContainsFunc(c.Probes, func(s plan.ProbeSpec) bool { return s.Alone > 0 && !s.Beside })
		}),
		"a probe from the server": cell(func(c *plan.Cell) bool {
			return slices.ContainsFunc(c.Probes, func(s plan.ProbeSpec) bool { return s.From == radio.RoleServer })
		}),
		"a mix with its own probes": func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Mixes, func(m plan.Mix) bool { return len(m.Probes) > 0 })
		},
		"a mix without probes": func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Mixes, func(m plan.Mix) bool { return m.OwnProbes && len(m.Probes) == 0 })
		},
		"a group with probes alone":    func(p *plan.Plan) bool { return len(p.Groups) > 1 && cell(onlyProbes)(p) && !allCells(p, onlyProbes) },
		"nothing but probes":           func(p *plan.Plan) bool { return allCells(p, onlyProbes) },
		"one iteration":                func(p *plan.Plan) bool { return p.Iterations == 1 },
		"missing treatments":           func(p *plan.Plan) bool { return len(p.Missing()) > 0 },
		"more treatments than colours": func(p *plan.Plan) bool { return len(p.Treatments) > 11 },
		"a label as long as they get": func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Treatments, func(t runsheet.Treatment) bool { return len([]rune(t.Label)) == 200 })
		},
		"two radios on a node": cell(func(c *plan.Cell) bool { return c.Topology.Second != nil }),
		"relay processes at two nodes": func(p *plan.Plan) bool {
			return slices.ContainsFunc(p.Treatments, func(t runsheet.Treatment) bool { return len(t.Via) > 1 })
		},
		"published rows":              func(p *plan.Plan) bool { return len(p.Published) > 0 && len(p.Groups) == 0 },
		"published rows of a group":   func(p *plan.Plan) bool { return len(p.Published) > 0 && len(p.Groups) > 0 },
		"published values of a group": func(p *plan.Plan) bool { return len(p.PublishedValues) > 0 && len(p.Groups) > 0 },
		"in-band control":             func(p *plan.Plan) bool { return p.Control == runsheet.ControlInBand },
		"packet logs":                 func(p *plan.Plan) bool { return p.Capture },
		"pauses between trials":       func(p *plan.Plan) bool { return p.Limits.Pause > 0 },
		"seldom samples":              func(p *plan.Plan) bool { return p.SampleInterval >= 500*time.Millisecond },
	}
	for form, is := range forms {
		if !slices.ContainsFunc(all, is) {
			t.Errorf("no plan of e2e/kinds has %s", form)
		}
	}
}

func allCells(p *plan.Plan, is func(*plan.Cell) bool) bool {
	return !slices.ContainsFunc(p.Cells, func(c plan.Cell) bool { return !is(&c) })
}

// TestKindsAreStored holds that the fixture has a campaign of each plan as it is now.
func TestKindsAreStored(t *testing.T) {
	cat, texts := kindPlans(t)
	f, err := os.Open("../../e2e/kinds/store.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stored := copied(t, f, "linktrial-backup/data/campaigns.copy.gz")
	for file, text := range texts {
		p, err := plan.Parse(nil, file, text, cat)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stored, p.Hash) {
			t.Errorf("%s has changed since its campaign was stored: make kinds (e2e/kinds/README.md)", file)
		}
	}
}

// copied returns a compressed file of a compressed archive.
func copied(t *testing.T, archive io.Reader, name string) string {
	t.Helper()
	outer, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(outer); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Name != name {
			continue
		}
		inner, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(inner)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

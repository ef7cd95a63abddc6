package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// Bounds of a plan. They are far beyond any field trial and keep a slip of the
// pen from becoming a sheet that no node can hold.
const (
	maxIterations = 10_000
	maxAttempts   = 100
	maxTreatments = 200
	maxSizes      = 1000
	maxTrials     = 50_000
	maxText       = 4 << 20 // bytes
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,47}$`)

// Parse reads a plan and resolves its names in the catalog. The error, if any,
// is [yamldoc.Problems]: everything wrong with the plan, each with line and
// column. The file's name serves messages only.
func Parse(file string, text []byte, cat Catalog) (*Plan, error) {
	if len(text) > maxText {
		return nil, yamldoc.Problems{{File: file, Message: fmt.Sprintf("%s long, a plan has at most %s", unit.FormatBytes(int64(len(text))), unit.FormatBytes(maxText))}}
	}
	d := yamldoc.Parse(file, text)
	if err := d.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	ps := parser{cat: cat, plan: &Plan{Hash: hex.EncodeToString(sum[:])}}
	ps.read(d.Root().Mapping("name", "title", "notes", "radio", "topology", "size", "exclude", "treatments",
		"iterations", "order", "seed", "limits", "control", "sample_interval", "capture", "published"))
	if err := d.Err(); err != nil {
		return nil, err
	}
	return ps.plan, nil
}

type parser struct {
	cat  Catalog
	plan *Plan
}

func (ps *parser) read(r yamldoc.Mapping) {
	p := ps.plan
	p.Name = name(r.Field("name"))
	p.Title = r.Field("title").String(p.Name)
	for _, v := range r.Field("notes").List() {
		p.Notes = append(p.Notes, strings.TrimSpace(v.String("")))
	}
	ps.cells(r)
	ps.treatments(r.Field("treatments").Required())

	p.Iterations = int(r.Field("iterations").Required().Int(1, 1, maxIterations))
	p.Order = Order(r.Field("order").OneOf(string(OrderFixed), string(OrderFixed), string(OrderRandom), string(OrderCounterbalanced)))
	p.Seed = r.Field("seed").Required().Uint64(0)

	l := r.Field("limits").Mapping("connect", "transfer", "attempts", "pause")
	p.Limits = runsheet.Limits{
		Connect:  span(l.Field("connect"), 30*time.Second, 100*time.Millisecond, time.Hour),
		Transfer: span(l.Field("transfer"), 5*time.Minute, 100*time.Millisecond, 7*24*time.Hour),
		Attempts: int(l.Field("attempts").Int(1, 1, maxAttempts)),
		Pause:    span(l.Field("pause"), 0, 0, 24*time.Hour),
	}
	p.Control = runsheet.Control(r.Field("control").OneOf(string(runsheet.ControlOutOfBand), string(runsheet.ControlOutOfBand), string(runsheet.ControlInBand)))
	p.SampleInterval = span(r.Field("sample_interval"), 100*time.Millisecond, 10*time.Millisecond, time.Hour)
	p.Capture = r.Field("capture").Bool(false)
	ps.published(r.Field("published"))

	if n := len(p.Cells) * p.Iterations * len(p.Runnable()); n > maxTrials {
		r.Field("iterations").Problem("the plan has %d trials, at most %d fit", n, maxTrials)
	}
	if rows := len(Williams(len(p.Runnable()))); p.Order == OrderCounterbalanced && rows > 0 && p.Iterations%rows != 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("The counterbalanced order is balanced over %d iterations and their multiples; the plan has %d.", rows, p.Iterations))
	}
}

func name(v yamldoc.Value) string {
	s := v.Required().String("")
	if v.Present() && !v.IsList() && !v.IsMapping() && !nameForm.MatchString(s) {
		v.Problem("%q, expected lower-case letters, digits and hyphens, at most 48", s)
	}
	return s
}

func span(v yamldoc.Value, def, lo, hi time.Duration) time.Duration {
	d := v.Duration(def)
	if d < lo || d > hi {
		v.Problem("expected %s to %s, found %s", lo, hi, d)
		return def
	}
	return d
}

// oneOrMany reads a value that may be a list or one of its elements.
func oneOrMany(v yamldoc.Value) []yamldoc.Value {
	if !v.Present() {
		return nil
	}
	if !v.IsList() {
		return []yamldoc.Value{v}
	}
	l := v.List()
	if len(l) == 0 {
		v.Problem("expected at least one, found an empty list")
	}
	return l
}

// known reads a name that must be among those that exist.
func known(v yamldoc.Value, kind string, names []string) (string, bool) {
	s := v.String("")
	if !v.Present() || v.IsList() || v.IsMapping() {
		return "", false
	}
	if slices.Contains(names, s) {
		return s, true
	}
	v.Problem("unknown %s %q%s; %s", kind, s, yamldoc.Suggest(s, names), listed(names))
	return "", false
}

func listed(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(names, ", ")
}

// names reads one or several names of a kind, each known and given once.
func names(v yamldoc.Value, kind string, all []string) []string {
	var out []string
	for _, e := range oneOrMany(v) {
		n, ok := known(e, kind, all)
		switch {
		case !ok:
		case slices.Contains(out, n):
			e.Problem("%s %q is given twice", kind, n)
		default:
			out = append(out, n)
		}
	}
	return out
}

func sizes(v yamldoc.Value) []int64 {
	var out []int64
	list := oneOrMany(v)
	if len(list) > maxSizes {
		v.Problem("expected at most %d sizes, found %d", maxSizes, len(list))
		return nil
	}
	for _, e := range list {
		n := e.Bytes(-1)
		switch {
		case n < 0: // its own problem is noted
		case n > contract.MaxSize:
			e.Problem("expected at most %s, found %s", unit.FormatBytes(contract.MaxSize), unit.FormatBytes(n))
		case slices.Contains(out, n):
			e.Problem("size %s is given twice", unit.FormatBytes(n))
		default:
			out = append(out, n)
		}
	}
	return out
}

func (ps *parser) cells(r yamldoc.Mapping) {
	radios := names(r.Field("radio").Required(), "radio", ps.cat.Profiles())
	topologies := names(r.Field("topology").Required(), "topology", ps.cat.Topologies())

	sv := r.Field("size").Required()
	sizesOf := map[string][]int64{}
	if sv.IsMapping() {
		m := sv.Mapping()
		for _, key := range m.Keys() {
			if !slices.Contains(topologies, key) {
				m.Key(key).Problem("topology %q is not one of the plan's%s; %s", key, yamldoc.Suggest(key, topologies), listed(topologies))
			}
			sizesOf[key] = sizes(m.Field(key))
		}
		for _, t := range topologies {
			if !m.Field(t).Present() {
				sv.Problem("no size for topology %s", t)
			}
		}
	} else {
		all := sizes(sv)
		for _, t := range topologies {
			sizesOf[t] = all
		}
	}

	var cells []Cell
	for _, rn := range radios {
		for _, tn := range topologies {
			for _, size := range sizesOf[tn] {
				cells = append(cells, Cell{Radio: ps.cat.Profile(rn), Topology: ps.cat.Topology(tn), SizeBytes: size})
			}
		}
	}
	had := len(cells)
	for _, v := range r.Field("exclude").List() {
		cells = exclude(cells, v, radios, topologies)
	}
	if had > 0 && len(cells) == 0 {
		r.Field("exclude").Problem("nothing is left to run")
	}
	ps.plan.Cells = cells
}

// exclude takes the cells out that one entry of the list describes.
func exclude(cells []Cell, v yamldoc.Value, radios, topologies []string) []Cell {
	m := v.Mapping("radio", "topology", "size")
	rv, tv, zv := m.Field("radio"), m.Field("topology"), m.Field("size")
	if !rv.Present() && !tv.Present() && !zv.Present() {
		if v.IsMapping() {
			v.Problem("expected radio, topology or size of the cells to leave out")
		}
		return cells
	}
	rn, rOK := known(rv, "radio of the plan", radios)
	tn, tOK := known(tv, "topology of the plan", topologies)
	size := zv.Bytes(-1)
	if rv.Present() && !rOK || tv.Present() && !tOK || zv.Present() && size < 0 {
		return cells
	}
	left := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool {
		return (rn == "" || c.Radio.Name == rn) && (tn == "" || c.Topology.Name == tn) && (size < 0 || c.SizeBytes == size)
	})
	if len(left) == len(cells) && len(cells) > 0 {
		v.Problem("no cell of the plan is left that this would exclude")
	}
	return left
}

func (ps *parser) treatments(v yamldoc.Value) {
	list := v.List()
	if v.IsList() && (len(list) == 0 || len(list) > maxTreatments) {
		v.Problem("expected 1 to %d treatments, found %d", maxTreatments, len(list))
		return
	}
	seen := map[string]bool{}
	for _, e := range list {
		t := ps.treatment(e)
		if t.Name != "" && seen[t.Name] {
			e.Mapping().Field("name").Problem("treatment %q is given twice", t.Name)
		}
		seen[t.Name] = true
		ps.plan.Treatments = append(ps.plan.Treatments, t)
	}
	if len(list) > 0 && len(ps.plan.Runnable()) == 0 {
		v.Problem("every treatment is missing, nothing is left to run")
	}
}

func (ps *parser) treatment(v yamldoc.Value) runsheet.Treatment {
	m := v.Mapping("name", "label", "protocol", "options", "complete_knowledge", "missing")
	t := runsheet.Treatment{
		Name:              name(m.Field("name")),
		Protocol:          m.Field("protocol").Required().String(""),
		CompleteKnowledge: m.Field("complete_knowledge").Bool(false),
		Options:           map[string]any{},
	}
	t.Label = m.Field("label").String(t.Name)
	reason := strings.TrimSpace(m.Field("missing").String(""))
	pv := m.Field("protocol")
	if !pv.Present() || pv.IsList() || pv.IsMapping() {
		return t
	}
	if man := ps.cat.Manifest(t.Protocol); man != nil {
		t.DriverVersion = man.Version
		t.Options = man.ReadOptions(m.Field("options"))
		return t
	}
	if mv := m.Field("missing"); mv.Present() && reason == "" {
		mv.Problem("expected the reason, found nothing")
		return t
	}
	if reason == "" {
		all := ps.cat.Protocols()
		pv.Problem("unknown protocol %q%s; %s (a treatment whose protocol does not exist yet gives the reason with missing)", t.Protocol, yamldoc.Suggest(t.Protocol, all), listed(all))
		return t
	}
	// Nobody can check these options yet; they are kept as they stand.
	m.Field("options").Mapping()
	if o, ok := m.Field("options").Any().(map[string]any); ok {
		t.Options = o
	}
	t.Missing = reason
	return t
}

func (ps *parser) published(v yamldoc.Value) {
	if !v.Present() {
		return
	}
	m := v.Mapping("source", "rows")
	src := m.Field("source").Required().String("")
	p := ps.plan
	var radios, topologies, treatments []string
	for _, c := range p.Cells {
		if !slices.Contains(radios, c.Radio.Name) {
			radios = append(radios, c.Radio.Name)
		}
		if !slices.Contains(topologies, c.Topology.Name) {
			topologies = append(topologies, c.Topology.Name)
		}
	}
	for _, t := range p.Treatments {
		treatments = append(treatments, t.Name)
	}
	if len(p.Cells) == 0 || len(treatments) == 0 {
		return // the names have problems of their own; do not repeat them for every row
	}
	for _, e := range m.Field("rows").Required().List() {
		row := e.Mapping("radio", "topology", "treatment", "n", "average", "maximum", "minimum", "sd", "source")
		figure := func(key string) float64 { return row.Field(key).Required().Float(0, 0, 1e12) }
		w := Published{
			N:       int(row.Field("n").Required().Int(1, 1, 1e9)),
			Average: figure("average"), Maximum: figure("maximum"), Minimum: figure("minimum"), SD: figure("sd"),
			Source: row.Field("source").String(src),
		}
		w.Radio, _ = known(row.Field("radio").Required(), "radio of the plan", radios)
		w.Topology, _ = known(row.Field("topology").Required(), "topology of the plan", topologies)
		w.Treatment, _ = known(row.Field("treatment").Required(), "treatment", treatments)
		if row.Field("average").Present() && (w.Average < w.Minimum || w.Average > w.Maximum) {
			row.Field("average").Problem("%g does not lie between minimum %g and maximum %g", w.Average, w.Minimum, w.Maximum)
		}
		switch {
		case w.Radio == "" || w.Topology == "" || w.Treatment == "":
		case p.PublishedFor(w.Radio, w.Topology, w.Treatment) != nil:
			e.Problem("the figures of %s with %s at %s are given twice", w.Treatment, w.Radio, w.Topology)
		default:
			p.Published = append(p.Published, w)
		}
	}
}

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
	"linktrial/protocols/contract"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,47}$`)

// Parse reads a plan and resolves its names in the catalog. The error, if any,
// is [yamldoc.Problems]: everything wrong with the plan, each with line and
// column. The file's name serves messages only.
//
// Stop is asked while a plan is read whether reading is to end, such as
// ctx.Err; an error of it is returned as it is. It may be nil.
func Parse(stop func() error, file string, text []byte, cat Catalog) (*Plan, error) {
	d := yamldoc.Parse(file, text)
	if err := d.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	ps := parser{cat: cat, plan: &Plan{Hash: hex.EncodeToString(sum[:]), Expected: map[string]string{}}, stop: stop, file: file,
		axes: map[string][]axis{}, types: map[string]string{}, viaAt: map[string][]yamldoc.Value{}, secondAt: map[string]yamldoc.Value{}, drivenAt: map[string]yamldoc.Value{}, varied: map[string]*radio.Profile{}, readingsAt: map[*runsheet.Valid][]readingAt{}, stopAt: map[*runsheet.Stop]*stopRule{}}
	if ps.stop == nil {
		ps.stop = func() error { return nil }
	}
	ps.read(planKeys.Read(d.Root()))
	if ps.stopped != nil {
		return nil, ps.stopped
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return ps.plan, nil
}

type parser struct {
	cat     Catalog
	plan    *Plan
	file    string
	stop    func() error
	stopped error // what stop has returned
	count   budget

	drafts    []draft           // of all groups
	cellCount float64           // what they come from, before anything is excluded
	axes      map[string][]axis // of each group, for what the published values name
	types     map[string]string // what a name belongs to: treatment or mix
	// misnamed: the name of a treatment or mix has a problem, so what refers to it has none.
	misnamed bool
	// labels is the names of treatments and mixes by what tables call them.
	labels map[string]string
	// viaAt is where each relay process of a treatment says its node.
	viaAt map[string][]yamldoc.Value
	// secondAt is where each treatment says that it uses second radios.
	secondAt map[string]yamldoc.Value
	// drivenAt is where each treatment says its protocol.
	drivenAt map[string]yamldoc.Value
	// probesUsed names the treatments that lists of probes have.
	probesUsed []string
	// probesMisnamed: one of them names a treatment that it cannot be.
	probesMisnamed bool
	// readingsAt is where rules of validity state their limits of the radio's readings.
	readingsAt map[*runsheet.Valid][]readingAt
	// rule is the plan's rule to stop by, and stopAt those that cells' rules are of.
	rule   *stopRule
	stopAt map[*runsheet.Stop]*stopRule
	// varied is the profiles that sweeps have asked for, by radio and changes.
	varied map[string]*radio.Profile
}

func (ps *parser) read(r yamlschema.Fields) {
	p := ps.plan
	p.Name = name(r.Field("name"))
	p.Title = r.Field("title").Label(p.Name)
	p.Notes = notes(r.Field("notes"))
	ps.treatments(r.Field("treatments").Required())
	ps.mixes(r.Field("mixes"))

	p.Iterations = r.Int("iterations")
	p.Order = TreatmentOrder(r.Word("order"))
	p.Seed = r.Field("seed").Required().Uint64(0)
	p.Limits = limits(r.Field("limits"))
	p.Valid = ps.valid(r.Field("valid"))
	ps.rule = readStop(r.Field("stop"))
	p.Control = runsheet.Control(r.Word("control"))
	p.ControlShare = controlShare(r.Field("control_share"), p.Control)
	p.SampleInterval = r.Duration("sample_interval")
	p.Capture = r.Bool("capture")
	required := ps.requirements(r.Field("require"))

	if g := r.Field("groups"); g.Present() {
		ps.groups(g, r.Mapping)
	} else {
		ps.cells("", r.Mapping, r.Mapping)
	}
	ps.checkProbes(r.Mapping)
	if ps.bounded(r.Mapping); r.OK() {
		ps.make()
	}
	if r.OK() {
		ps.checkStops()
		ps.require(required)
	}
	ps.published(r.Mapping)

	if p.Order == OrderCounterbalanced {
		ps.noteBalance()
	}
}

// budget counts what a plan makes.
type budget struct {
	trials, listed int
	longest        int     // trials of the run that has the most
	flows          float64 // with on/off sources as they are on average
}

func (b *budget) add(c *Cell) {
	before := b.trials
	defer func() { b.longest = max(b.longest, b.trials-before) }()
	one := perTrial(c.Flows)
	for _, t := range c.Treatments {
		if t.Missing == "" {
			b.trials += c.Iterations
			b.flows += float64(c.Iterations) * (one + float64(len(c.ProbesOf(t.Name))))
		}
	}
	for _, m := range c.Mixes {
		if m.Missing == "" {
			b.trials += c.Iterations
			b.flows += float64(c.Iterations) * (perTrial(m.Flows) + float64(len(c.ProbesOf(m.Name))))
		}
	}
	b.listed += len(c.Treatments) + len(c.Listeners) + len(c.Mixes)
}

// bounded holds what the plan makes against the bounds.
func (ps *parser) bounded(r yamldoc.Mapping) {
	at := r.Field("iterations")
	switch b := ps.count; {
	case b.trials > maxTrials:
		at.Problem("the plan has %d trials, at most %d fit", b.trials, maxTrials)
	case b.longest > maxRunTrials:
		at.Problem("a run of the plan has %d trials, at most %d fit", b.longest, maxRunTrials)
	case b.flows > maxFlowsInAll:
		at.Problem("the plan has %.0f flows in its %d trials, at most %d fit", b.flows, b.trials, maxFlowsInAll)
	case b.listed > maxListed:
		at.Problem("the plan's runs list %d treatments and mixes, at most %d fit", b.listed, maxListed)
	case b.trials == 0 && r.OK():
		at.Problem("the plan has no trials: nothing is left to run")
	}
}

// going reports whether reading may go on.
func (ps *parser) going() bool {
	if ps.stopped == nil {
		ps.stopped = ps.stop()
	}
	return ps.stopped == nil
}

func notes(v yamldoc.Value) (out []string) {
	list := v.List()
	if len(list) > maxNotes {
		v.Problem("expected at most %d notes, found %d", maxNotes, len(list))
		return nil
	}
	for _, e := range list {
		out = append(out, strings.TrimSpace(e.String("")))
	}
	return out
}

// controlShare reads the share of the trials' time that windows of in-band control may
// take; 0: the default, so that sheets of plans without it keep their hashes.
func controlShare(v yamldoc.Value, c runsheet.Control) float64 {
	percent, _ := number(v, "%", true, 1, 100)
	switch {
	case percent == nil:
		return 0
	case c != runsheet.ControlInBand:
		v.Problem("only control: in-band has windows between trials, and this plan has control: %s", c)
		return 0
	case *percent == runsheet.DefaultControlShare*100:
		return 0
	}
	return *percent / 100
}

func limits(v yamldoc.Value) runsheet.Limits {
	m := limitsKeys.Read(v)
	l := runsheet.Limits{
		Connect:  m.Duration("connect"),
		Transfer: m.Duration("transfer"),
		Attempts: m.Int("attempts"),
		Pause:    m.Duration("pause"),
		Wait:     m.Duration("wait"),
		Horizon:  m.Duration("horizon"),
	}
	if l.Wait == runsheet.DefaultWait {
		l.Wait = 0 // the sheet of a plan without the key has none either
	}
	return l
}

// noteBalance adds a note where the number of iterations leaves an order unbalanced.
func (ps *parser) noteBalance() {
	p := ps.plan
	var said []string
	for i := range p.Cells {
		c := &p.Cells[i]
		rows := williamsRows(len(c.Runnable()))
		if rows == 0 || c.Iterations%rows == 0 || slices.Contains(said, c.Group) {
			continue
		}
		said = append(said, c.Group)
		who := "the plan"
		if c.Group != "" {
			who = "group " + c.Group
		}
		p.Notes = append(p.Notes, fmt.Sprintf("The counterbalanced order is balanced over %d iterations and their multiples; %s has %d.", rows, who, c.Iterations))
	}
}

// name reads a name of the plan's own.
func name(v yamldoc.Value) string {
	s := v.Required().String("")
	if v.OK() && !nameForm.MatchString(s) {
		v.Problem("%q, expected lower-case letters, digits and hyphens, at most 48", s)
	}
	return s
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
	if !v.OK() || v.IsList() || v.IsMapping() {
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
		case n < 1 || n > contract.MaxSize:
			e.Problem("expected 1 B to %s, found %s", unit.FormatBytes(contract.MaxSize), unit.FormatBytes(n))
		case slices.Contains(out, n):
			e.Problem("size %s is given twice", unit.FormatBytes(n))
		default:
			out = append(out, n)
		}
	}
	return out
}

package radio

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/telemetrysource"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,47}$`)

// ParseProfile reads a radio profile. Every parameter, those of the emulation
// included, must come with its source; the emulation's are listed among
// [Profile.Parameters] too, named "emulation.…". The error, if any, is
// [yamldoc.Problems].
func ParseProfile(file string, data []byte) (*Profile, error) {
	return ReadProfile(file, data, nil)
}

// ReadProfile is ParseProfile for a profile that may refer to other files of
// its folder (traces), which open gives by name.
func ReadProfile(file string, data []byte, open func(name string) ([]byte, error)) (*Profile, error) {
	return readProfile(yamldoc.Parse(file, data), data, open)
}

func readProfile(d *yamldoc.Document, data []byte, open func(name string) ([]byte, error)) (*Profile, error) {
	r := profileKeys.Read(d.Root())
	p := &Profile{
		Name:         name(r.Field("name")),
		Title:        r.Field("title").Required().Label(""),
		Manufacturer: r.Field("manufacturer").Required().Label(""),
		Model:        r.Field("model").Required().Label(""),
		Firmware:     r.Field("firmware").Label(""),
		Waveform:     r.Field("waveform").Required().Label(""),
		Notes:        texts(r.Field("notes")),
		Hash:         hash(data),
	}
	seen := map[string]bool{}
	for _, v := range r.Field("figures").Required().List() {
		f := parameter(v)
		if seen[f.Name] && f.Name != "" {
			v.Problem("parameter %q is given twice", f.Name)
		}
		seen[f.Name] = true
		p.Parameters = append(p.Parameters, f)
	}
	p.Attach, p.Telemetry = attach(r.Field("attach")), telemetrysource.Parse(r.Field("telemetry"))
	if e := r.Field("emulation"); e.Present() {
		pp := profileParser{file: d.File(), p: p, open: open}
		p.Emulation = pp.emulation(e)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func name(v yamldoc.Value) string {
	s := v.Required().String("")
	if s != "" && !nameForm.MatchString(s) {
		v.Problem("%q, expected lower-case letters, digits and hyphens, at most 48", s)
	}
	return s
}

func texts(v yamldoc.Value) []string {
	var out []string
	for _, e := range v.List() {
		out = append(out, strings.TrimSpace(e.String("")))
	}
	return out
}

// source is the text beside a parameter that says where it comes from.
func source(v yamldoc.Value) string {
	s := strings.TrimSpace(v.Required().String(""))
	if v.Present() && s == "" {
		v.Problem("expected where the parameter comes from, found nothing")
	}
	return s
}

func parameter(v yamldoc.Value) Parameter {
	m := parameterKeys.Read(v)
	f := Parameter{
		Name:      m.Field("name").Required().String(""),
		Unit:      m.Field("unit").String(""),
		Source:    source(m.Field("source")),
		Uncertain: m.Bool("uncertain"),
	}
	val := m.Field("value").Required()
	s := strings.TrimSpace(val.String(""))
	switch {
	case s == "unknown":
		f.Unknown = true
		f.Unit = m.Field("unit").Required().OneOf("", parameterUnits...)
	case s != "":
		num, u, _ := strings.Cut(s, " ")
		x, err := strconv.ParseFloat(num, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			val.Problem("expected a number and a unit such as \"5 MHz\", or unknown, found %q", s)
			break
		}
		f.Value, f.Unit = x, strings.TrimSpace(u)
		switch {
		case !slices.Contains(parameterUnits, f.Unit):
			val.Problem("unknown unit %q%s; there are %s", f.Unit, yamldoc.Suggest(f.Unit, parameterUnits), strings.Join(parameterUnits, ", "))
		case m.Field("unit").Present():
			m.Field("unit").Problem("the unit goes with the value, as in \"5 MHz\"")
		case math.Abs(x) > maxParameter:
			val.Problem("expected a value of at most %g, found %q", maxParameter, s)
		}
	}
	return f
}

type profileParser struct {
	file string
	p    *Profile
	open func(name string) ([]byte, error) // nil: no other files
}

func (pp *profileParser) emulation(v yamldoc.Value) *Emulation {
	m := emulationKeys.Read(v)
	e := &Emulation{}
	if f, k := m.Value("medium"); f.Present() {
		fm := k.Form.Mapping.Read(f)
		e.Medium = Medium(fm.Word("value"))
		source(fm.Field("source"))
	}
	pp.linkParameters(m, e)
	if f := m.Field("queue").Required(); f.Present() {
		e.Queue = pp.queue(f, e.MTUBytes, m.Field("mtu"))
	}
	e.Channel = Channel{Model: ChannelPerfect}
	if f := m.Field("channel").Required(); f.Present() {
		e.Channel = pp.sourcedChannel(f)
	}
	if f := m.Field("reverse_channel"); f.Present() {
		c := pp.sourcedChannel(f)
		e.Reverse = &c
	}
	e.Framing = pp.framing(m.Field("framing"))
	if f := m.Field("frame_overhead"); f.Present() && e.Framing != nil {
		f.Problem("a link with framing has its overhead in the frames' headers")
	}
	e.FEC = pp.fec(m.Field("fec"))
	e.ARQ = pp.arq(m.Field("arq"), e.Framing != nil)
	e.Reordering = pp.reordering(m.Field("reordering"))
	e.Duplication = pp.duplication(m.Field("duplication"))
	e.Access = pp.access(m.Field("access"), e)
	e.Sites = pp.sites(m.Field("sites").Mapping())
	return e
}

// linkParameters reads the parameters of an emulated link. Each is a {value, source}
// pair and is listed among the profile's parameters too.
func (pp *profileParser) linkParameters(m yamlschema.Fields, e *Emulation) {
	read := func(key, unit string, take func(f yamlschema.Fields) float64) {
		v, k := m.Value(key)
		if !v.Present() {
			return
		}
		f := k.Form.Mapping.Read(v)
		value := take(f)
		pp.p.Parameters = append(pp.p.Parameters, Parameter{Name: "emulation." + key, Value: value, Unit: unit, Source: source(f.Field("source"))})
	}
	readSpan := func(key string, into *time.Duration) {
		read(key, "ms", func(f yamlschema.Fields) float64 {
			*into = span(f, "value")
			return into.Seconds() * 1e3
		})
	}
	readSize := func(key string, into *int) {
		read(key, "B", func(f yamlschema.Fields) float64 {
			*into = size(f, "value")
			return float64(*into)
		})
	}
	read("rate", "bit/s", func(f yamlschema.Fields) float64 {
		e.RateBitsPerSecond = rate(f, "value")
		return e.RateBitsPerSecond
	})
	readSpan("processing_delay", &e.ProcessingDelay)
	readSpan("turnaround", &e.Turnaround)
	readSize("frame_overhead", &e.FrameOverheadBytes)
	readSize("mtu", &e.MTUBytes)
}

// sourcedChannel reads a channel that names its source.
func (pp *profileParser) sourcedChannel(f yamldoc.Value) Channel {
	cm := channelKeys.Read(f)
	source(cm.Field("source"))
	return pp.channel(cm.Mapping, channelModels)
}

// sites reads what differs at each site; nil where nothing does.
func (pp *profileParser) sites(m yamldoc.Mapping) map[string]Site {
	var sites map[string]Site
	for _, key := range m.Keys() {
		site, src := pp.site(m.Field(key))
		if sites == nil {
			sites = map[string]Site{}
		}
		sites[key] = site
		if site.RateBitsPerSecond > 0 {
			pp.p.Parameters = append(pp.p.Parameters, Parameter{Name: "emulation.sites." + key + ".rate", Value: site.RateBitsPerSecond, Unit: "bit/s", Source: src})
		}
	}
	return sites
}

func (pp *profileParser) site(v yamldoc.Value) (Site, string) {
	m := siteKeys.Read(v)
	var s Site
	if m.Field("rate").Present() {
		s.RateBitsPerSecond = rate(m, "rate")
	}
	if f := m.Field("channel"); f.Present() {
		c := pp.channel(siteChannelKeys.Read(f).Mapping, channelModels)
		s.Channel = &c
	}
	if f := m.Field("reverse_channel"); f.Present() {
		c := pp.channel(siteChannelKeys.Read(f).Mapping, channelModels)
		s.Reverse = &c
	}
	if v.IsMapping() && !m.Field("rate").Present() && s.Channel == nil && s.Reverse == nil {
		v.Problem("expected rate, channel or both")
	}
	return s, source(m.Field("source"))
}

func rate(f yamlschema.Fields, name string) float64 {
	v, k := f.Value(name)
	r := v.BitsPerSecond(k.Form.Lo)
	if r < k.Form.Lo || r > k.Form.Hi {
		v.Problem("expected a rate from %s to %s, found %q", unit.FormatRate(k.Form.Lo), unit.FormatRate(k.Form.Hi), v.String(""))
		return k.Form.Lo
	}
	return r
}

// span reads a duration; a message names the bound that it is beyond.
func span(f yamlschema.Fields, name string) time.Duration {
	v, k := f.Value(name)
	if !v.Present() {
		def, _ := k.Default.(time.Duration)
		return def
	}
	lo, hi := time.Duration(k.Form.Lo), time.Duration(k.Form.Hi)
	switch d := v.Duration(0); {
	case d > hi:
		v.Problem("expected at most %s, found %s", hi, d)
		return hi
	case d < lo:
		v.Problem("expected at least %s, found %s", lo, d)
		return lo
	default:
		return d
	}
}

func size(f yamlschema.Fields, name string) int {
	v, k := f.Value(name)
	lo, hi := int64(k.Form.Lo), int64(k.Form.Hi)
	n := v.Bytes(lo)
	if n < lo || n > hi {
		v.Problem("expected a size from %d B to %d B, found %q", lo, hi, v.String(""))
		return int(lo)
	}
	return int(n)
}

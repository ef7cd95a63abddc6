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
	"linktrial/internal/yamldoc"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,47}$`)

// figureUnits are the units a figure may be given in, as SI and radio practice write them.
var figureUnits = []string{"Hz", "kHz", "MHz", "GHz", "mW", "W", "dBm", "dBi", "bit/s", "kbit/s", "Mbit/s", "ms", "s", "B", "KiB", "m", "km", "ft"}

// ParseProfile reads a radio profile. Every figure, those of the emulation
// included, must come with its source; the emulation's are listed among
// [Profile.Figures] too, named "emulation.…". The error, if any, is
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
	r := d.Root().Mapping("name", "title", "manufacturer", "model", "firmware", "waveform", "figures", "notes", "attach", "telemetry", "emulation")
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
		f := figure(v)
		if seen[f.Name] && f.Name != "" {
			v.Problem("figure %q is given twice", f.Name)
		}
		seen[f.Name] = true
		p.Figures = append(p.Figures, f)
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

// source is the text beside a figure that says where it comes from.
func source(v yamldoc.Value) string {
	s := strings.TrimSpace(v.Required().String(""))
	if v.Present() && s == "" {
		v.Problem("expected where the figure comes from, found nothing")
	}
	return s
}

func figure(v yamldoc.Value) Figure {
	m := v.Mapping("name", "value", "unit", "source", "uncertain")
	f := Figure{
		Name:      m.Field("name").Required().String(""),
		Unit:      m.Field("unit").String(""),
		Source:    source(m.Field("source")),
		Uncertain: m.Field("uncertain").Bool(false),
	}
	val := m.Field("value").Required()
	s := strings.TrimSpace(val.String(""))
	switch {
	case s == "unknown":
		f.Unknown = true
		f.Unit = m.Field("unit").Required().OneOf("", figureUnits...)
	case s != "":
		num, u, _ := strings.Cut(s, " ")
		x, err := strconv.ParseFloat(num, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			val.Problem("expected a number and a unit such as \"5 MHz\", or unknown, found %q", s)
			break
		}
		f.Value, f.Unit = x, strings.TrimSpace(u)
		switch {
		case !slices.Contains(figureUnits, f.Unit):
			val.Problem("unknown unit %q%s; there are %s", f.Unit, yamldoc.Suggest(f.Unit, figureUnits), strings.Join(figureUnits, ", "))
		case m.Field("unit").Present():
			m.Field("unit").Problem("the unit goes with the value, as in \"5 MHz\"")
		case math.Abs(x) > maxFigure:
			val.Problem("expected a figure of at most %g, found %q", maxFigure, s)
		}
	}
	return f
}

// Bounds of what the emulator can be asked for.
const (
	minMTU, maxMTU = 576, 65535 // RFC 791: every host takes 576; the length field ends at 65535
	maxRate        = 100e9
	maxDelay       = time.Minute
	minSlot        = time.Microsecond // no radio's conditions change faster
	maxQueueBytes  = 1 << 30
	maxQueueCount  = 1 << 20
	maxFigure      = 1e15 // in the unit that it is given in
)

type profileParser struct {
	file string
	p    *Profile
	open func(name string) ([]byte, error) // nil: no other files
}

func (pp *profileParser) emulation(v yamldoc.Value) *Emulation {
	m := v.Mapping("medium", "rate", "processing_delay", "turnaround", "frame_overhead", "mtu", "queue",
		"channel", "reverse_channel", "framing", "fec", "arq", "reordering", "duplication", "access", "sites")
	e := &Emulation{}
	if f := m.Field("medium").Required(); f.Present() {
		fm := f.Mapping("value", "source")
		e.Medium = Medium(fm.Field("value").Required().OneOf("", string(MediumFullDuplex), string(MediumHalfDuplex), string(MediumShared)))
		source(fm.Field("source"))
	}
	pp.linkFigures(m, e)
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

// linkFigures reads the figures of an emulated link. Each is a {value, source}
// pair and is listed among the profile's figures too.
func (pp *profileParser) linkFigures(m yamldoc.Mapping, e *Emulation) {
	read := func(key string, f yamldoc.Value, take func(yamldoc.Value) (value float64, unit string)) {
		if !f.Present() {
			return
		}
		fm := f.Mapping("value", "source")
		value, unit := take(fm.Field("value").Required())
		pp.p.Figures = append(pp.p.Figures, Figure{Name: "emulation." + key, Value: value, Unit: unit, Source: source(fm.Field("source"))})
	}
	read("rate", m.Field("rate").Required(), func(v yamldoc.Value) (float64, string) {
		e.RateBitsPerSecond = rate(v)
		return e.RateBitsPerSecond, "bit/s"
	})
	read("processing_delay", m.Field("processing_delay").Required(), func(v yamldoc.Value) (float64, string) {
		e.ProcessingDelay = delay(v)
		return e.ProcessingDelay.Seconds() * 1e3, "ms"
	})
	read("turnaround", m.Field("turnaround"), func(v yamldoc.Value) (float64, string) {
		e.Turnaround = delay(v)
		return e.Turnaround.Seconds() * 1e3, "ms"
	})
	read("frame_overhead", m.Field("frame_overhead"), func(v yamldoc.Value) (float64, string) {
		e.FrameOverheadBytes = bounded(v, 0, maxMTU)
		return float64(e.FrameOverheadBytes), "B"
	})
	read("mtu", m.Field("mtu").Required(), func(v yamldoc.Value) (float64, string) {
		e.MTUBytes = bounded(v, minMTU, maxMTU)
		return float64(e.MTUBytes), "B"
	})
}

// sourcedChannel reads a channel that names its source.
func (pp *profileParser) sourcedChannel(f yamldoc.Value) Channel {
	cm := f.Mapping(append([]string{"source"}, channelKeys()...)...)
	source(cm.Field("source"))
	return pp.channel(cm)
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
			pp.p.Figures = append(pp.p.Figures, Figure{Name: "emulation.sites." + key + ".rate", Value: site.RateBitsPerSecond, Unit: "bit/s", Source: src})
		}
	}
	return sites
}

func (pp *profileParser) site(v yamldoc.Value) (Site, string) {
	m := v.Mapping("source", "rate", "channel", "reverse_channel")
	var s Site
	if f := m.Field("rate"); f.Present() {
		s.RateBitsPerSecond = rate(f)
	}
	if f := m.Field("channel"); f.Present() {
		c := pp.channel(f.Mapping(channelKeys()...))
		s.Channel = &c
	}
	if f := m.Field("reverse_channel"); f.Present() {
		c := pp.channel(f.Mapping(channelKeys()...))
		s.Reverse = &c
	}
	if v.IsMapping() && !m.Field("rate").Present() && s.Channel == nil && s.Reverse == nil {
		v.Problem("expected rate, channel or both")
	}
	return s, source(m.Field("source"))
}

func rate(v yamldoc.Value) float64 {
	r := v.BitsPerSecond(1)
	if r < 1 || r > maxRate {
		v.Problem("expected a rate from 1 bit/s to 100 Gbit/s, found %q", v.String(""))
		return 1
	}
	return r
}

func delay(v yamldoc.Value) time.Duration {
	d := v.Duration(0)
	if d > maxDelay {
		v.Problem("expected at most %s, found %s", maxDelay, d)
		return maxDelay
	}
	return d
}

func bounded(v yamldoc.Value, lo, hi int64) int {
	n := v.Bytes(lo)
	if n < lo || n > hi {
		v.Problem("expected a size from %d B to %d B, found %q", lo, hi, v.String(""))
		return int(lo)
	}
	return int(n)
}

package measure

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
)

// Range is what one threshold can be. Numbers are in the unit of its field of [Thresholds].
type Range struct {
	Key, Label      string // in files; for people
	Lowest, Highest float64
	Unit            string  // that people read it in
	Scale           float64 // one of Unit in the unit of the field
	of              func(*Thresholds) *float64
	read            func(Range, yamldoc.Value) float64
}

// Ranges are those of all thresholds, in the order of [Thresholds].
var Ranges = []Range{
	{"voice_mos", "Voice: quality each way, at least", 1, 4.41, "MOS", 1, func(t *Thresholds) *float64 { return &t.VoiceMOS }, readNumber},
	{"voice_delay", "Voice: one-way delay of 95 %, at most", 1, 60_000, "ms", 1, func(t *Thresholds) *float64 { return &t.VoiceDelayMS }, readMilliseconds},
	{"chat_loss", "Chat and positions: loss each way, at most", 0, 1, "%", 0.01, func(t *Thresholds) *float64 { return &t.ChatLoss }, readShare},
	{"chat_delay", "Chat and positions: one-way delay of 95 %, at most", 1, 3_600_000, "ms", 1, func(t *Thresholds) *float64 { return &t.ChatDelayMS }, readMilliseconds},
	{"picture", "Pictures: size of one", 1, 1 << 40, "KiB", 1 << 10, func(t *Thresholds) *float64 { return &t.PictureBytes }, readBytes},
	{"picture_time", "Pictures: time of one, at most", 0.1, 86_400, "s", 1, func(t *Thresholds) *float64 { return &t.PictureSeconds }, readSeconds},
	{"file", "Files: size of one", 1, 1 << 40, "MiB", 1 << 20, func(t *Thresholds) *float64 { return &t.FileBytes }, readBytes},
	{"file_time", "Files: time of one, at most", 0.1, 86_400, "s", 1, func(t *Thresholds) *float64 { return &t.FileSeconds }, readSeconds},
}

// Default is the value unless another is given.
func (r Range) Default() float64 { t := Defaults; return *r.of(&t) }

func (r Range) holds(x float64) bool { return x >= r.Lowest && x <= r.Highest }

// say is a value with its unit.
func (r Range) say(x float64) string {
	if strings.HasSuffix(r.Unit, "iB") && x == float64(int64(x)) {
		return unit.FormatBytes(int64(x))
	}
	return strconv.FormatFloat(x/r.Scale, 'g', 12, 64) + " " + r.Unit
}

// Bounds are the lowest and the highest value, for people.
func (r Range) Bounds() string { return r.say(r.Lowest) + " to " + r.say(r.Highest) }

// Check reports what is wrong with thresholds; nil: nothing.
func (t Thresholds) Check() error {
	for _, r := range Ranges {
		if x := *r.of(&t); !r.holds(x) {
			return fmt.Errorf("threshold %s: expected %s, found %s", r.Key, r.Bounds(), r.say(x))
		}
	}
	return nil
}

// Changed are the thresholds that differ from the defaults, a sentence without a full stop
// for each.
func (t Thresholds) Changed() (out []string) {
	for _, r := range Ranges {
		if x := *r.of(&t); x != r.Default() {
			out = append(out, fmt.Sprintf("%s %s (default %s)", r.Label, r.say(x), r.say(r.Default())))
		}
	}
	return out
}

// ReadThresholds reads a file of thresholds: a mapping of keys of [Ranges], each with its
// unit. It returns the values that are given, in the units of [Thresholds]; the error is
// [yamldoc.Problems].
func ReadThresholds(file string, text []byte) (map[string]float64, error) {
	d := yamldoc.Parse(file, text)
	var keys []string
	for _, r := range Ranges {
		keys = append(keys, r.Key)
	}
	m, out := d.Root().Mapping(keys...), map[string]float64{}
	for _, r := range Ranges {
		v := m.Field(r.Key)
		if !v.Given() {
			continue
		}
		x := r.read(r, v.Required())
		if v.OK() && !r.holds(x) {
			v.Problem("expected %s, found %s", r.Bounds(), r.say(x))
		}
		out[r.Key] = x
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

func readNumber(r Range, v yamldoc.Value) float64 { return v.Float(r.Default(), r.Lowest, r.Highest) }

func readMilliseconds(_ Range, v yamldoc.Value) float64 {
	return float64(v.Duration(0)) / float64(time.Millisecond)
}

func readSeconds(_ Range, v yamldoc.Value) float64 { return v.Duration(0).Seconds() }

func readBytes(_ Range, v yamldoc.Value) float64 { return float64(v.Bytes(0)) }

// readShare reads a number in percent, as plans have shares: "5 %".
func readShare(_ Range, v yamldoc.Value) float64 {
	s := v.String("")
	if !v.OK() {
		return 0
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil {
		v.Problem(`expected a share such as "5 %%", found %q`, s)
	}
	return x / 100
}

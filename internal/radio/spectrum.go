package radio

import (
	"fmt"
	"strconv"
)

// Band is the part of the spectrum that a radio uses, in hertz.
type Band struct{ LowHz, HighHz float64 }

// hertz are the units of frequencies.
var hertz = map[string]float64{"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}

// Band is what the radio uses by its parameters "frequency" (the centre) and
// "channel_bandwidth"; false: one of them is not known.
func (p *Profile) Band() (Band, bool) {
	if p == nil {
		return Band{}, false
	}
	f, known := p.ParameterOf("frequency")
	w, also := p.ParameterOf("channel_bandwidth")
	if !known || !also || hertz[f.Unit] == 0 || hertz[w.Unit] == 0 {
		return Band{}, false
	}
	centre, half := f.Value*hertz[f.Unit], w.Value*hertz[w.Unit]/2
	return Band{centre - half, centre + half}, true
}

// Overlaps reports whether two radios would transmit on the same frequencies. Bands that
// only touch do not.
func (b Band) Overlaps(o Band) bool { return b.LowHz < o.HighHz && o.LowHz < b.HighHz }

func (b Band) String() string {
	mega := func(hz float64) string { return strconv.FormatFloat(hz/1e6, 'f', -1, 64) }
	return fmt.Sprintf("%s to %s MHz", mega(b.LowHz), mega(b.HighHz))
}

// MayCollide reports whether two radios can interfere with each other, and why. Where the
// band of one is not known, it is true.
func MayCollide(a, b *Profile) (bool, string) {
	x, known := a.Band()
	y, also := b.Band()
	switch {
	case a != nil && b != nil && a.Name == b.Name:
		if !known {
			return true, "both are radio " + a.Name + ", whose frequency or channel width is not known"
		}
		return true, "both are radio " + a.Name + ", on one frequency"
	case !known:
		return true, "the frequency or channel width of radio " + nameOf(a) + " is not known"
	case !also:
		return true, "the frequency or channel width of radio " + nameOf(b) + " is not known"
	case x.Overlaps(y):
		return true, fmt.Sprintf("radio %s fills %s and radio %s %s", a.Name, x, b.Name, y)
	}
	return false, ""
}

func nameOf(p *Profile) string {
	if p == nil {
		return "of no profile"
	}
	return p.Name
}

package radio

import (
	"strings"
	"testing"
)

func TestMayCollide(t *testing.T) {
	on := func(name, frequency, width string) *Profile {
		p, err := ParseProfile(name, []byte("name: "+name+"\ntitle: T\nmanufacturer: M\nmodel: m\nwaveform: w\nfigures:\n  - {name: frequency, value: "+
			frequency+", source: s"+unitOf(frequency)+"}\n  - {name: channel_bandwidth, value: "+width+", source: s"+unitOf(width)+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := on("a", "402.5 MHz", "5 MHz")
	for _, c := range []struct {
		b    *Profile
		want bool
		why  string
	}{
		{on("a", "402.5 MHz", "5 MHz"), true, "both are radio a"},
		{on("b", "407.5 MHz", "5 MHz"), false, ""}, // the bands touch
		{on("b", "407.4 MHz", "5 MHz"), true, "radio a fills 400 to 405 MHz and radio b 404.9 to 409.9 MHz"},
		{on("b", "0.403 GHz", "25 kHz"), true, "402.9875 to 403.0125 MHz"},
		{on("b", "2230 MHz", "20 MHz"), false, ""},
		{on("b", "unknown", "20 MHz"), true, "the frequency or channel width of radio b is not known"},
		{on("b", "2230 MHz", "unknown"), true, "of radio b is not known"},
		{nil, true, "of no profile"},
	} {
		for _, pair := range [][2]*Profile{{a, c.b}, {c.b, a}} {
			got, why := MayCollide(pair[0], pair[1])
			if got != c.want || pair[0] == a && !strings.Contains(why, c.why) {
				t.Errorf("%s: %t %q", nameOf(c.b), got, why)
			}
		}
	}
	for _, c := range []struct{ frequency, width string }{{"unknown", "5 MHz"}, {"402.5 MHz", "unknown"}} {
		p := on("a", c.frequency, c.width)
		want := "both are radio a, whose frequency or channel width is not known"
		if got, why := MayCollide(p, p); !got || why != want {
			t.Errorf("one radio at %s, %s wide: %t %q, expected %q", c.frequency, c.width, got, why, want)
		}
	}
}

func unitOf(value string) string {
	if value == "unknown" {
		return ", unit: MHz"
	}
	return ""
}

package unit

import (
	"math"
	"testing"
	"time"
)

func TestQuantities(t *testing.T) {
	size := func(s string) (float64, error) { n, err := Bytes(s); return float64(n), err }
	for _, c := range []struct {
		parse func(string) (float64, error)
		in    string
		want  float64
	}{
		{size, "256 KiB", 262144},
		{size, "1024KB", 1 << 20},
		{size, " 1.5 KiB ", 1536},
		{size, "0 B", 0},
		{size, "1 GiB", 1 << 30},
		{BitsPerSecond, "2 Mbit/s", 2e6},
		{BitsPerSecond, "16kbit/s", 16e3},
		{BitsPerSecond, "-0 bit/s", 0},
		{Metres, "673.1 ft", 205.16088},
		{Metres, "1.5 km", 1500},
	} {
		got, err := c.parse(c.in)
		if err != nil || math.Abs(got-c.want) > 1e-9*c.want || math.Signbit(got) {
			t.Errorf("%q: got %v and error %v, want %v", c.in, got, err, c.want)
		}
	}
}

func TestQuantitiesRefused(t *testing.T) {
	size := func(s string) (float64, error) { n, err := Bytes(s); return float64(n), err }
	for _, c := range []struct {
		parse func(string) (float64, error)
		in    string
	}{
		{size, "256"}, {size, ""}, {size, "KiB"}, {size, "-1 B"}, {size, "0.5 B"}, {size, "1e300 GiB"}, {size, "1 kib"}, {size, "NaN B"},
		{BitsPerSecond, "2 MB"}, {BitsPerSecond, "Inf bit/s"}, {BitsPerSecond, "1e308 Gbit/s"}, {BitsPerSecond, "1 2 bit/s"},
		{Metres, "3 feet"}, {Metres, "1e400 m"},
	} {
		if got, err := c.parse(c.in); err == nil {
			t.Errorf("%q was taken as %v", c.in, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1536 B", 256 << 10: "256 KiB", 2 << 20: "2 MiB", 3 << 30: "3 GiB", -5: "-5 B"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for bps, want := range map[float64]string{0: "0 bit/s", 999: "999 bit/s", 16e3: "16 kbit/s", 2.147e6: "2.147 Mbit/s", 1e9: "1 Gbit/s"} {
		if got := FormatRate(bps); got != want {
			t.Errorf("%g: %q, want %q", bps, got, want)
		}
	}
}

// FuzzQuantity: whatever is read is finite and not negative, and a size that
// is written out reads back the same.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"256 KiB", "2 Mbit/s", "673.1 ft", "-0 m", "1e308 Gbit/s", "", " ", "B", "9007199254740993 B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) (float64, error){BitsPerSecond, Metres} {
			if v, err := parse(s); err == nil && (v < 0 || math.IsInf(v, 0) || math.IsNaN(v)) {
				t.Errorf("%q was read as %v", s, v)
			}
		}
		n, err := Bytes(s)
		if err != nil {
			return
		}
		if n < 0 || n > 1<<53 {
			t.Fatalf("%q was read as %d bytes", s, n)
		}
		if back, err := Bytes(FormatBytes(n)); err != nil || back != n {
			t.Errorf("%q: %d bytes are written %q and read back as %d, %v", s, n, FormatBytes(n), back, err)
		}
	})
}

func TestFormatPayload(t *testing.T) {
	for n, want := range map[int64]string{0: "for a set time", 1: "1 B", 256 << 10: "256 KiB"} {
		if got := FormatPayload(n); got != want {
			t.Errorf("%d is %q, expected %q", n, got, want)
		}
	}
}

func TestMoments(t *testing.T) {
	at := time.Date(2026, 5, 1, 0, 30, 5, 999, time.FixedZone("CEST", 2*3600))
	if got := Moment(at) + ", " + Clock(at); got != "2026-04-30 22:30:05 UTC, 22:30:05 UTC" {
		t.Error(got)
	}
}

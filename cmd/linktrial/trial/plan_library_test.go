package trial

import (
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	zone := time.FixedZone("CEST", 2*3600)
	now := time.Date(2026, 5, 31, 9, 15, 30, 0, zone)
	for text, want := range map[string]time.Time{
		"2026-06-01T08:30:00Z":      time.Date(2026, 6, 1, 8, 30, 0, 0, time.UTC),
		"2026-06-01T08:30:00+02:00": time.Date(2026, 6, 1, 8, 30, 0, 0, zone),
		"2026-06-01 08:30":          time.Date(2026, 6, 1, 8, 30, 0, 0, time.UTC),
		"2026-06-01T08:30":          time.Date(2026, 6, 1, 8, 30, 0, 0, time.UTC),
		"2026-06-01 08:30:15":       time.Date(2026, 6, 1, 8, 30, 15, 0, time.UTC),
		"2026-06-01 08:30:15 UTC":   time.Date(2026, 6, 1, 8, 30, 15, 0, time.UTC), // as it is printed
		"07:16":                     time.Date(2026, 5, 31, 7, 16, 0, 0, time.UTC),
		"07:15":                     time.Date(2026, 6, 1, 7, 15, 0, 0, time.UTC), // it has passed today
		"+90m":                      now.Add(90 * time.Minute),
		"+1h30s":                    now.Add(time.Hour + 30*time.Second),
	} {
		got, err := parseWhen(text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, expected %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "25:00", "8", "+", "+-5m", "++5m", "-5m", "2026-13-01 08:30", "+5"} {
		if got, err := parseWhen(text, now); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

func FuzzParseWhen(f *testing.F) {
	for _, s := range []string{"2026-06-01T08:30:00Z", "08:30", "+90m", "+-1h", "2026-06-01 08:30"} {
		f.Add(s)
	}
	now := time.Date(2026, 5, 31, 9, 15, 30, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseWhen(s, now)
		if err != nil && !at.IsZero() {
			t.Errorf("%q: an error and %v", s, at)
		}
		if err == nil && s[0] == '+' && at.Before(now) {
			t.Errorf("%q is before now: %v", s, at)
		}
	})
}

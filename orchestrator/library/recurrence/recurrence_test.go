package recurrence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return out
}

func TestStarts(t *testing.T) {
	for _, c := range []struct {
		name, rule, now string
		want            []string
	}{
		{"a time of day has the zone's offset, in summer and in winter", "daily 08:30 Europe/Berlin", "2026-10-24T00:00:00Z",
			[]string{"2026-10-24T06:30:00Z", "2026-10-25T07:30:00Z", "2026-10-26T07:30:00Z"}},
		{"a start exactly now is not the next one", "daily 06:30", "2026-05-01T06:30:00Z",
			[]string{"2026-05-02T06:30:00Z"}},
		{"a start in the skipped hour happens at the first moment after", "daily 02:30 Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"the first minute of the skipped hour, too", "daily 02:00 Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"after the skipped hour the clock counts", "daily 03:00 Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		{"a doubled hour starts once, the first time", "daily 02:30 Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"also seen from between the two", "daily 02:30 Europe/Berlin", "2026-10-25T01:00:00Z",
			[]string{"2026-10-26T01:30:00Z"}},
		{"west of Greenwich, skipped", "daily 02:30 America/New_York", "2026-03-08T00:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"west of Greenwich, doubled", "daily 01:30 America/New_York", "2026-11-01T00:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"a change of half an hour", "daily 02:15 Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"an hour that is skipped at midnight", "daily 00:30 Asia/Beirut", "2026-03-28T12:00:00Z",
			[]string{"2026-03-28T22:00:00Z", "2026-03-29T21:30:00Z"}},
		{"an hour that is skipped before midnight starts on the next day", "daily 23:30 America/Nuuk", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"weekdays, over a weekend", "weekdays 08:30 Europe/Berlin", "2026-05-01T12:00:00Z",
			[]string{"2026-05-04T06:30:00Z", "2026-05-05T06:30:00Z"}},
		{"days of the week are the zone's", "mon 01:00 Asia/Tokyo", "2026-05-01T00:00:00Z",
			[]string{"2026-05-03T16:00:00Z", "2026-05-10T16:00:00Z"}},
		{"one day a week, whose time has passed today", "fri 08:00", "2026-05-01T08:00:01Z",
			[]string{"2026-05-08T08:00:00Z"}},
		{"the last day has a start", "mon,thu 20:00 until 2026-05-07", "2026-05-01T00:00:00Z",
			[]string{"2026-05-04T20:00:00Z", "2026-05-07T20:00:00Z"}},
		{"the last day is the zone's", "daily 01:00 Asia/Tokyo until 2026-05-02", "2026-05-01T00:00:00Z",
			[]string{"2026-05-01T16:00:00Z"}},
		{"an interval counts from when it was made", "every 6h", "2026-05-01T08:30:59Z",
			[]string{"2026-05-01T14:30:00Z", "2026-05-01T20:30:00Z", "2026-05-02T02:30:00Z"}},
		{"an interval is elapsed time, whatever clocks do", "every 12h from 2026-10-24 12:00 Europe/Berlin", "2026-10-24T00:00:00Z",
			[]string{"2026-10-24T10:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T10:00:00Z"}},
		{"an interval ends", "every 2d from 2026-05-01 08:00 until 2026-05-04", "2026-05-01T08:00:00Z",
			[]string{"2026-05-03T08:00:00Z"}},
		{"an end in the past", "daily 08:00 until 2026-04-30", "2026-05-01T00:00:00Z", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := at(t, c.now)
			r, err := Parse(c.rule, now)
			require.NoError(t, err)
			require.True(t, Is(c.rule))
			var got []string
			for _, s := range r.Starts(now, max(len(c.want), 1)) {
				got = append(got, s.Format(time.RFC3339))
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestString(t *testing.T) {
	now := at(t, "2026-05-01T08:30:59Z")
	for text, want := range map[string]string{
		"daily 08:30":               "daily 08:30 UTC",
		" daily  8:30 Asia/Tokyo ":  "daily 08:30 Asia/Tokyo",
		"fri,mon,wed,tue,thu 08:30": "weekdays 08:30 UTC",
		"sun,mon,sun 23:59":         "mon,sun 23:59 UTC",
		"every 90m":                 "every 90m from 2026-05-01 08:30 UTC",
		"every 48h":                 "every 2d from 2026-05-01 08:30 UTC",
		"every 6h until 2026-12-31": "every 6h from 2026-05-01 08:30 UTC until 2026-12-31",
		"every 6h from 2026-03-29 02:30 Europe/Berlin": "every 6h from 2026-03-29 03:00 Europe/Berlin",
	} {
		r, err := Parse(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, r.String())
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "empty rule",
		"hourly":                       `"hourly", expected a rule like`,
		"08:30":                        "expected a rule like",
		"mon, thu 08:30":               `"mon,", expected a rule like`,
		"daily":                        "no time of day",
		"daily 24:00":                  `time of day "24:00"`,
		"daily 08:30 Europe/Nowhere":   `zone "Europe/Nowhere"`,
		"daily 08:30 Local":            `zone "Local"`,
		"daily 08:30 ../etc/passwd":    `zone "../etc/passwd"`,
		"daily 08:30 UTC until":        `nothing after "until"`,
		"daily 08:30 until 31.12.":     `day "31.12."`,
		"daily 08:30 until 2026-02-30": `day "2026-02-30"`,
		"daily 08:30 until 9999-12-31": `day "9999-12-31"`,
		"daily 08:30 UTC 3 times":      `"3 times" after the rule`,
		"every":                        "no interval",
		"every 4m":                     `interval "4m", expected 5m to 366d`,
		"every 367d":                   "expected 5m to 366d",
		"every 1000000000000000000h":   "expected 5m to 366d",
		"every h":                      "expected 5m to 366d",
		"every -6h":                    "expected 5m to 366d",
		"every 6h from":                `nothing after "from"`,
		"every 6h from 08:30 UTC":      `moment "08:30 UTC"`,
		string(make([]byte, 201)):      "rule of 201 bytes",
	} {
		_, err := Parse(text, time.Unix(0, 0))
		require.ErrorContains(t, err, want, text)
	}
	require.False(t, Is("08:30"))
	require.False(t, Is("2026-05-01 08:30"))
	require.False(t, Is("+90m"))
}

// What can be read is written as a rule with the same starts; starts are later than
// the moment that was asked about, in order, and at the time of day that the rule
// has unless the clocks skip it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"daily 08:30 Europe/Berlin", "weekdays 2:30 America/New_York until 2026-12-31", "mon,sun 00:00", "every 6h", "every 90m from 2026-03-29 02:30 Europe/Berlin until 2027-01-01", "daily 02:15 Australia/Lord_Howe"} {
		f.Add(text, int64(1_774_731_600))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		now := time.Unix(unix&(1<<32-1), 0) // 1970 to 2106
		r, err := Parse(text, now)
		if err != nil {
			return
		}
		again, err := Parse(r.String(), now.Add(time.Hour))
		require.NoError(t, err, r.String())
		require.Equal(t, r.String(), again.String())
		last := now
		for i, s := range r.Starts(now, 5) {
			require.True(t, s.After(last), "%s is not after %s", s, last)
			if i > 0 && r.every > 0 {
				require.Equal(t, r.every, s.Sub(last))
			}
			last = s
			if next, ok := again.Next(s.Add(-time.Second)); !ok || !next.Equal(s) {
				t.Fatalf("%q has a start at %s, and written as %q at %s", text, s, again, next)
			}
		}
	})
}

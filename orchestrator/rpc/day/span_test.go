package day

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpanOf(t *testing.T) {
	now := time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct{ date, zone, wantDate, from, to string }{
		"today, UTC":                  {"", "", "2026-11-30", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		"today, east":                 {"", "Europe/Berlin", "2026-12-01", "2026-11-30T23:00:00Z", "2026-12-01T23:00:00Z"},
		"today, west":                 {"", "America/New_York", "2026-11-30", "2026-11-30T05:00:00Z", "2026-12-01T05:00:00Z"},
		"23 hours":                    {"2026-03-29", "Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		"25 hours":                    {"2026-10-25", "Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		"midnight is skipped":         {"2024-09-08", "America/Santiago", "2024-09-08", "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"},
		"next day's midnight skipped": {"2024-09-07", "America/Santiago", "2024-09-07", "2024-09-07T04:00:00Z", "2024-09-08T04:00:00Z"},
	} {
		got, err := spanOf(c.date, c.zone, now)
		require.NoError(t, err, name)
		require.Equal(t, []string{c.wantDate, c.from, c.to}, []string{got.date, got.from.UTC().Format(time.RFC3339), got.to.UTC().Format(time.RFC3339)}, name)
	}
	for _, c := range []struct{ date, zone, want string }{
		{"30.11.2026", "", `date: expected one such as 2026-11-30, found "30.11.2026"`},
		{"2026-02-30", "", `date: expected one such as 2026-11-30, found "2026-02-30"`},
		{"0001-01-01", "", "date: expected one such as"},
		{"2026-12-02", "UTC", "begins after now, which is 2026-11-30 23:30:00 by the orchestrator's clock (UTC)"},
		{"", "Local", `zone: expected UTC or a name of the IANA time zone database such as Europe/Berlin, found "Local"`},
		{"", "Mars/Base", `found "Mars/Base"`},
		{"", "../../etc/passwd", "zone: expected UTC"},
	} {
		_, err := spanOf(c.date, c.zone, now)
		require.ErrorContains(t, err, c.want)
	}
}

func TestProgress(t *testing.T) {
	now := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	p := newProgress(func() time.Time { return now })
	require.Zero(t, p.message().Done, "it is not known how much there is")
	p.plan(200)
	p.begin(100, "first")
	p.tell(0.5)
	now = now.Add(2 * time.Second)
	m := p.message()
	require.Equal(t, "first", m.Doing)
	require.InDelta(t, 0.25, m.Done, 1e-12)
	require.Zero(t, m.SecondsLeft, "too early to estimate")
	p.begin(60, "second")
	now = now.Add(8 * time.Second)
	m = p.message()
	require.InDelta(t, 0.5, m.Done, 1e-12)
	require.InDelta(t, 10, m.SecondsLeft, 1e-9, "half is done in 10 s")
	p.tell(7)
	require.InDelta(t, 0.8, p.message().Done, 1e-12, "a part has no more than all of itself")
	p.begin(1000, "more than was planned")
	p.tell(1)
	require.InDelta(t, 1, p.message().Done, 1e-12)
	require.Zero(t, p.message().SecondsLeft)
}

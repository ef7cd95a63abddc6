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

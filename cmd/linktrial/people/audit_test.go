package people

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseSince(t *testing.T) {
	zone := time.FixedZone("CEST", 2*3600)
	now := time.Date(2026, 5, 31, 9, 15, 30, 0, zone)
	for text, want := range map[string]time.Time{
		"24h":                  now.Add(-24 * time.Hour),
		"7d":                   now.AddDate(0, 0, -7),
		"2026-05-01":           time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		"2026-05-01 08:30":     time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC),
		"2026-05-01T08:30:15":  time.Date(2026, 5, 1, 8, 30, 15, 0, time.UTC),
		"2026-05-01T08:30:00Z": time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC),
	} {
		got, err := parseSince(text, now)
		require.NoError(t, err, text)
		require.True(t, got.Equal(want), "%q: %v", text, got)
	}
	for _, text := range []string{"", "yesterday", "-5h", "2026-13-01", "08:30"} {
		got, err := parseSince(text, now)
		require.Error(t, err, "%q is taken as %v", text, got)
	}
}

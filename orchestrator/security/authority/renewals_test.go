package authority

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only the certificates that a node got within the bound's time count, and those of
// other nodes do not.
func TestCertificatesIssuedSince(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r := &records{bySerial: map[string]*record{}}
	life := 30 * 24 * time.Hour
	for i, issued := range []time.Time{now, now.Add(-time.Hour), now.Add(-23 * time.Hour), now.Add(-25 * time.Hour)} {
		r.add(fmt.Sprint(i), &record{node: "client", notAfter: issued.Add(life)})
	}
	r.add("other", &record{node: "server", notAfter: now.Add(life)})
	require.Equal(t, 3, r.issuedSince("client", now.Add(life-renewalsWithin)))
}

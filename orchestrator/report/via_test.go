package report

import (
	"testing"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// What a treatment passes stands beside its values, before what they leave out.
func TestRemarksSayWhatIsPassed(t *testing.T) {
	tr := &runsheet.Treatment{Via: []runsheet.Via{{At: radio.RoleClient, Protocol: "split", DriverVersion: "1.0.0"}, {At: radio.RoleRelay, Protocol: "split"}}}
	for _, c := range []struct {
		row  Row
		want string
	}{
		{Row{}, ""},
		{Row{Via: passes(tr)}, "passes split 1.0.0 at the client, split at the relay"},
		{Row{Via: passes(tr), Failed: 1, Trials: 2}, "passes split 1.0.0 at the client, split at the relay; 1 of 2 trials failed"},
		{Row{Failed: 1, Trials: 2}, "1 of 2 trials failed"},
	} {
		if got := c.row.Remarks(); got != c.want {
			t.Errorf("%q, expected %q", got, c.want)
		}
	}
}

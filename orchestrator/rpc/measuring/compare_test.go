package measuring

import (
	"slices"
	"testing"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/measure"
)

// What the nodes cannot run is left out with its reason, beside what was left out before, and
// the caller's comparison stays as it was.
func TestWithoutMissing(t *testing.T) {
	all, err := measure.ProtocolsOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := measure.Comparison{Protocols: all, LeftOut: append(make([]string, 0, 8), "Without UDT: x.")}
	got := withoutMissing(c, []runsheet.Treatment{{Name: "tcp-cubic"}, {Name: "quic", Missing: "alpha has no driver quic."}, {Name: "haul"}})
	var names []string
	for _, p := range got.Protocols {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"tcp-cubic", "haul"}) || !slices.Equal(got.LeftOut, []string{"Without UDT: x.", "Without QUIC: alpha has no driver quic."}) {
		t.Errorf("%v, left out %q", names, got.LeftOut)
	}
	if len(c.Protocols) != 3 || len(c.LeftOut) != 1 {
		t.Errorf("the caller's comparison was changed: %+v", c)
	}
	if same := withoutMissing(c, nil); len(same.Protocols) != 3 {
		t.Errorf("%v of nodes that nobody knows", same.Protocols)
	}
}

package radio

import "testing"

func TestAddressProblem(t *testing.T) {
	for address, bad := range map[string]bool{
		"": false, "10.77.0.1": false, "fd00:77::1": false, "2001:db8::1": false, "169.254.1.1": false,
		"fe80::1": true, "fe80::77:1%eth2.4005": true, "fd00::1%radio0": true, "radio": true,
	} {
		if got := AddressProblem("client", address); (got != "") != bad {
			t.Errorf("%q: %q", address, got)
		}
	}
}

func TestFamilyProblem(t *testing.T) {
	for _, c := range []struct {
		a, b string
		bad  bool
	}{
		{"10.77.0.1", "10.77.0.3", false}, {"fd00::1", "fd00::3", false}, {"", "fd00::3", false}, {"::ffff:10.77.0.1", "10.77.0.3", false},
		{"fd00::1", "10.77.0.3", true}, {"10.77.0.1", "fd00::3", true},
	} {
		if got := FamilyProblem("client", c.a, "server", c.b); (got != "") != c.bad {
			t.Errorf("%q and %q: %q", c.a, c.b, got)
		}
	}
}

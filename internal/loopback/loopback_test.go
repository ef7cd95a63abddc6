package loopback

import "testing"

func TestOnly(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.8.9.1": true, "::1": true, "localhost": true,
		"": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "fe80::1%lo": false, "no-such-host.invalid": false,
	} {
		if Only(t.Context(), host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

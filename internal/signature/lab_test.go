package signature

import (
	"crypto/ed25519"
	"strings"
	"testing"
)

func TestLab(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := LabStatement{LabRun, "r-1", "hash", "client", "10.77.0.1"}
	good := SignLab(private, s)
	if k, err := VerifyLab(s, good); err != nil || k != PublicOf(private) {
		t.Fatalf("%v, %v", k, err)
	}
	for name, c := range map[string]struct {
		s    LabStatement
		p    LabProof
		want string
	}{
		"none":            {s, LabProof{}, "no lab vouches"},
		"another kind":    {LabStatement{LabNode, "r-1", "hash", "client", "10.77.0.1"}, good, "not over this node"},
		"another run":     {LabStatement{LabRun, "r-2", "hash", "client", "10.77.0.1"}, good, "not over this run"},
		"another sheet":   {LabStatement{LabRun, "r-1", "hush", "client", "10.77.0.1"}, good, "not over this run"},
		"another role":    {LabStatement{LabRun, "r-1", "hash", "server", "10.77.0.1"}, good, "not over this run"},
		"another address": {LabStatement{LabRun, "r-1", "hash", "client", "10.77.0.2"}, good, "not over this run"},
		"moved border":    {LabStatement{LabRun, "r-1hash", "", "client", "10.77.0.1"}, good, "not over this run"},
		"another key":     {s, LabProof{PublicOf(other).String(), good.Signature}, "not over this run"},
		"no key":          {s, LabProof{"", good.Signature}, "the key of its lab"},
		"short":           {s, LabProof{good.Key, good.Signature[:63]}, "not over this run"},
	} {
		if _, err := VerifyLab(c.s, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

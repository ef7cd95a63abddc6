package agent

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
	"linktrial/internal/signature"
)

// vouching answers on a control socket as an emulator that signs with a key, until the
// test ends.
func vouching(t *testing.T, socket string, key ed25519.PrivateKey) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(c); lines.Scan(); {
				var q radiocontrol.Request
				var a radiocontrol.Reply
				if err := json.Unmarshal(lines.Bytes(), &q); err != nil || q.Vouch == nil || q.Vouch.Interface == 0 || q.Vouch.Namespace == "" {
					a.Error = "not a complete request to vouch"
				} else {
					p := signature.SignLab(key, q.Vouch.Statement)
					a.Proof = &p
				}
				if json.NewEncoder(c).Encode(&a) != nil {
					break
				}
			}
			_ = c.Close()
		}
	})
}

// A node is in a lab where the lab's emulator says so. Without that it registers with the
// reason, and a run waits.
func TestLab(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "emulator.sock")
	n := &node{incarnation: "folder/start", cfg: Config{Name: "client-1", Role: radio.RoleClient, RadioAddress: "10.77.0.1", Device: "lo", RadioControl: socket,
		Place: journal.PlaceEmulated, Logger: slog.New(slog.DiscardHandler)}}
	x := &execution{run: &run{node: n, id: "r-1", hash: "hash"}}
	register := func() *linktrialv1.RegisterRequest {
		r := new(linktrialv1.RegisterRequest)
		n.addLab(t.Context(), r)
		return r
	}
	refused := func(want string) {
		t.Helper()
		r := register()
		if !r.Emulated || r.LabKey != "" || len(r.LabSignature) != 0 || !strings.Contains(r.LabProblem, want) || n.labFault != r.LabProblem {
			t.Fatalf("%+v, fault %q, want %q", r, n.labFault, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*labRetry)
		defer cancel()
		if p, err := x.labProof(ctx); p != nil || err == nil {
			t.Fatalf("proof %+v, %v", p, err)
		}
	}
	refused("public key of the lab")
	key, err := client.NewLabKey(socket)
	if err != nil {
		t.Fatal(err)
	}
	refused("connect to the emulator")
	vouching(t, socket, key)
	r := register()
	if _, err := signature.VerifyLab(n.nodeStatement(), signature.LabProof{Key: r.LabKey, Signature: r.LabSignature}); err != nil || r.LabProblem != "" || n.labFault != "" || !r.Emulated {
		t.Fatalf("%+v, fault %q: %v", r, n.labFault, err)
	}
	p, err := x.labProof(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if k, err := p.Verify("r-1", "hash"); err != nil || k != signature.PublicOf(key) {
		t.Errorf("key %s: %v", k, err)
	}
	if _, err := p.Verify("r-2", "hash"); err == nil {
		t.Error("the proof is of any run")
	}
	// Another emulator at the same place.
	if _, err := client.NewLabKey(socket); err != nil {
		t.Fatal(err)
	}
	refused("signs for lab")
	// A node with a real radio asks nobody.
	n.cfg.Place = journal.PlaceUnnamed
	if r := register(); r.Emulated || r.LabProblem != "" {
		t.Errorf("%+v", r)
	}
}

// What an agent was started with decides what it claims; only a control socket claims an
// emulated radio.
func TestPlaces(t *testing.T) {
	for want, c := range map[string]Config{
		journal.PlaceReal:     {Radio: "mpu4"},
		journal.PlaceUnnamed:  {},
		journal.PlaceEmulated: {RadioControl: filepath.Join(t.TempDir(), "emulator.sock")},
		journal.PlaceVirtual:  {RadioControl: filepath.Join(t.TempDir(), "emulator.sock"), Place: journal.PlaceVirtual},
	} {
		c.Name, c.Role, c.StateDir, c.DriversDir = "n", radio.RoleClient, t.TempDir(), t.TempDir()
		if err := c.complete(); err != nil || c.Place != want {
			t.Errorf("%q, %v, want %q", c.Place, err, want)
		}
	}
}

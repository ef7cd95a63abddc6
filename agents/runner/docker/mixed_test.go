package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/agents/runner"
	"linktrial/agents/runner/docker"
	"linktrial/agents/trust"
	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// drivers writes a folder of drivers: plain is a program, confined only an image's
// manifest, absent one whose image the engine does not have.
func drivers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, mode os.FileMode, b []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain/driver.yaml", 0o644, plainMF)
	write("plain/plain", 0o755, plain)
	for _, name := range []string{"confined", "absent"} {
		write(name+"/driver.yaml", 0o644, manifest(name, "image: "+name+":1\n").Data)
	}
	return dir
}

func TestMixed(t *testing.T) {
	importImage(t, "confined:1", "confined", manifest("confined", ""), program(confined))
	e, err := docker.NewMixed(runner.New(runner.Config{Dir: drivers(t)}), docker.Config{Agent: "either", Host: engine.Host, Holder: []string{holder}})
	if err != nil {
		t.Fatal(err)
	}
	states, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range states {
		kind, _, _ := strings.Cut(s.Driver.Digest, ":")
		got = append(got, s.Driver.Name+" "+kind)
		if s.Runs() != (s.Driver.Name != "absent") {
			t.Errorf("%+v", s.Driver)
		}
		if s.Driver.Name == "absent" && !strings.Contains(s.Driver.Unsupported, "absent:1") {
			t.Errorf("a driver without its image: %q", s.Driver.Unsupported)
		}
	}
	if want := []string{"absent ", "confined image", "plain sha256"}; !slices.Equal(got, want) {
		t.Fatalf("drivers %q, expected %q", got, want)
	}
	for _, c := range []struct{ protocol, log string }{{"confined", "write: open /mark: read-only file system"}, {"plain", "driver starts as server"}} {
		p, err := e.Start(t.Context(), c.protocol, parameters(contract.RoleServer, freePort(t)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if have, container := containers(t, "either"), c.protocol == "confined"; slices.ContainsFunc(have, func(s string) bool { return strings.HasPrefix(s, "server") }) != container {
			t.Errorf("%s: containers %q", c.protocol, have)
		}
		events(t, p, func(e *contract.Event) {
			if e.Event == contract.KindReady {
				p.Terminate()
			}
		})
		await(t, p)
		if !strings.Contains(p.Log(), c.log) {
			t.Errorf("%s: no %q in %q", c.protocol, c.log, p.Log())
		}
	}
	e.Prepare(t.Context(), "confined", "00112233445566778899aabbccddeeff")
	e.Prepare(t.Context(), "plain", "00112233445566778899aabbccddeef0")()
	if have := containers(t, "either"); !slices.Equal(have, []string{"client running", "network running"}) {
		t.Errorf("containers %q", have)
	}
	if _, err := e.Start(t.Context(), "none", &contract.Parameters{}, nil); !errors.Is(err, executor.ErrNoDriver) {
		t.Errorf("a protocol that nothing carries: %v", err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left := containers(t, "either"); len(left) > 0 {
		t.Errorf("containers left: %q", left)
	}
}

// Where no engine answers, programs run all the same.
func TestMixedWithoutEngine(t *testing.T) {
	if engine == nil {
		t.Skip(reason)
	}
	e, err := docker.NewMixed(runner.New(runner.Config{Dir: drivers(t)}), docker.Config{Agent: "alone", Host: "unix://" + filepath.Join(t.TempDir(), "none.sock")})
	if err != nil {
		t.Fatal(err)
	}
	states, err := e.List(t.Context())
	if err != nil || len(states) != 3 {
		t.Fatalf("%d drivers, %v", len(states), err)
	}
	for _, s := range states {
		if s.Runs() != (s.Driver.Name == "plain") || s.Driver.Name == "confined" && !strings.Contains(s.Driver.Unsupported, "does not answer") {
			t.Errorf("%+v", s.Driver)
		}
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestMixedRefusesImages(t *testing.T) {
	_, err := docker.NewMixed(runner.New(runner.Config{Dir: t.TempDir()}), docker.Config{Images: map[string]string{"udt": "b:1", "tcp": "a:1"}})
	if err == nil || !strings.Contains(err.Error(), "--image tcp=a:1: expected only with --runner docker") {
		t.Errorf("images that would not be used: %v", err)
	}
}

// What a run sheet does not name is not started, and says so.
func TestDigestMismatch(t *testing.T) {
	r := newRunner(t, "mismatch")
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	good, err := r.Digest(t.Context(), "confined")
	if err != nil {
		t.Fatal(err)
	}
	other := "image:sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct{ named, refusal string }{{string(good), ""}, {other, "the run sheet names " + other}} {
		g := &trust.Guard{Runner: r, Drivers: r, Sheet: &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "t", Protocol: "confined", Digests: []string{c.named}}}}}
		p, err := g.Start(t.Context(), "confined", parameters(contract.RoleServer, 1), nil)
		if c.refusal == "" {
			if err != nil {
				t.Fatal(err)
			}
			events(t, p, func(*contract.Event) {})
			await(t, p)
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "refused: driver confined on this node is "+string(good)) || !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("%v, expected %q", err, c.refusal)
		}
		if have := containers(t, "mismatch"); slices.ContainsFunc(have, func(s string) bool { return strings.HasPrefix(s, "server") }) {
			t.Errorf("containers %q", have)
		}
	}
}

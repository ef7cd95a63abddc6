package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest"
)

// install builds the driver into a folder of its own, with the stand-in as its
// gateway, and returns the folder. The driver's tags say whether it takes it.
func install(t *testing.T, tags string, standIn bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scps")
	builds := [][]string{{"build", "-tags", tags, "-o", filepath.Join(dir, "scps"), "."}}
	if standIn {
		builds = append(builds, []string{"build", "-o", filepath.Join(dir, gatewayName), "./standin"})
	}
	for _, args := range builds {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "driver.yaml"), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConformance runs the suite over the stand-in: it shows that namespaces,
// gateway process, encapsulation and connections keep the contract, and nothing of
// SCPS-TP.
func TestConformance(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	protocoltest.Exercise(t, install(t, "standin", true))
}

// ask runs a driver with a document and returns its last event and exit code.
func ask(t *testing.T, dir string, p *contract.Parameters) (*contract.Event, int) {
	t.Helper()
	document, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "scps"))
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(document))
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	e, err := contract.ParseEvent([]byte(lines[len(lines)-1]))
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return e, cmd.ProcessState.ExitCode()
}

// TestWithoutBuild: what is no build of the reference implementation is not
// supported, with the reason; the stand-in is none.
func TestWithoutBuild(t *testing.T) {
	dir := install(t, "", true)
	gateway := filepath.Join(dir, gatewayName)
	query := &contract.Parameters{Contract: contract.Version, Role: contract.RoleQuery, Options: map[string]any{}}
	for _, c := range []struct {
		name, want string
		prepare    func() error
	}{
		{"stand-in", "is the stand-in of Linktrial's own tests", func() error { return nil }},
		{"not executable", "permission denied", func() error { return os.Chmod(gateway, 0o644) }},
		{"silent", "printed nothing", func() error { return os.WriteFile(gateway, []byte("#!/bin/sh\n"), 0o755) }},
		{"hangs", "must print the version", func() error { return os.WriteFile(gateway, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755) }},
		{"none", "no build of the SCPS reference implementation", func() error { return os.Remove(gateway) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			if c.name == "silent" || c.name == "hangs" {
				if err := os.Chmod(gateway, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			e, code := ask(t, dir, query)
			if code != contract.ExitUnsupported || e.Code != contract.CodeUnsupported || !strings.Contains(e.Message, c.want) {
				t.Errorf("exit code %d, %s: %s; expected unsupported with %q", code, e.Code, e.Message, c.want)
			}
		})
	}
}

// TestInfo: the hash of the gateway is in what the driver says of itself, and so
// is that it is a stand-in.
func TestInfo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	e, code := ask(t, install(t, "standin", true), &contract.Parameters{Contract: contract.Version, Role: contract.RoleQuery, Options: map[string]any{}})
	if code != contract.ExitOK || e.Info == nil || len(e.Info.Detail["gateway_sha256"]) != 64 || !strings.HasPrefix(e.Info.Implementation, standInMark) {
		t.Errorf("exit code %d, %+v", code, e)
	}
}

func TestResources(t *testing.T) {
	p := &contract.Parameters{Options: map[string]any{"congestion": "vegas", "rate": int64(64000), "buffer": int64(8192)}}
	got := strings.Split(strings.TrimSpace(string(resources(p))), "\n")
	for _, want := range []string{"AIF_NAME lan1", "AIF_TCPONLY 1", "BIF_NAME wan0", "BIF_CC 2", "BIF_RATE 64000", "BIF_BUF 8192", "BIF_RBUF 8192"} {
		if !slices.Contains(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
	for _, line := range got {
		// The gateway reads names and values into 32 bytes each.
		if f := strings.Fields(line); len(f) != 2 || len(f[0]) > 31 || len(f[1]) > 31 {
			t.Errorf("line %q", line)
		}
	}
}

// FuzzInner: no packet of the other node makes the carrier fail.
func FuzzInner(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 98, 0, 1, 10, 98, 1, 2})
	f.Add([]byte{0x45, 0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		from, to, ok := inner(b)
		if ok && (!from.Is4() || !to.Is4() || len(b) < ipv4Header) {
			t.Errorf("%v, %v of %d bytes", from, to, len(b))
		}
	})
}

package docker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/agents/runner"
	"linktrial/internal/enginetest"
	"linktrial/protocols/contract"
)

// TestEBPFInContainer: the driver of TCP brings congestion controls along also in a
// container, with the capabilities of its manifest; without them it runs, and its
// query says what they take.
func TestEBPFInContainer(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skip("this kernel has no type information: ", err)
	}
	file := filepath.Join(t.TempDir(), "tcp")
	build := exec.Command("go", "build", "-trimpath", "-o", file, "linktrial/protocols/tcp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tcp, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../../../protocols/tcp/driver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const asked = "[CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON]"
	if !strings.Contains(string(manifest), asked) {
		t.Fatalf("the manifest of tcp does not ask for %s", asked)
	}
	r := newRunner(t, "ebpf")
	for _, c := range []struct {
		capabilities string
		there        bool
	}{{asked, true}, {"[CAP_NET_ADMIN]", false}} {
		changed := strings.Replace(string(manifest), asked, c.capabilities, 1)
		t.Run(c.capabilities, func(t *testing.T) {
			importImage(t, "tcp:latest", "tcp", enginetest.File{Path: "driver.yaml", Mode: 0o644, Data: []byte(changed)}, enginetest.File{Path: "tcp", Mode: 0o755, Data: tcp})
			states, err := r.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(states, func(s runner.State) bool { return s.Driver.Name == "tcp" })
			if i < 0 || !states[i].Runs() {
				t.Fatalf("tcp does not run: %+v", states)
			}
			remark := states[i].Remarks()["congestion=radio"]
			if slices.Contains(states[i].Choices["congestion"], "radio") != c.there || strings.HasPrefix(remark, contract.NotSupported) == c.there {
				t.Errorf("choices %v, %q", states[i].Choices["congestion"], remark)
			}
			if !c.there && !strings.Contains(remark, "CAP_BPF and CAP_PERFMON") {
				t.Errorf("%q, expected the capabilities that are missing", remark)
			}
		})
	}
}

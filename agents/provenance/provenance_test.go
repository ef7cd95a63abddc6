package provenance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestGather(t *testing.T) {
	p, err := Gather(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if p.Host == "" || !strings.HasPrefix(p.Kernel, "Linux ") || p.OS == "" {
		t.Errorf("host %q, kernel %q, system %q", p.Host, p.Kernel, p.OS)
	}
	want, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Sysctls["net.ipv4.tcp_congestion_control"]; got != strings.TrimSpace(string(want)) {
		t.Errorf("congestion control %q, expected %q", got, want)
	}
	for _, k := range []string{"net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_rmem"} {
		if p.Sysctls[k] == "" {
			t.Errorf("%s is missing", k)
		}
	}
	// Some settings are there in the machine's own network namespace alone.
	root := t.TempDir()
	for file, value := range map[string]string{"net/core/default_qdisc": "fq_codel\n", "net/core/somaxconn": "4096\n"} {
		path := filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(value), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := sysctls(root); err != nil || len(got) != 1 || got["net.core.default_qdisc"] != "fq_codel" {
		t.Errorf("settings %v, %v", got, err)
	}
	lo := false
	for _, i := range p.Interfaces {
		if i.Name == "lo" {
			lo = i.MTU == 65536 && len(i.Offloads) > 0
		}
	}
	if !lo {
		t.Errorf("the loopback is not as it should be: %+v", p.Interfaces)
	}
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the system call's 20 - nice
	if err != nil || p.Priority.Policy != "other" || p.Priority.Nice != 20-nice {
		t.Errorf("priority %+v, expected other and %d (%v)", p.Priority, 20-nice, err)
	}
	if p.Qdiscs != "" && !json.Valid([]byte(p.Qdiscs)) {
		t.Errorf("qdiscs %q", p.Qdiscs)
	}
	b, err := json.Marshal(p)
	if err != nil || len(b) > 256<<10 {
		t.Errorf("provenance of %d bytes: %v", len(b), err)
	}
}

func TestWeight(t *testing.T) {
	for text, want := range map[string]int{"100\n": 100, "10000\n": 10000, "0\n": 0, "": 0, "idle\n": 0, "10001\n": 0} {
		if got := weight([]byte(text)); got != want {
			t.Errorf("%q: %d, expected %d", text, got, want)
		}
	}
}

func TestNoKeyIsRecorded(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "net/ipv4")
	os.MkdirAll(dir, 0o755)
	os.WriteFile(filepath.Join(dir, "tcp_fastopen_key"), []byte("secret"), 0o644)
	os.WriteFile(filepath.Join(dir, "tcp_sack"), []byte("1\n"), 0o644)
	got, err := sysctls(root)
	if err != nil || len(got) != 1 || got["net.ipv4.tcp_sack"] != "1" {
		t.Errorf("sysctls %v, %v", got, err)
	}
}

// FuzzFieldOf: a value is one line, without the blanks and quotes around it.
func FuzzFieldOf(f *testing.F) {
	f.Add("NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n", "=", "PRETTY_NAME")
	f.Add("processor\t: 0\nmodel name\t: A processor\n", ":", "model name")
	f.Add("a", "", "")
	f.Fuzz(func(t *testing.T, text, sep, key string) {
		v := fieldOf(strings.NewReader(text), sep, key)
		if strings.ContainsRune(v, '\n') || strings.HasPrefix(v, `"`) || strings.HasSuffix(v, `"`) || !strings.Contains(text, v) {
			t.Fatalf("%q", v)
		}
	})
}

package provenance

import (
	"context"
	"encoding/json"
	"os"
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

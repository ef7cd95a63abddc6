package laptops

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/checkout"
	"linktrial/internal/machinetest"
	"linktrial/internal/testkind"
)

var _ = testkind.OfPackage(testkind.RealTime, "boots machines")

// pair is two bare laptops, each with the package as a file.
type pair struct {
	*machinetest.Site
	a, b *machinetest.Machine
}

func newPair(t *testing.T) *pair {
	t.Helper()
	s := machinetest.New(t, false)
	base := s.Base()
	p := &pair{Site: s, a: s.Add(base, "laptop-a"), b: s.Add(base, "laptop-b")}
	deb := build(t, filepath.Join(s.Dir, "package"))
	for _, m := range []*machinetest.Machine{p.a, p.b} {
		m.Options = []string{"--bind-ro=" + deb + ":/media/USB STICK/linktrial.deb"}
		m.Boot(m.Booted)
	}
	return p
}

// build makes the package of what make build has left.
func build(t *testing.T, dir string) string {
	t.Helper()
	source, err := checkout.Root()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "run", "./tools/laptop", "-bin", os.Getenv("LINKTRIAL_BIN"), "-out", dir)
	cmd.Dir = source
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	require.NoError(t, err)
	require.Len(t, debs, 1)
	return debs[0]
}

const install = "dpkg -i '/media/USB STICK/linktrial.deb'"

var joins = regexp.MustCompile(`sudo (linktrial join \S+)`)

// A person installs the package on two laptops, starts one and joins the other; both are
// nodes, also after the power was lost; what is removed leaves nothing.
func TestTwoLaptops(t *testing.T) {
	p := newPair(t)
	began := time.Now()
	for _, m := range []*machinetest.Machine{p.a, p.b} {
		m.On(install)
		require.Equal(t, "disabled\ndisabled\ninactive\ninactive\n", m.On("systemctl is-enabled linktrial-orchestrator linktrial-agent; systemctl is-active linktrial-orchestrator linktrial-agent; true"))
	}
	t.Logf("installed after %s", time.Since(began).Round(100*time.Millisecond))
	said := p.a.On("linktrial start")
	t.Logf("started after %s:\n%s", time.Since(began).Round(100*time.Millisecond), said)
	require.Contains(t, said, "https://"+p.a.Address+":7700")
	join := joins.FindStringSubmatch(said)
	require.NotNil(t, join, said)
	t.Log(p.b.On(join[1]))
	t.Logf("joined after %s", time.Since(began).Round(100*time.Millisecond))
	nodes := p.a.On("linktrial nodes")
	for _, name := range []string{"laptop-a", "laptop-b"} {
		require.Regexp(t, "(?m)^"+name+" .*connected", nodes)
	}

	for _, m := range []*machinetest.Machine{p.a, p.b} {
		m.On("sync")
		m.PowerOff()
	}
	for _, m := range []*machinetest.Machine{p.b, p.a} {
		m.Boot(m.Booted)
	}
	require.Eventually(t, func() bool {
		out, err := p.a.Run(t.Context(), "linktrial nodes")
		return err == nil && strings.Count(out, "connected") == 2
	}, time.Minute, 500*time.Millisecond, "after the power was lost")

	for _, m := range []*machinetest.Machine{p.a, p.b} {
		m.On("dpkg -r linktrial")
		require.Equal(t, "inactive\n", m.On("systemctl is-active linktrial-agent; true"))
		m.On("dpkg -P linktrial")
		require.Empty(t, m.On("ls -d /etc/linktrial /var/lib/linktrial* /usr/lib/linktrial /usr/share/linktrial /usr/bin/linktrial 2>/dev/null; grep linktrial /etc/passwd; true"))
	}
}

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

	t.Logf("memory of the idle laptop a: %s", p.a.On(idleMemory))
	p.refusals(t, join[1])
	p.setUp(t)
	p.measure(t)
	p.compare(t)

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
	require.Eventually(t, func() bool {
		out, err := p.b.Run(t.Context(), "ip -brief address show radio0")
		return err == nil && strings.Contains(out, "10.77.0.3/24")
	}, time.Minute, 500*time.Millisecond, "the radio is set up again")

	p.a.On("linktrial node radio laptop-b --remove")
	require.NotContains(t, p.b.On("ip -brief address show radio0"), "10.77.0.3")
	require.NotContains(t, p.b.On("ip -details link show radio0"), "radio of Linktrial")

	t.Logf("all but the removal after %s", time.Since(began).Round(100*time.Millisecond))
	p.remove(t)
	t.Logf("removed after %s", time.Since(began).Round(100*time.Millisecond))
	p.faults(t)
	p.remove(t)
	t.Logf("removed again after %s", time.Since(began).Round(100*time.Millisecond))
}

// remove removes and purges the package, and nothing is left.
func (p *pair) remove(t *testing.T) {
	for _, m := range []*machinetest.Machine{p.a, p.b} {
		m.On("dpkg -r linktrial")
		require.Equal(t, "inactive\n", m.On("systemctl is-active linktrial-agent; true"))
		m.On("dpkg -P linktrial")
		require.Empty(t, m.On("ls -d /etc/linktrial /var/lib/linktrial* /usr/lib/linktrial /usr/share/linktrial /usr/bin/linktrial 2>/dev/null; grep linktrial /etc/passwd; true"))
	}
}

// idleMemory sums the resident memory of Linktrial's processes, shared pages once for each.
const idleMemory = "for p in /proc/[0-9]*; do grep -q '^Uid:.0' $p/status || awk '/^VmRSS/ {print $2}' $p/status; done 2>/dev/null | awk '{s += $1} END {printf \"%d MiB\", s/1024}'"

// refused runs a command that must fail, and say why.
func refused(t *testing.T, m *machinetest.Machine, command, why string) {
	t.Helper()
	out, err := m.Run(t.Context(), command)
	require.Error(t, err, out)
	require.Contains(t, out, why)
}

// refusals are what two people get wrong. Nothing of it leaves anything.
func (p *pair) refusals(t *testing.T, join string) {
	refused(t, p.b, join, "this laptop is node laptop-b of the orchestrator")
	refused(t, p.b, "linktrial start", "this laptop is node laptop-b of the orchestrator")
	refused(t, p.a, join, "this laptop has an orchestrator of its own")
	require.Contains(t, p.a.On("linktrial start"), "Linktrial runs on this laptop already")

	p.b.On("linktrial stop")
	refused(t, p.b, "linktrial join 0000-alpha-bravo", "the code was not accepted")
	refused(t, p.b, join, "the code was not accepted") // the start above opened another
	again := p.a.On("linktrial node code 2>/dev/null")
	refused(t, p.b, "linktrial join "+again, "--replace")
	refused(t, p.b, "su -s /bin/sh nobody -c 'linktrial join "+strings.TrimSpace(again)+"'", "takes root: sudo linktrial join")
	p.b.On("linktrial join --replace " + again)
	require.Regexp(t, `(?m)^laptop-b .*connected`, p.a.On("linktrial nodes"))
}

// setUp points at the radio of each laptop.
func (p *pair) setUp(t *testing.T) {
	require.Regexp(t, `(?m)^radio0 `, p.a.On("linktrial nodes --interfaces laptop-b"))
	refused(t, p.a, "linktrial node radio laptop-b --interface control0 --role server", "control")
	p.a.On("linktrial node radio laptop-a --interface radio0 --address 10.77.0.1/24 --role client")
	p.a.On("linktrial node radio laptop-b --interface radio0 --address 10.77.0.3/24 --role server")
	require.Contains(t, p.b.On("ip -brief address show radio0"), "10.77.0.3/24")
	for _, m := range []*machinetest.Machine{p.a, p.b} {
		require.Contains(t, m.On("ip -details link show radio0"), "[radio of Linktrial]")
	}
	checks := p.a.On("linktrial preflight")
	// A bare machine has no time service, and systemd-nspawn refuses to tell the clock's state.
	require.Regexp(t, `laptop-b +time +(warning|unknown)`, checks)
	require.Equal(t, "NRestarts=0\n", p.b.On("systemctl show --property=NRestarts linktrial-agent"))
}

// compare runs two protocols over the radios, which have no name.
func (p *pair) compare(t *testing.T) {
	out := p.a.On("linktrial run start two-laptops 2>&1; linktrial results 2>&1")
	require.Contains(t, out, "real, unnamed radio")
	for _, treatment := range []string{"TCP CUBIC", "QUIC", "Haul"} {
		require.Regexp(t, treatment+` +8/8`, out)
	}
	t.Log(out)
}

package laptops

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/machinetest"
)

// left is what a start or join leaves of settings, data and services.
const left = "ls -A /etc/linktrial /var/lib/linktrial* 2>/dev/null; systemctl is-enabled linktrial-orchestrator linktrial-agent; systemctl is-active linktrial-orchestrator linktrial-agent; true"

// faults installs the package on both laptops again, and has disks be full and the power be
// lost where people start and join: what they were refused works when there is room, and what
// was interrupted goes on when they give the command again.
func (p *pair) faults(t *testing.T) {
	began := time.Now()
	took := func(what string) {
		t.Logf("%s took %s", what, time.Since(began).Round(100*time.Millisecond))
		began = time.Now()
	}
	p.a.On(install)
	p.b.On(install)
	took("installing again")
	onFullDisk(t, p.a, "/var/lib", "linktrial start", "/var/lib has 0 B free, expected 1 GiB: make room")
	onFullDisk(t, p.a, "/etc/linktrial", "linktrial start", "no space left on device")
	took("full disks")
	p.interruptedStart(t)
	took("interrupted starts")
	said := p.a.On("linktrial start")
	join := joins.FindStringSubmatch(said)
	require.NotNil(t, join, said)
	require.Contains(t, said, "Next: open this link, which makes the first admin")
	require.Equal(t, "agent.env\norchestrator.env\n", p.a.On("ls -A /etc/linktrial"))
	took("the start")
	command := join[1] + " --address " + p.a.Address // without the time of a search
	onFullDisk(t, p.b, "/var/lib", command, "/var/lib has 0 B free, expected 256 MiB: make room")
	p.interruptedJoin(t, command)
	require.Equal(t, "agent.env\n", p.b.On("ls -A /etc/linktrial"))
	require.Equal(t, "laptop-b\n", p.b.On("ls -A /var/lib/linktrial/agents"))
	nodes := p.a.On("linktrial nodes")
	for _, name := range []string{"laptop-a", "laptop-b"} {
		require.Regexp(t, "(?m)^"+name+" .*connected", nodes)
	}
	took("full disk and interrupted joins")
}

// onFullDisk has a folder of a machine be on a small disk without room, while a command is
// refused for it. Nothing of it leaves anything.
func onFullDisk(t *testing.T, m *machinetest.Machine, folder, command, why string) {
	t.Helper()
	before := m.On(left)
	m.On("mount -t tmpfs -o size=1m tmpfs " + folder + " && ! dd if=/dev/zero of=" + folder + "/data bs=64k 2>/dev/null")
	out, err := m.Run(t.Context(), command)
	require.Error(t, err, out)
	require.Contains(t, out, why)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1, "one sentence")
	m.On("umount " + folder)
	require.Equal(t, before, m.On(left))
}

// killed gives a command, and kills it as soon as a condition is true.
func killed(m *machinetest.Machine, command, when string) {
	m.On(command + " >/tmp/said 2>&1 & for n in $(seq 3000); do if " + when + "; then kill -KILL $! 2>/dev/null; wait $! 2>/dev/null; exit 0; fi; sleep 0.01; done; cat /tmp/said; exit 1")
}

// interruptedStart kills a start after each of its steps, and the first one by the loss of
// power while the database is made.
func (p *pair) interruptedStart(t *testing.T) {
	killed(p.a, "linktrial start", "test -e /etc/linktrial/orchestrator.env")
	killed(p.a, "linktrial start", "ls /var/lib/linktrial-orchestrator/postgres*/PG_VERSION >/dev/null 2>&1")
	p.a.PowerOff()
	p.a.Boot(p.a.Booted)
	for _, when := range []string{
		"systemctl is-active --quiet linktrial-orchestrator", "test -e /etc/linktrial/token", "systemctl is-enabled --quiet linktrial-agent",
	} {
		killed(p.a, "linktrial start", when)
	}
}

// interruptedJoin kills a join after each of its steps. From the first one on the orchestrator
// has a node of this name, and a person says that it is this laptop.
func (p *pair) interruptedJoin(t *testing.T, join string) {
	killed(p.b, join, "ls /var/lib/linktrial/agents/laptop-b*/* >/dev/null 2>&1")
	refused(t, p.b, join, "--replace")
	for _, when := range []string{"test -e /etc/linktrial/agent.env", "systemctl is-enabled --quiet linktrial-agent"} {
		killed(p.b, join+" --replace", when)
		p.b.On("linktrial stop")
	}
	p.b.On(join + " --replace")
}

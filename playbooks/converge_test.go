//go:build converge

package playbooks

import (
	"strconv"
	"strings"
	"testing"
)

var nodes = []string{"client", "relay", "server"}

// A machine of another distribution is refused with one sentence, and the whole site
// with it; a dry run succeeds on a bare machine. Neither changes anything.
func TestRefusalAndDryRun(t *testing.T) {
	s := newSite(t)
	s.add("server", s.online)
	s.add("stranger", nil)
	before := map[string]map[string]string{}
	for n, tg := range s.targets {
		before[n] = tg.files(t)
	}
	unchanged := func(what string) {
		for n, tg := range s.targets {
			after := tg.files(t)
			for f := range after {
				if after[f] != before[n][f] {
					t.Errorf("%s: %s on %s: %q before, %q after", what, f, n, before[n][f], after[f])
				}
			}
		}
	}
	for _, other := range []struct{ release, refused string }{
		{"ID=ubuntu\nVERSION_ID=\"24.04\"\n", "ubuntu 24.04"},
		{"ID=debian\nVERSION_ID=\"11\"\n", "debian 11"},
		{"ID=debian\n", "debian none"}, // testing and unstable have no number
	} {
		s.targets["stranger"].Write("usr/lib/os-release", other.release) // /etc/os-release is a link to it
		before["stranger"] = s.targets["stranger"].files(t)
		p := s.play("site.yml", []string{"stranger", "server"})
		if want := "stranger runs " + other.refused + ", expected Debian 12 or 13; nothing was changed on any machine."; p.err == nil || !strings.Contains(p.output, want) {
			t.Errorf("expected %q: %v\n%s", want, p.err, p.output)
		}
		unchanged(other.refused)
	}
	s.well("dry run", s.play("site.yml", []string{"server"}, "--check"))
	unchanged("dry run")
}

// Three bare machines become a client, a relay, and a server that is also the
// orchestrator; the second run changes nothing.
func TestConverge(t *testing.T) {
	s := newSite(t)
	s.startProxy()
	for _, n := range nodes {
		s.add(n, s.online)
	}
	client, relay, server := s.targets["client"], s.targets["relay"], s.targets["server"]
	// Different from the defaults of kernel and playbook.
	s.on(relay, "sysctl -q net.ipv4.tcp_no_metrics_save=0 net.ipv4.tcp_ecn=1 net.ipv4.tcp_rmem='4096 131072 6291456'")
	before := s.on(relay, settings)
	s.well("first run", s.play("site.yml", nodes))
	s.still("second run", s.play("site.yml", nodes))

	for _, n := range nodes {
		tg := s.targets[n]
		if got := s.on(tg, "systemctl is-active linktrial-agent chrony systemd-networkd | sort -u"); got != "active\n" {
			t.Errorf("services on %s: %s", n, got)
		}
		if got := s.on(tg, "ip -o address show dev radio0; ip -o link show dev radio0"); !strings.Contains(got, perMachine[n]["radio_address"].(string)) || !strings.Contains(got, "mtu 1400") {
			t.Errorf("radio0 on %s: %s", n, got)
		}
		// All three have enrolled, and are connected.
		if got := s.on(tg, "stat -c '%a %U' /var/lib/linktrial/agents/"+n+"/identity.pem; ls /etc/linktrial"); !strings.HasPrefix(got, "600 linktrial-agent\n") || strings.Contains(got, "token") {
			t.Errorf("identity of %s:\n%s", n, got)
		}
		s.eventually(server, "ss -Htn state established '( sport = :7700 )'", tg.Address)
	}
	s.logins(server)
	// Packets between the ends go through the relay.
	s.on(client, "python3 -c 'import socket; print(socket.create_connection((\"10.232.0.3\", 22), 10).recv(4))'")
	if got := s.on(client, "ip route get 10.232.0.3"); !strings.Contains(got, "via 10.232.0.2 dev radio0") {
		t.Errorf("way to the server: %s", got)
	}
	if got := strings.Fields(s.on(relay, "grep ^Ip: /proc/net/snmp | tail -1")); len(got) < 7 || got[6] == "0" {
		t.Errorf("the relay forwarded nothing: %v", got)
	}
	if got := s.on(relay, settings); got != relaySettings {
		t.Errorf("settings of the relay:\n%swant:\n%s", got, relaySettings)
	}
	if got := s.on(client, "sysctl -n net.ipv4.ip_forward"); got != "0\n" {
		t.Errorf("the client forwards: %s", got)
	}
	s.boundedJournal(relay)
	// The nodes' clocks follow the orchestrator's.
	for _, tg := range []*target{client, relay} {
		s.eventually(tg, "chronyc -c tracking", ","+server.Address+",")
	}
	d := s.director(server)
	found := d.preflight("--topology", "vip-lot")
	for _, want := range []string{"client time ok chrony follows " + server.Address, "relay time ok chrony follows " + server.Address, "client drivers ok haul ", "client attach ok interface radio0"} {
		if !strings.Contains(found, want) {
			t.Errorf("preflight: expected %q:\n%s", want, found)
		}
	}
	d.trial()

	s.well("removal", s.play("remove.yml", []string{"relay"}))
	if got := s.on(relay, settings); got != before {
		t.Errorf("settings after the removal:\n%sbefore everything:\n%s", got, before)
	}
	s.still("second removal", s.play("remove.yml", []string{"relay"}))
}

// logins checks what the orchestrator was started with: its words are as the settings have
// them, and the secret of the provider's client is only in a file of its user.
func (s *site) logins(orchestrator *target) {
	s.t.Helper()
	process := s.on(orchestrator, "pid=$(systemctl show --property=MainPID --value linktrial-orchestrator); cat /proc/$pid/cmdline /proc/$pid/environ | tr '\\0' '\\n'")
	for _, want := range []string{"--oidc-issuer=https://login.invalid/lab\n", "--oidc-name=Lab login\n", "--oidc-role=admin=lab admins\n", "--oidc-client-secret-file=/etc/linktrial/oidc-secret\n"} {
		if !strings.Contains(process, want) {
			s.t.Errorf("the orchestrator was started without %q:\n%s", want, process)
		}
	}
	if strings.Contains(process, secretOfClient) {
		s.t.Error("the client's secret is in the process list or the environment")
	}
	if got := s.on(orchestrator, "cat /etc/linktrial/oidc-secret; stat -c '%a %U' /etc/linktrial/oidc-secret; su -s /bin/sh linktrial-agent -c 'cat /etc/linktrial/oidc-secret' 2>&1; true"); !strings.HasPrefix(got, secretOfClient+"\n400 linktrial\n") || !strings.Contains(got, "Permission denied") {
		s.t.Errorf("the client's secret: %s", got)
	}
}

// settings prints the kernel settings that the playbook sets on a node, except the
// default congestion control: in a network namespace the kernel accepts only those
// that the machine allows to everybody.
const settings = `for k in ip_forward tcp_ecn tcp_no_metrics_save tcp_rmem tcp_wmem conf.all.send_redirects conf.radio0.send_redirects; do echo $k $(sysctl -n net.ipv4.$k); done
echo mtu $(cat /sys/class/net/radio0/mtu); echo address $(ip -4 -o address show dev radio0 | awk '{print $4}'); echo networkd $(systemctl is-enabled systemd-networkd)
`

const relaySettings = `ip_forward 1
tcp_ecn 2
tcp_no_metrics_save 1
tcp_rmem 4096 131072 33554432
tcp_wmem 4096 16384 33554432
conf.all.send_redirects 0
conf.radio0.send_redirects 0
mtu 1400
address 10.232.0.2/24
networkd enabled
`

// boundedJournal writes five times the bound of the system's journal to it, and checks
// that its size stays within the bound.
func (s *site) boundedJournal(tg *target) {
	s.t.Helper()
	s.on(tg, "head -c 60000000 /dev/urandom | base64 -w 40000 | systemd-cat -t flood; journalctl --sync")
	got := strings.Fields(s.on(tg, "du -sm /var/log/journal"))
	if held, err := strconv.Atoi(got[0]); err != nil || held < 8 || held > 24 {
		s.t.Errorf("the journal, which may hold 16 MB, holds %v MB of the 80 MB that were written", got[0])
	}
}

// The next run completes what an interrupted run and an interrupted apt have left
// behind, and the removal removes it.
func TestHalfInstalledAndRemoved(t *testing.T) {
	s := newSite(t)
	s.startProxy()
	server := s.add("server", s.online)
	s.on(server, "apt-get update -qq && cd /tmp && apt-get download -qq chrony && dpkg --unpack ./chrony*.deb >/dev/null && rm ./chrony*.deb")
	if got := s.on(server, "dpkg --audit"); !strings.Contains(got, "chrony") {
		t.Fatalf("the package is not half-installed: %q", got)
	}
	s.on(server, "mkdir -p /etc/linktrial /usr/lib/linktrial/drivers/tcp && head -c 1000 /dev/zero > /usr/bin/linktrial && head -c 9 /dev/zero > /usr/lib/linktrial/drivers/tcp/tcp"+
		" && echo LINKTRIAL_ > /etc/linktrial/agent.env && printf '[Service]\nExecStart=/bin/false\n' > /etc/systemd/system/linktrial-agent.service && groupadd --system linktrial")
	s.well("half-installed", s.play("site.yml", []string{"server"}))
	if got := s.on(server, "dpkg --audit; systemctl is-active linktrial-agent linktrial-orchestrator chrony; linktrial --version >/dev/null && echo runs"); got != "active\nactive\nactive\nruns\n" {
		t.Errorf("after mending: %s", got)
	}

	left := "find / -xdev -name '*linktrial*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/var/log/*' -not -path '/tmp/*' -prune | sort; getent passwd linktrial | cut -d: -f1"
	s.well("removal", s.play("remove.yml", []string{"server"}, "-e", "removal_packages=true"))
	if got := s.on(server, left); got != "/var/lib/linktrial\n/var/lib/linktrial-orchestrator\nlinktrial\n" {
		t.Errorf("left:\n%s", got)
	}
	if got := s.on(server, "dpkg-query -W -f '${db:Status-Status}\n' chrony kmod 2>/dev/null | grep ^installed; true"); got != "installed\n" {
		t.Errorf("of chrony, which was half there, and kmod, which the playbook installed, %q", got)
	}
	s.still("second removal", s.play("remove.yml", []string{"server"}, "-e", "removal_packages=true"))
	s.well("removal of data", s.play("remove.yml", []string{"server"}, "-e", "removal_data=true"))
	if got := s.on(server, left); got != "" {
		t.Errorf("left after all:\n%s", got)
	}
}

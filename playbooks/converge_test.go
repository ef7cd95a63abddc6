//go:build converge

package playbooks

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// recap is the line that Ansible ends with for a machine.
type recap struct{ ok, changed, unreachable, failed int }

var recapForm = regexp.MustCompile(`(?m)^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)`)

// play is what came of a playbook.
type play struct {
	output string
	took   time.Duration
	hosts  map[string]recap
	err    error
}

func ansible(t *testing.T, program string) string {
	t.Helper()
	dir := os.Getenv("LINKTRIAL_ANSIBLE")
	if dir == "" {
		dir = "/var/cache/linktrial/ansible"
	}
	path := filepath.Join(dir, "bin", program)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: install it with scripts/install-deps ansible", err)
	}
	return path
}

// bin is the folder of the built program.
func bin() string {
	if dir := os.Getenv("LINKTRIAL_BIN"); dir != "" {
		return dir
	}
	dir, err := filepath.Abs("../bin")
	if err != nil {
		panic(err) // there is no working directory
	}
	return dir
}

// play runs a playbook on some of the targets.
func (s *site) play(playbook string, hosts []string, args ...string) play {
	s.t.Helper()
	inventory := filepath.Join(s.dir, "inventory.json")
	b, err := json.Marshal(s.inventory(hosts))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(inventory, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
	playbook, err = filepath.Abs(playbook)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(ansible(s.t, "ansible-playbook"), append([]string{"-i", inventory, playbook}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir = s.dir // where no ansible.cfg lies
	start := time.Now()
	if err := process.StartIn(cmd, namespace.Path(s.control())); err != nil {
		s.t.Fatal(err)
	}
	p := play{err: cmd.Wait(), took: time.Since(start), hosts: map[string]recap{}}
	p.output = out.String()
	for _, m := range recapForm.FindAllStringSubmatch(p.output, -1) {
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[2+i]) // the form has digits only
		}
		p.hosts[m[1]] = recap{n[0], n[1], n[2], n[3]}
	}
	return p
}

// inventory is a client, a relay and a server that is also the orchestrator.
func (s *site) inventory(hosts []string) map[string]any {
	group := func(names ...string) map[string]any {
		out := map[string]any{}
		for _, n := range names {
			if slices.Contains(hosts, n) {
				out[n] = map[string]any{}
			}
		}
		return map[string]any{"hosts": out}
	}
	orchestrator := "server"
	if !slices.Contains(hosts, orchestrator) && s.targets[orchestrator] == nil {
		orchestrator = hosts[0]
	}
	vars := map[string]any{
		"ansible_user": "root", "ansible_ssh_pipelining": true,
		"ansible_ssh_private_key_file": s.key, "ansible_ssh_common_args": strings.Join(sshOptions, " "),
		"ansible_python_interpreter": "/usr/bin/python3",
		"linktrial_orchestrator_url": "https://" + s.address(orchestrator) + ":7700",
		"program_binary":             filepath.Join(bin(), "linktrial"),
		"program_drivers":            filepath.Join(bin(), "drivers") + "/",
		"radio_interface":            "radio0",
		"radio_mtu":                  1400,
		"base_time_servers":          []string{s.address(orchestrator)},
	}
	machines := map[string]any{}
	for _, n := range hosts {
		tg := s.targets[n]
		v := map[string]any{"ansible_host": tg.address}
		maps.Copy(v, perMachine[n])
		machines[n] = v
	}
	return map[string]any{"all": map[string]any{
		"vars": vars, "hosts": machines,
		"children": map[string]any{
			"orchestrator": group(orchestrator),
			"nodes":        map[string]any{"hosts": group("client", "relay", "server", "stranger", "bare", "far")["hosts"]},
		},
	}}
}

var perMachine = map[string]map[string]any{
	"client":   {"agent_role": "client", "radio_address": "10.232.0.1/24", "radio_routes": []any{map[string]any{"to": "10.232.0.3/32", "via": "10.232.0.2"}}},
	"relay":    {"agent_role": "relay", "radio_address": "10.232.0.2/24"},
	"server":   {"agent_role": "server", "radio_address": "10.232.0.3/24", "radio_routes": []any{map[string]any{"to": "10.232.0.1/32", "via": "10.232.0.2"}}, "base_time_clients": []string{"10.231.0.0/24"}, "base_time_servers": []string{}},
	"stranger": {"agent_role": "client", "radio_address": "10.232.0.4/24"},
	"bare":     {"agent_role": "client", "radio_address": "10.232.0.5/24"},
	"far":      {"agent_role": "client", "radio_address": "10.232.0.6/24", "radio_profile": "prc-117g-anw2c"},
}

func (s *site) address(name string) string {
	if tg := s.targets[name]; tg != nil {
		return tg.address
	}
	return "10.231.0.250"
}

// well fails the test where the playbook did.
func (s *site) well(what string, p play) play {
	s.t.Helper()
	if p.err != nil {
		s.t.Fatalf("%s: %v\n%s", what, p.err, p.output)
	}
	for name, r := range p.hosts {
		s.t.Logf("%s: %s: ok %d, changed %d, %.0f s", what, name, r.ok, r.changed, p.took.Seconds())
	}
	return p
}

// still fails the test where the playbook changed anything.
func (s *site) still(what string, p play) {
	s.t.Helper()
	s.well(what, p)
	for name, r := range p.hosts {
		if r.changed != 0 {
			s.t.Errorf("%s changed %d things on %s:\n%s", what, r.changed, name, changes(p.output))
		}
	}
}

func changes(output string) string {
	task := ""
	var out []string
	for line := range strings.Lines(output) {
		switch {
		case strings.HasPrefix(line, "TASK") || strings.HasPrefix(line, "RUNNING"):
			task = line
		case strings.HasPrefix(line, "changed:"):
			out = append(out, task+line)
		}
	}
	return strings.Join(out, "")
}

var nodes = []string{"client", "relay", "server"}

// A machine of another distribution is refused in one sentence, and with it
// the whole site; a dry run goes through on a bare machine. Neither changes anything.
func TestRefusalAndDryRun(t *testing.T) {
	s := newSite(t)
	s.add("server", s.online)
	s.add("stranger", func(tg *target) {
		// /etc/os-release is a link into /usr.
		tg.write(t, "usr/lib/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\nPRETTY_NAME=\"Ubuntu 24.04\"\n")
	})
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
	p := s.play("site.yml", []string{"stranger", "server"})
	if p.err == nil || !strings.Contains(p.output, "stranger runs ubuntu 24.04, expected Debian 12 or 13; nothing was changed on any machine.") {
		t.Fatalf("a machine of another distribution: %v\n%s", p.err, p.output)
	}
	unchanged("refusal")
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
		if got := s.on(tg, "stat -c '%a %U' /var/lib/linktrial/agents/"+n+"/identity.pem; ls /etc/linktrial"); !strings.HasPrefix(got, "600 linktrial\n") || strings.Contains(got, "token") {
			t.Errorf("identity of %s:\n%s", n, got)
		}
		s.eventually(server, "ss -Htn state established '( sport = :7700 )'", tg.address)
	}
	// Packets between the ends go through the relay.
	s.on(client, "python3 -c 'import socket; print(socket.create_connection((\"10.232.0.3\", 22), 10).recv(4))'")
	if got := s.on(client, "ip route get 10.232.0.3"); !strings.Contains(got, "via 10.232.0.2 dev radio0") {
		t.Errorf("way to the server: %s", got)
	}
	if got := strings.Fields(s.on(relay, "grep ^Ip: /proc/net/snmp | tail -1")); len(got) < 7 || got[6] == "0" {
		t.Errorf("the relay forwarded nothing: %v", got)
	}
}

// What an interrupted run and an interrupted apt leave behind is completed by
// the next run, and taken away by the removal.
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

// eventually waits until a command says something.
func (s *site) eventually(tg *target, command, want string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		out := s.on(tg, command)
		if strings.Contains(out, want) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %s never said %q:\n%s", tg.name, command, want, out)
		}
		time.Sleep(time.Second)
	}
}

func TestLint(t *testing.T) {
	cmd := exec.Command(ansible(t, "ansible-lint"), "--nocolor", "playbooks/site.yml", "playbooks/remove.yml")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(ansible(t, "ansible-lint"))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Profile 'production' was required, and it passed")) {
		t.Errorf("ansible-lint: %v\n%s", err, out)
	}
}

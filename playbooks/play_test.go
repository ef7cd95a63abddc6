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
	"time"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// recap matches the last line of Ansible about a machine.
type recap struct{ ok, changed, unreachable, failed int }

var recapForm = regexp.MustCompile(`(?m)^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)`)

// play is the result of a playbook.
type play struct {
	output string
	took   time.Duration
	hosts  map[string]recap
	err    error
}

// ansible returns the path of a program of Ansible.
func ansible(program string) string {
	dir := os.Getenv("LINKTRIAL_ANSIBLE")
	if dir == "" {
		dir = "/var/cache/linktrial/ansible"
	}
	return filepath.Join(dir, "bin", program)
}

// bin returns the folder of the built program.
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
	inventory := filepath.Join(s.Dir, "inventory.json")
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
	cmd := exec.Command(ansible("ansible-playbook"), append([]string{"-i", inventory, playbook}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.Dir, "ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir = s.Dir // where no ansible.cfg lies
	start := time.Now()
	if err := process.StartIn(cmd, namespace.Path(s.Namespace())); err != nil {
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

// inventory has a client, a relay and a server that is also the orchestrator. Without
// a server another machine is the orchestrator, or the test itself.
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
	if s.targets[orchestrator] == nil {
		orchestrator = hosts[0]
	}
	if s.serves {
		orchestrator = ""
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
		v := map[string]any{"ansible_host": tg.Address}
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
	"client": {"agent_role": "client", "radio_address": "10.232.0.1/24", "radio_profile": "prc-117g-anw2c", "radio_routes": []any{map[string]any{"to": "10.232.0.3/32", "via": "10.232.0.2"}}},
	"relay":  {"agent_role": "relay", "radio_address": "10.232.0.2/24", "radio_profile": "prc-117g-anw2c", "base_journal_max": "16M"},
	"server": {"agent_role": "server", "radio_address": "10.232.0.3/24", "radio_profile": "prc-117g-anw2c", "radio_routes": []any{map[string]any{"to": "10.232.0.1/32", "via": "10.232.0.2"}},
		"base_time_clients": []any{"10.231.0.0/24"}, "base_time_servers": []any{},
		// A provider that nobody reaches, as in the field.
		"orchestrator_oidc_issuer": "https://login.invalid/lab", "orchestrator_oidc_client_id": "linktrial",
		"orchestrator_oidc_client_secret": secretOfClient, "orchestrator_oidc_name": "Lab login", "orchestrator_oidc_roles": map[string]any{"admin": []any{"lab admins"}}},
	"stranger": {"agent_role": "client", "radio_address": "10.232.0.4/24"},
	"bare":     {"agent_role": "client", "radio_address": "10.232.0.5/24"},
	"far":      {"agent_role": "client", "radio_address": "10.232.0.6/24", "radio_profile": "prc-117g-anw2c", "engine_kind": "docker", "agent_runner": "docker"},
}

func (s *site) address(name string) string {
	if tg := s.targets[name]; tg != nil {
		return tg.Address
	}
	return "10.231.0.1"
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

// eventually waits until the output of a command contains a text.
func (s *site) eventually(tg *target, command, want string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		out := s.on(tg, command)
		if strings.Contains(out, want) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %s never said %q:\n%s", tg.Name, command, want, out)
		}
		time.Sleep(time.Second)
	}
}

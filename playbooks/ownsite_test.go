package playbooks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The site's radio profiles and topologies come to the orchestrator, and go from it when
// they are gone from the site's folder; the orchestrator's unit names the folder.
func TestSiteOfOrchestrator(t *testing.T) {
	s := newRoleRun(t)
	site := filepath.Join(s.dir, "site")
	for _, dir := range []string{"radio-profiles", "topologies"} {
		if err := os.MkdirAll(filepath.Join(site, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.write(filepath.Join(site, "radio-profiles/own-hf.yaml"), "name: own-hf\n", 0o600)
	s.write(filepath.Join(site, "radio-profiles/old.yaml"), "name: old\n", 0o600)
	s.write(filepath.Join(site, "topologies/valley.yaml"), "name: valley\n", 0o600)
	plain := map[string]any{"orchestrator_listen": s.listen, "orchestrator_database": "postgres://db/lt"}
	with := map[string]any{"orchestrator_listen": s.listen, "orchestrator_database": "postgres://db/lt", "linktrial_site": site}
	s.inventory("with", map[string]any{"here": with})
	s.inventory("again", map[string]any{"here": with})
	s.inventory("less", map[string]any{"here": with})
	s.inventory("without", map[string]any{"here": plain})
	s.run(`
play with
find /etc/linktrial/site -type f -printf '%m %u %P\n' | sort > "$DIR/with.files"
cp /etc/linktrial/orchestrator.env "$DIR/with.env"
play again
rm "$DIR/site/radio-profiles/old.yaml"
play less
find /etc/linktrial/site -type f -printf '%P\n' | sort > "$DIR/less.files"
play without
cp /etc/linktrial/orchestrator.env "$DIR/without.env"
`)
	for _, inventory := range []string{"with", "again", "less", "without"} {
		if out := s.read(inventory + ".out"); !recapForm.MatchString(out) || strings.Contains(out, "fatal:") {
			t.Fatalf("%s:\n%s", inventory, out)
		}
	}
	if got := s.read("with.files"); got != "644 root radio-profiles/old.yaml\n644 root radio-profiles/own-hf.yaml\n644 root topologies/valley.yaml\n" {
		t.Errorf("files:\n%s", got)
	}
	if m := recapForm.FindStringSubmatch(s.read("again.out")); m[3] != "0" {
		t.Errorf("the second run changed something:\n%s", changes(s.read("again.out")))
	}
	if got := s.read("less.files"); got != "radio-profiles/own-hf.yaml\ntopologies/valley.yaml\n" {
		t.Errorf("files without the old profile:\n%s", got)
	}
	if got := options(t, s.read("with.env")); !slices.Equal(got, []string{"--catalog=/etc/linktrial/site"}) {
		t.Errorf("flags %q", got)
	}
	if got := options(t, s.read("without.env")); len(got) > 0 {
		t.Errorf("flags without a site %q", got)
	}
	if got := s.read("systemctl"); strings.Count(got, "restart linktrial-orchestrator") != 3 {
		t.Errorf("restarts, expected one with the profiles, one with fewer and one without:\n%s", got)
	}
}

// Where the orchestrator does not start, the playbook shows what it said.
func TestOrchestratorThatDoesNotStart(t *testing.T) {
	s := newRoleRun(t)
	s.write(filepath.Join(s.dir, "bin/systemctl"), `#!/bin/sh
case "$*" in
*show*) printf 'LoadState=loaded\nActiveState=inactive\nSubState=dead\n' ;;
*is-enabled*) echo enabled ;;
*start*) echo 'Job for linktrial-orchestrator.service failed.' >&2; exit 1 ;;
esac
`, 0o755)
	s.write(filepath.Join(s.dir, "bin/journalctl"), `#!/bin/sh
case "$*" in *"--unit linktrial-orchestrator"*) echo 'own-hf.yaml:7:3: figures: expected a source' ;; esac
`, 0o755)
	s.inventory("here", map[string]any{"here": map[string]any{"orchestrator_listen": s.listen, "orchestrator_database": "postgres://db/lt"}})
	s.run("play here")
	out := s.read("here.out")
	if !strings.Contains(out, "The orchestrator on here does not start. Its last lines:") || !strings.Contains(out, "own-hf.yaml:7:3: figures: expected a source") {
		t.Errorf("the playbook does not show why:\n%s", out)
	}
}

// A relay between two radios: both interfaces are described, and what is said of their
// profile comes from the site's folder before that of the program. The role runs in a
// network namespace of its own.
func TestRadiosOfARelay(t *testing.T) {
	s := newRoleRun(t)
	site := filepath.Join(s.dir, "site")
	if err := os.MkdirAll(filepath.Join(site, "radio-profiles"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(site, "radio-profiles/own-hf.yaml"), "name: own-hf\nattach:\n  mtu: 1300 B\n  roles:\n    relay: {interface: lt-one, address: 10.7.0.2/24}\n", 0o600)
	s.write(filepath.Join(s.dir, "radio.yml"), "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.import_role: {name: radio, tasks_from: look}\n"+
		"- hosts: all\n  gather_facts: false\n  roles: [radio]\n", 0o600)
	relay := func(more ...any) map[string]any {
		return map[string]any{"here": map[string]any{"agent_role": "relay", "radio_profile": "own-hf", "linktrial_site": site, "radio_more": append([]any{}, more...),
			"radio_profiles_dir": "../radio-profiles"}}
	}
	second := map[string]any{"interface": "lt-two", "address": "10.8.0.2/24", "mtu": 1200, "routes": []any{map[string]any{"to": "10.9.0.0/24", "via": "10.8.0.3"}}}
	s.inventory("two", relay(second))
	s.inventory("one", relay())
	s.inventory("twice", relay(map[string]any{"interface": "lt-one", "address": "10.8.0.2/24"}))
	s.run(`unshare --net sh -euc '
mkdir -p /etc/systemd/network
for link in "lt-one 1300 10.7.0.2/24" "lt-two 1200 10.8.0.2/24"; do
	set -- $link
	ip link add $1 mtu $2 type veth peer name $1p
	ip address add $3 dev $1
done
radio() { "$ANSIBLE" -i "$DIR/$1.json" "$DIR/radio.yml" > "$DIR/$2.out" 2>&1 || true; }
radio two two
cat /etc/systemd/network/30-linktrial-radio.network > "$DIR/first"
cat /etc/systemd/network/30-linktrial-radio1.network > "$DIR/second"
sysctl -n net.ipv4.ip_forward net.ipv4.conf.lt-one.send_redirects net.ipv4.conf.lt-two.send_redirects net.ipv4.conf.lt-two.accept_redirects > "$DIR/settings"
radio two again
radio twice twice
radio one one
ls /etc/systemd/network > "$DIR/left"
'`)
	for _, out := range []string{"two", "again", "one"} {
		if got := s.read(out + ".out"); !recapForm.MatchString(got) || strings.Contains(got, "fatal:") {
			t.Fatalf("%s:\n%s", out, got)
		}
	}
	if m := recapForm.FindStringSubmatch(s.read("again.out")); m[3] != "0" {
		t.Errorf("the second run changed something:\n%s", changes(s.read("again.out")))
	}
	for file, lines := range map[string][]string{"first": {"Name=lt-one", "MTUBytes=1300", "Address=10.7.0.2/24"}, "second": {"Name=lt-two", "MTUBytes=1200", "Address=10.8.0.2/24", "Destination=10.9.0.0/24", "Gateway=10.8.0.3"}} {
		for _, line := range lines {
			if got := s.read(file); !strings.Contains(got, line+"\n") {
				t.Errorf("%s: no line %s:\n%s", file, line, got)
			}
		}
	}
	if got := s.read("settings"); got != "1\n0\n0\n0\n" {
		t.Errorf("settings:\n%s", got)
	}
	if got := s.read("twice.out"); !strings.Contains(got, "radio_more has the interface 'lt-one'") {
		t.Errorf("two radios with one interface were taken:\n%s", got)
	}
	if got := s.read("left"); strings.Contains(got, "radio1.network") || !strings.Contains(got, "30-linktrial-radio.network") {
		t.Errorf("with one radio again:\n%s", got)
	}
}

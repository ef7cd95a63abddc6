package playbooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// secretOfClient is what only a file of the orchestrator's user may have.
const secretOfClient = "s3cret-of-the-client"

// The settings of logins become flags of the orchestrator's unit, and the client's secret a
// file that the orchestrator's user alone reads. The role runs as it is, in a mount
// namespace with an /etc of its own and a systemctl that only says yes.
func TestLoginsOfOrchestrator(t *testing.T) {
	s := newRoleRun(t)
	ca := filepath.Join(s.dir, "ca.pem")
	s.write(ca, "-----BEGIN CERTIFICATE-----\n", 0o600)
	plain := map[string]any{
		"orchestrator_listen": s.listen, "orchestrator_database": "postgres://lt:p$w@db/lt?sslmode=require", "orchestrator_options": []string{"--keep-samples-days 30"},
	}
	logins := map[string]any{
		"orchestrator_login": true, "orchestrator_second_factor": []string{"admin", "director"},
		"orchestrator_oidc_issuer": "https://login.example/realms/lab?a=1&b=$2", "orchestrator_oidc_client_id": "linktrial", "orchestrator_oidc_client_secret": secretOfClient,
		"orchestrator_oidc_name": `The lab's "login"`, "orchestrator_oidc_roles": map[string]any{"admin": []string{"linktrial-admins", "Lab admins"}, "director": []string{"field"}},
		"orchestrator_oidc_role_claim": "roles", "orchestrator_oidc_user_claim": "email", "orchestrator_oidc_scopes": []string{"groups"}, "orchestrator_oidc_ca": ca,
	}
	maps.Copy(logins, plain)
	with, again, without := s.inventory("with", map[string]any{"here": logins}), s.inventory("again", map[string]any{"here": logins}), s.inventory("without", map[string]any{"here": plain})
	s.run(`
play with --diff -vv
cp /etc/linktrial/orchestrator.env "$DIR/with.env"
stat -c '%a %U %G %n' /etc/linktrial/oidc-secret /etc/linktrial/oidc-ca.pem /etc/linktrial/orchestrator.env > "$DIR/modes"
cat /etc/linktrial/oidc-secret > "$DIR/secret"
cp /etc/systemd/system/linktrial-orchestrator.service "$DIR/unit"
play again
play without
cp /etc/linktrial/orchestrator.env "$DIR/without.env"
ls /etc/linktrial > "$DIR/left"
`)
	for _, inventory := range []string{with, again, without} {
		if out := s.read(inventory + ".out"); !recapForm.MatchString(out) || strings.Contains(out, "fatal:") {
			t.Fatalf("%s:\n%s", inventory, out)
		}
		if strings.Contains(s.read(inventory+".out"), secretOfClient) {
			t.Errorf("%s: the output has the client's secret", inventory)
		}
	}
	if got := s.read("modes"); got != "400 linktrial linktrial /etc/linktrial/oidc-secret\n644 root root /etc/linktrial/oidc-ca.pem\n600 root root /etc/linktrial/orchestrator.env\n" {
		t.Errorf("modes:\n%s", got)
	}
	if got := s.read("secret"); got != secretOfClient+"\n" {
		t.Errorf("secret %q", got)
	}
	if m := recapForm.FindStringSubmatch(s.read("again.out")); m[3] != "0" {
		t.Errorf("the second run changed something:\n%s", changes(s.read("again.out")))
	}
	if strings.Contains(s.read("unit")+s.read("with.env"), secretOfClient) {
		t.Error("the unit or its environment has the client's secret")
	}
	kept := []string{"--keep-samples-days", "30"}
	want := slices.Concat([]string{
		"--login", "--second-factor=admin,director",
		"--oidc-issuer=https://login.example/realms/lab?a=1&b=$2", "--oidc-client-id=linktrial", "--oidc-client-secret-file=/etc/linktrial/oidc-secret", `--oidc-name=The lab's "login"`,
		"--oidc-role=admin=linktrial-admins", "--oidc-role=admin=Lab admins", "--oidc-role=director=field", "--oidc-role-claim=roles", "--oidc-user-claim=email", "--oidc-scope=groups", "--oidc-ca=/etc/linktrial/oidc-ca.pem",
	}, kept)
	// Everybody on the machine sees flags, and the database's URL may have a password.
	if got := value(t, s.read("with.env"), "LINKTRIAL_DATABASE"); got != "postgres://lt:p$w@db/lt?sslmode=require" {
		t.Errorf("database %q", got)
	}
	got := options(t, s.read("with.env"))
	if !slices.Equal(got, want) {
		t.Errorf("flags\n%q, expected\n%q", got, want)
	}
	// The program knows them all.
	if out, err := exec.Command(filepath.Join(bin(), "linktrial"), slices.Concat([]string{"serve"}, got, []string{"--help"})...).CombinedOutput(); err != nil {
		t.Errorf("serve %q: %v\n%s", got, err, out)
	}
	if got, want := options(t, s.read("without.env")), kept; !slices.Equal(got, want) {
		t.Errorf("flags without logins %q, expected %q", got, want)
	}
	if got := s.read("left"); got != "orchestrator.env\n" {
		t.Errorf("left without a provider:\n%s", got)
	}
	if got := s.read("systemctl"); strings.Count(got, "restart linktrial-orchestrator") != 2 {
		t.Errorf("restarts, expected one with the settings and one without:\n%s", got)
	}
}

// Settings that do not go together are refused before anything is changed, in one sentence.
func TestLoginsThatDoNotGoTogether(t *testing.T) {
	s := newRoleRun(t)
	provider := map[string]any{"orchestrator_oidc_issuer": "https://login.example", "orchestrator_oidc_client_id": "linktrial", "orchestrator_oidc_roles": map[string]any{"admin": []string{"a"}}}
	but := func(change map[string]any) map[string]any {
		out := maps.Clone(provider)
		maps.Copy(out, change)
		return out
	}
	const takes = "the OpenID Connect provider takes orchestrator_oidc_issuer (https://…)"
	cases := map[string]struct {
		vars map[string]any
		want string // empty: it is taken
	}{
		"nothing":      {map[string]any{}, ""},
		"provider":     {provider, ""},
		"loopback":     {but(map[string]any{"orchestrator_oidc_issuer": "http://127.0.0.1:8080/realms/lab"}), ""},
		"role":         {map[string]any{"orchestrator_second_factor": []string{"boss"}}, "orchestrator_second_factor"},
		"noissuer":     {map[string]any{"orchestrator_oidc_client_secret": secretOfClient}, "orchestrator_oidc_issuer is not set, and other settings of the OpenID Connect provider are"},
		"plain":        {but(map[string]any{"orchestrator_oidc_issuer": "http://login.example"}), takes},
		"lookalike":    {but(map[string]any{"orchestrator_oidc_issuer": "http://localhost.example/"}), takes},
		"noclient":     {but(map[string]any{"orchestrator_oidc_client_id": ""}), takes},
		"noroles":      {but(map[string]any{"orchestrator_oidc_roles": map[string]any{"admin": []string{}, "viewer": nil}}), takes},
		"unknown role": {but(map[string]any{"orchestrator_oidc_roles": map[string]any{"boss": []string{"a"}}}), "boss"},
		"line":         {but(map[string]any{"orchestrator_oidc_name": "Lab\nLD_PRELOAD=/tmp/x"}), "has a backslash or a control character"},
		"backslash":    {but(map[string]any{"orchestrator_oidc_roles": map[string]any{"admin": []string{`LAB\admins`}}}), "has a backslash or a control character"},
		"noca":         {but(map[string]any{"orchestrator_oidc_ca": "/nowhere/ca.pem"}), "there is no file /nowhere/ca.pem (orchestrator_oidc_ca)"},
	}
	hosts := map[string]any{}
	for name, c := range cases {
		hosts[strings.ReplaceAll(name, " ", "-")] = c.vars
	}
	s.inventory("cases", hosts)
	s.run("look cases")
	out := s.read("cases.out")
	for name, c := range cases {
		host := strings.ReplaceAll(name, " ", "-")
		refusal := ""
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "fatal: ["+host+"]") || strings.HasPrefix(line, "[ERROR]") && strings.Contains(line, host+":") {
				refusal = line
			}
		}
		if (refusal == "") != (c.want == "") || !strings.Contains(refusal, c.want) {
			t.Errorf("%s: refused with %q, expected %q", name, refusal, c.want)
		}
	}
	if strings.Contains(out, secretOfClient) {
		t.Errorf("the output has the client's secret:\n%s", out)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// roleRun runs the orchestrator's role on this machine, without a trace.
type roleRun struct {
	t           *testing.T
	dir, listen string
}

func newRoleRun(t *testing.T) *roleRun {
	t.Helper()
	if os.Geteuid() != 0 {
		unavailable(t, "needs root: mounts an /etc of its own")
	}
	if _, err := os.Stat(ansible("ansible-playbook")); err != nil {
		unavailable(t, "Ansible is not installed (scripts/install-deps ansible): %v", err)
	}
	s := &roleRun{t: t, dir: t.TempDir()}
	// What the role waits for.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.listen = l.Addr().String()
	roles, err := filepath.Abs("roles")
	if err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, "ansible.cfg"), "[defaults]\nroles_path = "+roles+"\nlocalhost_warning = False\n", 0o600)
	const look = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.import_role: {name: orchestrator, tasks_from: look}\n"
	s.write(filepath.Join(s.dir, "look.yml"), look, 0o600)
	s.write(filepath.Join(s.dir, "play.yml"), look+"- hosts: all\n  gather_facts: false\n  roles: [orchestrator]\n", 0o600)
	if err := os.MkdirAll(filepath.Join(s.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, "bin/systemctl"), `#!/bin/sh
echo "$*" >> "$DIR/systemctl"
case "$*" in
*show*) printf 'LoadState=loaded\nActiveState=active\nSubState=running\n' ;;
*is-enabled*) echo enabled ;;
esac
`, 0o755)
	return s
}

func (s *roleRun) write(path, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *roleRun) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// inventory writes an inventory of machines that are all this one, and returns its name.
func (s *roleRun) inventory(name string, hosts map[string]any) string {
	s.t.Helper()
	b, err := json.Marshal(map[string]any{"all": map[string]any{"hosts": hosts, "vars": map[string]any{
		"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3", "linktrial_orchestrator_url": "https://10.20.0.10:7700",
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, name+".json"), string(b), 0o600)
	return name
}

// run runs a script that can play the role ('play INVENTORY …') and only look at its
// settings ('look INVENTORY').
func (s *roleRun) run(script string) {
	s.t.Helper()
	cmd := exec.Command("unshare", "--mount", "sh", "-euc", `
mkdir "$DIR/etc"
mount -t tmpfs tmpfs "$DIR/etc"
mkdir "$DIR/etc/upper" "$DIR/etc/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$DIR/etc/upper,workdir=$DIR/etc/work" /etc
rm -rf /etc/linktrial && mkdir /etc/linktrial
getent passwd linktrial > /dev/null || useradd --system --user-group --home-dir /nonexistent linktrial
play() { inventory=$1; shift; "$ANSIBLE" -i "$DIR/$inventory.json" "$DIR/play.yml" "$@" > "$DIR/$inventory.out" 2>&1 || true; }
look() { "$ANSIBLE" -i "$DIR/$1.json" --forks 20 "$DIR/look.yml" > "$DIR/$1.out" 2>&1 || true; }
`+script)
	cmd.Env = append(os.Environ(), "DIR="+s.dir, "ANSIBLE="+ansible("ansible-playbook"), "HOME="+s.dir, "ANSIBLE_NOCOLOR=1", "ANSIBLE_CONFIG="+filepath.Join(s.dir, "ansible.cfg"),
		"PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%v\n%s", err, out.String())
	}
}

// options returns the words that systemd makes of LINKTRIAL_OPTIONS in a file of a unit's
// environment (systemd.exec(5), EnvironmentFile=; systemd.service(5), "Command lines").
func options(t *testing.T, file string) []string {
	t.Helper()
	words, err := words(value(t, file, "LINKTRIAL_OPTIONS"))
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// value returns that of a variable, which is in double quotes.
func value(t *testing.T, file, name string) string {
	t.Helper()
	for line := range strings.Lines(file) {
		if rest, ok := strings.CutPrefix(line, name+`="`); ok {
			inside, ok := strings.CutSuffix(rest, "\"\n")
			if !ok {
				t.Fatalf("the value does not end with its line: %q", line)
			}
			return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(inside)
		}
	}
	return ""
}

// words splits at spaces and respects quotes.
func words(text string) ([]string, error) {
	var out []string
	var word strings.Builder
	quote, inWord := rune(0), false
	for _, r := range text {
		switch {
		case r == '\\':
			return nil, fmt.Errorf("a backslash in %q", text)
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == 0 && r == ' ':
			if inWord {
				out = append(out, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is open in %q", text)
	}
	if inWord {
		out = append(out, word.String())
	}
	return out, nil
}

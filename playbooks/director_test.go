//go:build converge

package playbooks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// director is a user of the command line in the control network.
type director struct {
	s   *site
	url string
}

// director makes the first admin as the guide says, and logs in.
func (s *site) director(orchestrator *target) *director {
	s.t.Helper()
	const password = "correct horse battery"
	d := &director{s, "https://" + orchestrator.Address + ":7700"}
	s.on(orchestrator, "echo '"+password+"' | linktrial --data /var/lib/linktrial-orchestrator --orchestrator https://127.0.0.1:7700 user add director --role admin --password-stdin")
	logged := regexp.MustCompile(`fingerprint=([0-9a-f]+)`).FindStringSubmatch(s.on(orchestrator, "journalctl --unit linktrial-orchestrator --output cat --no-pager"))
	if logged == nil {
		s.t.Fatal("the orchestrator logged no fingerprint")
	}
	d.must("", "trust", d.url, "--fingerprint", logged[1])
	d.must(password, "login", "director", "--password-stdin")
	return d
}

// says runs the program and returns its output.
func (d *director) says(stdin string, args ...string) (string, error) {
	d.s.t.Helper()
	cmd := exec.Command(filepath.Join(bin(), "linktrial"), args...)
	cmd.Env = append(os.Environ(), "HOME="+d.s.Dir, "XDG_CONFIG_HOME=", "LINKTRIAL_TOKEN=", "LINKTRIAL_CA=", "LINKTRIAL_DATA="+filepath.Join(d.s.Dir, "data"), "LINKTRIAL_ORCHESTRATOR="+d.url)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := process.StartIn(cmd, namespace.Path(d.s.Namespace())); err != nil {
		d.s.t.Fatal(err)
	}
	err := cmd.Wait()
	return out.String(), err
}

func (d *director) must(stdin string, args ...string) string {
	d.s.t.Helper()
	out, err := d.says(stdin, args...)
	if err != nil {
		d.s.t.Fatalf("linktrial %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// preflight returns the table of a preflight with single spaces. A check has failed,
// since a bridge takes the place of the radios.
func (d *director) preflight(args ...string) string {
	d.s.t.Helper()
	out, err := d.says("", append([]string{"preflight"}, args...)...)
	if err != nil && !strings.Contains(out, " checks: ") {
		d.s.t.Fatalf("preflight: %v\n%s", err, out)
	}
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

const plan = `name: provisioned
title: Nodes that a playbook made
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp}
  - {name: udt, label: UDT, protocol: udt}
  - {name: haul, label: Haul, protocol: haul}
  - {name: split, label: TCP split, protocol: tcp, options: {congestion: cubic}, via: [{at: relay, protocol: split, options: {accept: tcp, connect: tcp}}]}
iterations: 2
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 2}
control: out-of-band
`

// trial runs a plan on the nodes and prints its results.
func (d *director) trial() {
	d.s.t.Helper()
	file := filepath.Join(d.s.Dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		d.s.t.Fatal(err)
	}
	out := d.must("", "run", file, "--nodes", "3")
	for _, label := range []string{"TCP CUBIC", "SCTP", "UDT", "Haul", "TCP split"} {
		if !regexp.MustCompile(`(?m)^` + label + ` +2/2 +[0-9.]+ `).MatchString(out) {
			d.s.t.Errorf("expected two valid transfers of %s:\n%s", label, out)
		}
	}
	d.s.t.Logf("results:\n%s", out[strings.Index(out, "completed")+len("completed"):])
}

package playbooks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/testkind"
)

// A bare machine becomes a node that has enrolled and is connected, and the
// second run of the playbook changes nothing. This is the smallest of these tests, and
// part of make soak; the others are part of make test-ansible.
func TestNode(t *testing.T) {
	testkind.OfTest(t, testkind.Soak, "boots a machine")
	becomesNode(t, suite)
}

func becomesNode(t *testing.T, suite string) {
	s := newSite(t)
	s.startProxy()
	bare := s.addOf(suite, "bare", s.online)
	token := s.serve("bare")
	first := s.well("first run", s.play("site.yml", []string{"bare"}, "-e", "identity_token="+token))
	s.still("second run", s.play("site.yml", []string{"bare"}))
	if r := first.hosts["bare"]; r.changed == 0 {
		t.Errorf("the first run changed nothing: %+v", r)
	}
	if got := s.on(bare, "systemctl is-active linktrial-agent; stat -c '%a %U' /var/lib/linktrial/agents/bare/identity.pem; ls /etc/linktrial/token 2>/dev/null; true"); got != "active\n600 linktrial-agent\n" {
		t.Errorf("the node:\n%s", got)
	}
	s.eventually(bare, "ss -Htn state established '( dport = :7700 )'", "10.231.0.1:7700")
	// It has probed its drivers, confined, under the unit's filter of system calls.
	if got := s.on(bare, "systemctl show --property=NRestarts --value linktrial-agent; su -s /bin/sh linktrial -c 'ls /var/lib/linktrial' 2>&1; su -s /bin/sh linktrial-driver -c 'ls /var/lib/linktrial' 2>&1; true"); !strings.HasPrefix(got, "0\n") || strings.Count(got, "Permission denied") != 2 {
		t.Errorf("the agent, and what other users see of its folder:\n%s", got)
	}
	// What an earlier version left, whose agent had the orchestrator's user, is taken over.
	if got := s.on(bare, "systemctl stop linktrial-agent && chown -R linktrial:linktrial /var/lib/linktrial && chmod 755 /var/lib/linktrial && systemctl start linktrial-agent && stat -c '%a %U' /var/lib/linktrial /var/lib/linktrial/agents/bare/identity.pem"); got != "700 linktrial-agent\n600 linktrial-agent\n" {
		t.Errorf("a node of an earlier version:\n%s", got)
	}
	s.eventually(bare, "ss -Htn state established '( dport = :7700 )'", "10.231.0.1:7700")
}

// serve runs an orchestrator in the control network, and returns a token for a node.
func (s *site) serve(node string) string {
	s.t.Helper()
	s.serves = true
	dir := filepath.Join(s.Dir, "orchestrator")
	tokens := filepath.Join(dir, "tokens")
	cmd := exec.Command(filepath.Join(bin(), "linktrial"), "--data", dir, "serve", "--listen", "10.231.0.1:7700", "--issue-tokens", node, "--issue-tokens-to", tokens)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := process.StartIn(cmd, namespace.Path(s.Namespace())); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.t.Cleanup(func() {
		cmd.Process.Signal(unix.SIGTERM) // it may have ended by itself
		if err := <-ended; err != nil || s.t.Failed() {
			s.t.Logf("orchestrator: %v\n%s", err, log.String())
		}
	})
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(tokens, node+".token"))
		if err == nil {
			return strings.TrimSpace(string(b))
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the orchestrator made no token: %v", err)
		}
		if len(ended) > 0 {
			err := <-ended
			ended <- err
			s.t.Fatalf("the orchestrator has ended: %v\n%s", err, log.String())
		}
	}
}

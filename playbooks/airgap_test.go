//go:build converge

package playbooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A machine that no way leads out of becomes node and orchestrator from a bundle.
func TestAirGapped(t *testing.T) {
	s := newSite(t)
	bundle := filepath.Join(s.dir, "bundle.tar.gz")
	out, err := exec.Command(filepath.Join(bin(), "linktrial"), "bundle", "create", "--out", bundle, "--debian", suite).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	far := s.add("far", func(tg *target) {
		// Neither addresses nor lists of packages from the time when there was a network.
		tg.write(t, "etc/apt/sources.list", "deb http://deb.debian.org/debian "+suite+" main\n")
		if err := os.RemoveAll(filepath.Join(tg.root, "var/lib/apt/lists")); err != nil {
			t.Fatal(err)
		}
	})
	if out, err := s.ssh(t.Context(), far, "timeout 20 apt-get update --error-on=any"); err == nil {
		t.Fatalf("the machine has a way out:\n%s", out)
	}

	// A bundle that was cut off on its way is refused, and nothing is installed from it.
	cut := filepath.Join(s.dir, "cut.tar.gz")
	b, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, b[:len(b)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if p := s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+cut); p.err == nil ||
		!strings.Contains(p.output, "The bundle "+cut+" was cut off or damaged on its way (gzip: "+cut+": unexpected end of file); nothing was changed on any machine.") {
		t.Errorf("half a bundle: %v\n%s", p.err, p.output)
	}
	if out, err := s.ssh(t.Context(), far, "ls /usr/bin/linktrial /etc/systemd/system/linktrial-agent.service"); err == nil {
		t.Errorf("installed from half a bundle: %s", out)
	}
	gone := s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+bundle+".gone")
	if want := "There is no bundle at " + bundle + ".gone (linktrial_bundle); nothing was changed on any machine."; gone.err == nil || !strings.Contains(gone.output, want) {
		t.Errorf("no bundle: %v\n%s", gone.err, gone.output)
	}

	s.well("first run", s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+bundle))
	s.still("second run", s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+bundle))
	if got := s.on(far, "systemctl is-active linktrial-agent linktrial-orchestrator chrony; stat -c %U /var/lib/linktrial/agents/far/identity.pem"); got != "active\nactive\nactive\nlinktrial\n" {
		t.Errorf("services: %s", got)
	}
	// The machine's own package settings are as they were.
	if got := s.on(far, "cat /etc/apt/sources.list; ls /etc/apt/sources.list.d"); got != "deb http://deb.debian.org/debian "+suite+" main\n" {
		t.Errorf("sources of packages: %s", got)
	}
}

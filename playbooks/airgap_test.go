//go:build converge

package playbooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/internal/enginetest"
)

// A machine without a network becomes node and orchestrator from an install bundle.
func TestAirGapped(t *testing.T) {
	s := newSite(t)
	bundle := filepath.Join(s.Dir, "bundle.tar.gz")
	image, key := s.bundle(bundle)
	far := s.add("far", func(tg *target) {
		// The engine mounts overlay file systems, which the machine's root already is, and
		// uses system calls that systemd-nspawn does not allow by default.
		engine := filepath.Join(s.Dir, "engine")
		if err := os.Mkdir(engine, 0o711); err != nil {
			t.Fatal(err)
		}
		tg.Options = []string{"--bind=" + engine + ":/var/lib/docker", "--system-call-filter=add_key keyctl bpf"}
		// No addresses and no package lists of the time with a network.
		tg.Write("etc/apt/sources.list", "deb http://deb.debian.org/debian "+suite+" main\n")
		if err := os.RemoveAll(filepath.Join(tg.Root, "var/lib/apt/lists")); err != nil {
			t.Fatal(err)
		}
	})
	if out, err := s.ssh(t.Context(), far, "timeout 20 apt-get update --error-on=any"); err == nil {
		t.Fatalf("the machine has a way out:\n%s", out)
	}

	// A bundle that is cut off is refused, and nothing is installed from it.
	cut := filepath.Join(s.Dir, "cut.tar.gz")
	b, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, b[:len(b)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if p := s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+cut, "-e", "linktrial_unsigned=true"); p.err == nil ||
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

	// Nor is one that nobody signed, that somebody else signed, or that was changed since.
	other := s.newKey("other")
	for what, c := range map[string]struct {
		file, key, want string
	}{
		"without a key":  {bundle, "", "The bundle " + bundle + " cannot be verified: linktrial_key is not set."},
		"not signed":     {cut, key, "The bundle " + cut + " is refused: it is not signed: there is no cut.tar.gz.minisig beside it; nothing was changed on any machine."},
		"by another key": {bundle, other, "The bundle " + bundle + " is refused: it is signed by key "},
	} {
		if p := s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+c.file, "-e", "linktrial_key="+c.key); p.err == nil || !strings.Contains(p.output, c.want) {
			t.Errorf("a bundle %s: %v\n%s", what, p.err, p.output)
		}
	}
	signature, err := os.ReadFile(bundle + ".minisig")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut+".minisig", signature, 0o644); err != nil {
		t.Fatal(err)
	}
	if p := s.play("site.yml", []string{"far"}, "-e", "linktrial_bundle="+cut, "-e", "linktrial_key="+key); p.err == nil ||
		!strings.Contains(p.output, "The bundle "+cut+" is refused: it does not match its signature: it was changed after it was signed; nothing was changed on any machine.") {
		t.Errorf("a bundle that was changed: %v\n%s", p.err, p.output)
	}

	arguments := []string{"-e", "linktrial_bundle=" + bundle, "-e", "linktrial_key=" + key}
	s.well("first run", s.play("site.yml", []string{"far"}, arguments...))
	s.still("second run", s.play("site.yml", []string{"far"}, arguments...))
	if got := s.on(far, "systemctl is-active linktrial-agent linktrial-orchestrator chrony; stat -c %U /var/lib/linktrial/agents/far/identity.pem"); got != "active\nactive\nactive\nroot\n" {
		t.Errorf("services: %s", got)
	}
	// The engine has the bundle's image and does not change the machine's network; the
	// agent, which runs as root here, finds the driver in the image.
	if got := s.on(far, "docker image inspect --format '{{.Id}}' linktrial/tcp:latest; ls /sys/class/net; sysctl -n net.ipv4.ip_forward; iptables -S FORWARD; systemctl show --property=User --value linktrial-agent"); got != image+"\ncontrol0\nlo\nradio0\n0\n-P FORWARD ACCEPT\nroot\n" {
		t.Errorf("engine: %s", got)
	}
	// A kernel whose cpu controller is in the older hierarchy of control groups (v1) has
	// none for nested machines; the engine then reports that at the driver's start.
	want := "far drivers ok tcp "
	if strings.Contains(s.on(far, "docker info 2>&1"), "No cpu cfs quota support") {
		want = "far drivers warning tcp: protocol tcp: container of linktrial/tcp:latest: Error response from daemon: NanoCPUs can not be set"
	}
	if found := s.director(far).preflight("far"); !strings.Contains(found, want) {
		t.Errorf("preflight: expected %q:\n%s", want, found)
	}
	// The machine's own package settings have not changed.
	if got := s.on(far, "cat /etc/apt/sources.list; ls /etc/apt/sources.list.d"); got != "deb http://deb.debian.org/debian "+suite+" main\n" {
		t.Errorf("sources of packages: %s", got)
	}
}

// newKey makes a key that signs bundles, and returns its public part.
func (s *site) newKey(name string) string {
	s.t.Helper()
	out, err := exec.Command(filepath.Join(bin(), "linktrial"), "install-bundle", "key", "--out", filepath.Join(s.Dir, name)).CombinedOutput()
	if err != nil {
		s.t.Fatalf("key: %v\n%s", err, out)
	}
	_, public, _ := strings.Cut(string(out), "verifies: ")
	return strings.TrimSpace(public)
}

// bundle makes a signed install bundle with all package sets and one image, and returns the
// identity of the image, and the key.
func (s *site) bundle(path string) (image, key string) {
	s.t.Helper()
	engine := enginetest.Start(s.t)
	context := filepath.Join(s.Dir, "image")
	for _, name := range []string{"driver.yaml", "tcp"} {
		b, err := os.ReadFile(filepath.Join(bin(), "drivers/tcp", name))
		if err != nil {
			s.t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(context, "rootfs"), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(context, "rootfs", name), b, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	command := func(name string, args ...string) string {
		s.t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+engine.Host)
		out, err := cmd.CombinedOutput()
		if err != nil {
			s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	command("docker", "build", "--quiet", "--tag", "linktrial/tcp:latest", "--file", "../images/tcp/Dockerfile", context)
	key = s.newKey("ours")
	start := time.Now()
	out := command(filepath.Join(bin(), "linktrial"), "install-bundle", "create", "--out", path, "--debian", suite, "--key", filepath.Join(s.Dir, "ours.key"),
		"--packages", "base,drivers,docker,orchestrator", "--image", "linktrial/tcp:latest")
	s.t.Logf("bundle in %.0f s: %s", time.Since(start).Seconds(), out)
	return strings.TrimSpace(command("docker", "image", "inspect", "--format", "{{.Id}}", "linktrial/tcp:latest")), key
}

package machinetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
)

// prefix begins the names of all that a site makes; the number of the test's process follows.
const prefix = "ltp"

// Networks of a site: bridges to which each machine has an interface of this name with 0
// behind it, radio0 the one in the place of radios.
const (
	Control = "control"
	Radios  = "radios"
)

// Site is the machines of one test and the networks between them.
type Site struct {
	T    *testing.T
	Name string // of its namespaces
	Dir  string
	// Required is whether a test fails, and is not skipped, where no machine can be made.
	Required bool

	machines int
}

// New makes the networks of a site, which end with the test.
func New(t *testing.T, required bool) *Site {
	t.Helper()
	s := &Site{T: t, Name: fmt.Sprintf("%s%d", prefix, os.Getpid()), Required: required}
	if os.Geteuid() != 0 {
		s.Unavailable("needs root: boots machines with systemd-nspawn")
	}
	if _, err := exec.LookPath("systemd-nspawn"); err != nil {
		s.Unavailable("systemd-nspawn is not installed (scripts/install-deps ansible-packages)")
	}
	sweep(t, s.Name)
	// Not below the temporary folder: an overlay's folders must be unmounted before they are removed.
	s.Dir = filepath.Join("/var/tmp", s.Name)
	if err := os.MkdirAll(s.Dir, 0o711); err != nil { // an orchestrator's database in it belongs to another user
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(s.Dir); err != nil {
			t.Error(err)
		}
	})
	s.namespace(s.Namespace())
	for _, link := range []string{Control, Radios} {
		s.IP(s.Namespace(), "link", "add", link, "type", "bridge")
		s.IP(s.Namespace(), "link", "set", link, "up")
	}
	s.IP(s.Namespace(), "address", "add", "10.231.0.1/24", "dev", Control)
	return s
}

// Unavailable ends a test that this machine cannot run.
func (s *Site) Unavailable(format string, args ...any) {
	s.T.Helper()
	if s.Required {
		s.T.Fatalf(format, args...)
	}
	s.T.Skipf(format, args...)
}

// Namespace is the name of the network namespace in which the bridges are, at the control
// network's address 10.231.0.1.
func (s *Site) Namespace() string { return s.Name + "c" }

// namespace makes one that ends with the test.
func (s *Site) namespace(name string) {
	s.T.Helper()
	if err := namespace.Make(name); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		if err := namespace.Remove(name); err != nil {
			s.T.Error(err)
		}
	})
}

// IP runs ip(8) in a network namespace.
func (s *Site) IP(netns string, args ...string) {
	s.T.Helper()
	run(s.T, "ip", append([]string{"-n", netns}, args...)...)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// Add makes a machine that starts from the root file system in the folder base, and does not
// boot it. Its address in the control network is 10.231.0.11 and upwards.
func (s *Site) Add(base, name string) *Machine {
	s.T.Helper()
	s.machines++
	m := &Machine{site: s, Name: name, Address: fmt.Sprintf("10.231.0.%d", 10+s.machines), Netns: fmt.Sprintf("%sn%d", s.Name, s.machines)}
	dir := filepath.Join(s.Dir, name)
	m.Root, m.Changed = filepath.Join(dir, "root"), filepath.Join(dir, "changed")
	for _, d := range []string{m.Root, m.Changed, filepath.Join(dir, "work")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			s.T.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", base, m.Changed, filepath.Join(dir, "work"))
	if err := unix.Mount("overlay", m.Root, "overlay", 0, options); err != nil {
		s.Unavailable("mount of an overlay, %s: %v", options, err)
	}
	s.T.Cleanup(func() {
		if err := unix.Unmount(m.Root, unix.MNT_DETACH); err != nil {
			s.T.Error(err)
		}
	})
	s.namespace(m.Netns)
	for _, l := range []struct{ bridge, device string }{{Control, "control0"}, {Radios, "radio0"}} {
		peer := fmt.Sprintf("%s%d", l.bridge, s.machines)
		s.IP(s.Namespace(), "link", "add", peer, "type", "veth", "peer", "name", l.device, "netns", m.Netns)
		s.IP(s.Namespace(), "link", "set", peer, "master", l.bridge, "up")
	}
	s.IP(m.Netns, "address", "add", m.Address+"/24", "dev", "control0")
	s.IP(m.Netns, "link", "set", "control0", "up")
	m.Write("etc/hostname", name+"\n")
	return m
}

package namespace

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

func TestMakeAndRemove(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	name := fmt.Sprintf("ltname-%d", os.Getpid())
	t.Cleanup(func() {
		if err := Remove(name); err != nil {
			t.Error(err)
		}
	})
	if err := Make(name); err != nil {
		t.Fatal(err)
	}
	if err := Make(name); err == nil {
		t.Error("a name was given twice")
	}
	err := process.InNamespace(Path(name), func() error {
		i, err := net.InterfaceByName("lo")
		if err == nil && i.Flags&net.FlagUp == 0 {
			err = errors.New("loopback is down")
		}
		requireForgetful(t)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// The folder is a mount of its own, so that one made later hides nothing.
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mounts), " "+Folder+" ") && !strings.Contains(string(mounts), " /var"+Folder+" ") {
		t.Errorf("%s is not a mount", Folder)
	}
	for range 2 { // the second finds nothing
		if err := Remove(name); err != nil {
			t.Error(err)
		}
	}
	if err := unix.Access(Path(name), unix.F_OK); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the namespace's file is still there: %v", err)
	}
}

func TestNamesRefused(t *testing.T) {
	for _, name := range []string{"", "../x", "a/b", "."} {
		if err := Make(name); err == nil {
			t.Errorf("%q was taken for a name", name)
		}
	}
}

// requireForgetful holds the calling thread's namespace against what [forget] sets.
func requireForgetful(t *testing.T) {
	t.Helper()
	for name, want := range map[string]string{"ipv4/tcp_no_metrics_save": "1", "mptcp/blackhole_timeout": "0"} {
		got, err := os.ReadFile("/proc/sys/net/" + name)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without it
		}
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q (%v), expected %s", name, got, err, want)
		}
	}
}

func TestUnnamedForgets(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	f, err := Unnamed()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = process.InNamespace(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), func() error {
		requireForgetful(t)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

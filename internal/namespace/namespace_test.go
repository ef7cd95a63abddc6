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

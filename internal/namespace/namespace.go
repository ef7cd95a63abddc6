// Package namespace makes and removes named network namespaces, as ip-netns(8)
// does. Comes in: names. Goes out: namespaces with their loopback up, and
// paths to enter them by. Linux only, needs root; imports internal/process.
package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

// Folder holds a file for each named namespace.
const Folder = "/run/netns"

// Path is the file by which a named namespace is opened.
func Path(name string) string { return filepath.Join(Folder, name) }

// prepare makes the folder a mount of its own, shared, as ip-netns(8) does at
// its first use. Made later, that mount would hide the namespaces that exist
// already, and they could no longer be removed.
func prepare() error {
	if err := os.MkdirAll(Folder, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", Folder, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) { // it is a mount already
		return err
	}
	if err := unix.Mount(Folder, Folder, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s on itself: %w", Folder, err)
	}
	return unix.Mount("", Folder, "none", unix.MS_SHARED|unix.MS_REC, "")
}

// Make makes a named namespace with its loopback up and IPv6 off. Nothing of one
// connection is kept for the next, so that trials are independent.
func Make(name string) error {
	if name == "" || strings.Contains(name, "/") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%q cannot be the name of a network namespace", name)
	}
	if err := prepare(); err != nil {
		return fmt.Errorf("folder of network namespaces: %w", err)
	}
	// netns.NewNamed moves the calling thread into the new namespace, so it
	// runs where the thread is brought back afterwards.
	return process.InNamespace("/proc/self/ns/net", func() error {
		h, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("make network namespace %s: %w", name, err)
		}
		defer h.Close()
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return fmt.Errorf("namespace %s: loopback: %w", name, err)
		}
		// The lab assigns all addresses; router solicitations and duplicate
		// address detection would only be traffic on the radio.
		for _, key := range []string{"all", "default"} {
			err := os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", key, "disable_ipv6"), []byte("1"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("namespace %s: disable IPv6: %w", name, err)
			}
		}
		if err := forget(); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		return nil
	})
}

// forget has the kernel keep nothing of one connection for the next in the calling thread's
// namespace: no metrics of TCP, and no hour without Multipath TCP after a connection to
// which only plain SYNs were answered, as after an outage.
func forget() error {
	for _, x := range []struct{ name, value string }{
		{"ipv4/tcp_no_metrics_save", "1"},
		{"mptcp/blackhole_timeout", "0"},
	} {
		err := os.WriteFile(filepath.Join("/proc/sys/net", x.name), []byte(x.value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // of a later kernel, or one without it
			return fmt.Errorf("net/%s: %w", x.name, err)
		}
	}
	return nil
}

// Remove removes a namespace of [Make] that nobody uses any more; one that is
// not there is no error.
func Remove(name string) error {
	if err := netns.DeleteNamed(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// Unnamed makes a namespace that lasts as long as its file is open or somebody
// is in it. Its loopback is down; nothing of one connection is kept for the next.
func Unnamed() (*os.File, error) {
	type made struct {
		f   *os.File
		err error
	}
	ch := make(chan made)
	// The thread stays in the new namespace, and ends with it.
	process.OnThread(func() {
		var m made
		if m.err = unix.Unshare(unix.CLONE_NEWNET); m.err == nil {
			m.f, m.err = os.Open("/proc/thread-self/ns/net")
		}
		if m.err == nil {
			if m.err = forget(); m.err != nil {
				m.f.Close()
			}
		}
		ch <- m
	})
	m := <-ch
	return m.f, m.err
}

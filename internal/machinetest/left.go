package machinetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
)

// cgroups returns the folders of a control group in the hierarchies that systemd uses.
func cgroups(name string) []string {
	var out []string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
			out = append(out, filepath.Join(root, name))
		}
	}
	return out
}

// removeCgroup removes a control group with those below it. It retries while the last
// processes in it are ending.
func removeCgroup(t *testing.T, dir string) {
	var folders []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // groups go away by themselves meanwhile
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	slices.Reverse(folders)
	for _, f := range folders {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			err := unix.Rmdir(f)
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if time.Now().After(end) {
				t.Errorf("control group %s: %v", f, err)
				return
			}
		}
	}
}

// endCgroups kills the processes in a machine's control groups, which outlive a killed
// systemd-nspawn.
func endCgroups(name string) {
	for _, dir := range cgroups(name) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // there is none in the old hierarchy, nor one that has gone
	}
}

var siteForm = regexp.MustCompile(`^(` + prefix + `([0-9]+))(c|n[0-9])?$`)

// sweep removes what a killed test has left behind: sites of processes that are no more, and
// the one with the name free.
func sweep(t *testing.T, free string) {
	t.Helper()
	sites := map[string]bool{}
	for _, pattern := range append(cgroups(prefix+"*"), "/var/tmp/"+prefix+"*", namespace.Path(prefix+"*")) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			m := siteForm.FindStringSubmatch(filepath.Base(path))
			if m == nil {
				continue
			}
			// In a room of its own each test has a number that others had before it.
			if _, err := os.Stat("/proc/" + m[2]); err == nil && m[1] != free {
				continue // that test is at work
			}
			sites[m[1]] = true
		}
	}
	for name := range sites {
		dir := filepath.Join("/var/tmp", name)
		for n := range 10 {
			machine := fmt.Sprintf("%sn%d", name, n)
			endCgroups(machine)
			for _, group := range cgroups(machine) {
				if _, err := os.Stat(group); err == nil {
					removeCgroup(t, group)
				}
			}
			if _, err := os.Stat(namespace.Path(machine)); err == nil {
				run(t, "ip", "netns", "delete", machine)
			}
		}
		if _, err := os.Stat(namespace.Path(name + "c")); err == nil {
			run(t, "ip", "netns", "delete", name+"c")
		}
		roots, err := filepath.Glob(filepath.Join(dir, "*", "root"))
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots {
			_ = unix.Unmount(root, unix.MNT_DETACH) // it may not be mounted
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

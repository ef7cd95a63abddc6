package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// mounts makes the guest's file systems. The root is the host's, read-only;
// what programs may write lies over it in memory; the shared folder alone is
// the host's and writable.
func mounts(dir string) error {
	for _, m := range []struct{ source, target, kind, data string }{
		{"proc", "/proc", "proc", ""},
		{"sysfs", "/sys", "sysfs", ""},
		{"tmpfs", "/run", "tmpfs", "mode=755"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, 0, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	type mount struct {
		link, target string
		flags        uintptr
	}
	shared := []mount{{LinkShare, ShareDir, 0}, {LinkProgram, program, unix.MS_RDONLY}}
	for i := 0; ; i++ {
		if _, err := os.Lstat(filepath.Join(dir, LinkDrivers(i))); err != nil {
			break // there are no more
		}
		shared = append(shared, mount{LinkDrivers(i), filepath.Join(driversDir, strconv.Itoa(i)), unix.MS_RDONLY})
	}
	for _, m := range shared {
		source, err := filepath.EvalSymlinks(filepath.Join(dir, m.link))
		if err != nil {
			return fmt.Errorf("folder from the host: %w", err)
		}
		if m.link == LinkProgram { // only folders can be mounted, and the program may have any name
			if err := mountHost(filepath.Dir(source), programDir, m.flags); err != nil {
				return err
			}
			if err := bindFile(filepath.Join(programDir, filepath.Base(source)), m.target); err != nil {
				return err
			}
			continue
		}
		if err := mountHost(source, m.target, m.flags); err != nil {
			return err
		}
	}
	// Last, for the host's folders may lie below these.
	for _, target := range []string{"/tmp", "/var/tmp", "/dev/shm", "/mnt"} {
		err := unix.Mount("tmpfs", target, "tmpfs", 0, "mode=1777")
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("mount %s: %w", target, err)
		}
	}
	return nil
}

// mountHost mounts a folder of the host.
func mountHost(source, target string, flags uintptr) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("none", target, "hostfs", flags, source); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// bindFile lets a file be found at another path, too.
func bindFile(source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target, nil, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

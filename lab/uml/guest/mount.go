package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fileSystem is one that is mounted at a path below a root.
type fileSystem struct{ kind, target, data string }

func (f fileSystem) mount(root string) error {
	target := filepath.Join(root, f.target)
	if err := unix.Mount(f.kind, target, f.kind, 0, f.data); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// everywhere are the file systems of every root in a guest.
var everywhere = []fileSystem{{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"tmpfs", "/run", "mode=755"}}

// temporary are folders that every program may write to, in memory.
var temporary = []string{"/tmp", "/var/tmp", "/dev/shm", "/mnt"}

// mountTemporary mounts those temporary folders that there are.
func mountTemporary(root string) error {
	for _, path := range temporary {
		if err := (fileSystem{"tmpfs", path, "mode=1777"}).mount(root); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// mounts makes the guest's file systems, and returns the host's folders of drivers. The
// root is the host's, read-only; what programs may write lies over it in memory; the
// shared folder alone is the host's and writable.
func mounts(dir string) (drivers []string, err error) {
	for _, f := range everywhere {
		if err := f.mount("/"); err != nil {
			return nil, err
		}
	}
	host := func(link string) (string, error) {
		source, err := filepath.EvalSymlinks(filepath.Join(dir, link))
		if err != nil {
			return "", fmt.Errorf("folder from the host: %w", err)
		}
		return source, nil
	}
	share, err := host(LinkShare)
	if err != nil {
		return nil, err
	}
	if err := mountHost(share, ShareDir, 0); err != nil {
		return nil, err
	}
	binary, err := host(LinkProgram)
	if err != nil {
		return nil, err
	}
	// Only folders can be mounted, and the program may have any name.
	if err := mountHost(filepath.Dir(binary), programDir, unix.MS_RDONLY); err != nil {
		return nil, err
	}
	if err := bindFile(filepath.Join(programDir, filepath.Base(binary)), program); err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		if _, err := os.Lstat(filepath.Join(dir, LinkDrivers(i))); err != nil {
			break // there are no more
		}
		source, err := host(LinkDrivers(i))
		if err != nil {
			return nil, err
		}
		// Nodes mount them for themselves; here fault campaigns look which processes are drivers.
		if err := mountHost(source, driverFolder(i), unix.MS_RDONLY); err != nil {
			return nil, err
		}
		drivers = append(drivers, source)
	}
	// Last, for the host's folders may lie below these.
	return drivers, mountTemporary("/")
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

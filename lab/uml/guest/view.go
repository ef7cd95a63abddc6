package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/internal/confine"
	"linktrial/internal/driverfolder"
	"linktrial/internal/radio"
)

// View is what the processes of a node see of the guest. They have a root of their own,
// with file systems that no other node's processes reach: a shared file, lock, process or
// temporary folder would carry data from one end of a transfer to the other.
type View struct {
	// User is the number of the user that the node's drivers run as.
	User uint32 `json:"user"`
	// Drivers are the host's folders of drivers, in their order.
	Drivers []string `json:"drivers"`
	// Keep are files and folders below /run that stay visible, at the same paths.
	Keep []string `json:"keep,omitempty"`
}

const (
	// viewRoot is where the root of a node is mounted before it is entered.
	viewRoot = "/run/root"
	// privateRun is for what root alone may enter: agents reach it, and drivers, which
	// are other users, do not.
	privateRun = 0o700
	// firstUser is the first of the numbers that drivers run as, one for each node: of
	// those that systemd's list (systemd.io/UIDS-GIDS) gives to nobody.
	firstUser = 1_990_000_001
)

// view is what a node's processes see; keep is for its agent.
func (g *guest) view(role radio.Role, keep ...string) View {
	return View{User: firstUser + uint32(max(0, slices.Index(radio.Roles, role))), Drivers: g.drivers, Keep: keep} //nolint:gosec // three roles
}

// viewed makes a process the first one of the namespaces that [View.Enter] fills. The
// tracer of its parent leaves it alone.
func viewed() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_UNTRACED}
}

// devices of a node, by path below /dev, with their numbers (admin-guide/devices.txt).
var devices = []struct {
	path         string
	major, minor uint32
}{
	{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"net/tun", 10, 200},
}

// Enter makes this process, which the guest has started in namespaces of its own, and all
// that it starts see no more than the view.
func (v View) Enter() error {
	if os.Getpid() != 1 {
		return errors.New("this is the first process of a node in a guest of the virtual-time lab; only the guest starts it")
	}
	if confine.LandlockABI() == 0 {
		return errors.New("the guest's kernel has no Landlock, which keeps drivers from journals: build it again with 'linktrial lab kernel'")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of a node: %w", err)
	}
	// A superblock of its own: file locks and watches are those of the file in one.
	if err := mountHost("/", viewRoot, unix.MS_RDONLY); err != nil {
		return err
	}
	if err := v.fill(viewRoot); err != nil {
		return err
	}
	if err := os.Chdir(viewRoot); err != nil {
		return err
	}
	// pivot_root(2): with both the same folder, the old root lies above the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the root of a node: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the guest's root: %w", err)
	}
	return os.Chdir("/")
}

func (v View) fill(root string) error {
	at := func(path string) string { return filepath.Join(root, path) }
	for _, f := range append([]fileSystem{{"tmpfs", "/dev", "mode=755"}}, everywhere...) {
		if err := f.mount(root); err != nil {
			return err
		}
	}
	if err := mountTemporary(root); err != nil {
		return err
	}
	if err := os.Mkdir(at("/dev/net"), 0o755); err != nil {
		return err
	}
	for _, d := range devices {
		path := at(filepath.Join("/dev", d.path))
		if err := unix.Mknod(path, unix.S_IFCHR, int(unix.Mkdev(d.major, d.minor))); err != nil { //nolint:gosec // small numbers
			return fmt.Errorf("device %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // as udev does
			return err
		}
	}
	for i, folder := range v.Drivers {
		if err := mountHost(folder, at(driverFolder(i)), unix.MS_RDONLY); err != nil {
			return err
		}
	}
	for _, path := range v.Keep {
		if err := keep(path, at(path)); err != nil {
			return err
		}
	}
	return nil
}

// keep lets a file or a folder be found at another path, too, in folders that root alone
// may enter.
func keep(path, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), privateRun); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return bindFile(path, target)
	}
	if err := os.MkdirAll(target, privateRun); err != nil {
		return err
	}
	if err := unix.Mount(path, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// driverFolder is where the i-th folder of drivers is, on a node and outside of nodes.
func driverFolder(i int) string { return filepath.Join(driversDir, strconv.Itoa(i)) }

// DriverFolders lists them as PATH does.
func (v View) DriverFolders() string {
	var dirs []string
	for i := range v.Drivers {
		dirs = append(dirs, driverFolder(i))
	}
	return driverfolder.Join(dirs...)
}

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of landlock(7), and the ABI that brought them.
const (
	execute = unix.LANDLOCK_ACCESS_FS_EXECUTE
	reading = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	onFiles = execute | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// sockets is LANDLOCK_ACCESS_FS_RESOLVE_UNIX: to connect to a socket with a path, or
	// send to it.
	sockets = 1 << 16
	first   = 1<<13 - 1 // all rights of ABI 1
)

// everywhere is what every confined process may read and execute: the system's
// programs, libraries and settings. Homes, /var, /run, /root, /srv, /tmp and mounts
// are not among it.
var everywhere = []string{"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store"}

// kernel is what every confined process may read of the kernel.
var kernel = []string{"/proc", "/sys"}

// settings are those of the network stack. CAP_NET_ADMIN is enough for the kernel to let
// them be changed, and they hold for every other process of the node: only those who can
// make a network of their own may, for that one (protocols/scps does).
const settings = "/proc/sys/net"

const ownNetwork = "CAP_SYS_ADMIN"

// devices are those that every confined process may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/net/tun"}

// abi is the version of the kernel's Landlock; 0: it has none, or it is switched off.
var abi = sync.OnceValue(func() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
})

// LandlockABI is the version of the kernel's Landlock; 0: there is none.
func LandlockABI() int { return abi() }

// ruleset is a Landlock rule under construction; one without a kernel that knows it
// does nothing.
type ruleset struct {
	fd, abi int
	handled uint64
}

func (r *ruleset) active() bool { return r.abi > 0 }

func (r *ruleset) close() {
	if r.active() {
		_ = unix.Close(r.fd)
	}
}

// newRuleset lists what a process may reach.
func newRuleset(need Need, who User) (*ruleset, error) {
	r := &ruleset{abi: abi()}
	if !r.active() {
		return r, nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledBy(r.abi)}
	if r.abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	// The kernel takes a longer structure than it knows as long as what is beyond is 0.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("confine: Landlock ruleset: %w", errno)
	}
	r.fd, r.handled = int(fd), attr.Handled_access_fs
	if err := r.fill(need, who); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// handledBy are the rights that an ABI knows.
func handledBy(abi int) uint64 {
	h := uint64(first)
	if abi >= 2 {
		h |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		h |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		h |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 9 {
		h |= sockets
	}
	return h
}

func (r *ruleset) fill(need Need, who User) error {
	var errs []error
	add := func(rights uint64, paths ...string) {
		for _, p := range paths {
			errs = append(errs, r.allow(p, rights))
		}
	}
	add(execute|reading, everywhere...)
	add(reading, kernel...)
	if slices.Contains(need.Capabilities, ownNetwork) {
		add(reading|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE, settings)
	}
	add(reading|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, devices...)
	if who.UID == 0 {
		add(reading, readable("/etc")...)
	} else {
		add(reading, "/etc")
	}
	add(execute|reading, need.Folder, need.Program, interpreter(need.Program))
	add(execute|reading, need.Reads...)
	add(r.handled, need.Writes...)
	return errors.Join(errs...)
}

// readable are the entries of a folder that every user may read: what user 0 alone
// may, a process that still is user 0 is not to read.
func readable(folder string) (paths []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if st, err := os.Stat(path); err == nil && st.Mode().Perm()&0o004 != 0 && (st.IsDir() || st.Mode().IsRegular()) && e.Name() != "linktrial" {
			paths = append(paths, path)
		}
	}
	return paths
}

// interpreter is what the first line of a script names; "" of another file.
func interpreter(program string) string {
	f, err := os.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 256) // as much as the kernel reads (BINPRM_BUF_SIZE)
	n, _ := f.Read(b)
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	return words[0]
}

// allow adds a rule for what is below a path, or for one file. What is not there is
// passed over.
func (r *ruleset) allow(path string, rights uint64) error {
	if path == "" {
		return nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil // the process would not reach it either
	}
	if err != nil {
		return fmt.Errorf("confine: %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("confine: %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= onFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("confine: Landlock rule for %s: %w", path, errno)
	}
	return nil
}

// enforce applies the rule to the calling thread and what it starts.
func (r *ruleset) enforce() error {
	if !r.active() {
		return nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("confine: Landlock: %w", errno)
	}
	return nil
}

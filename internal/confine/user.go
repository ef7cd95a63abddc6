package confine

import (
	"bufio"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

// Account is the user that confined processes run as where a machine has it.
const Account = "linktrial-driver"

// unassigned is the user that they run as elsewhere: systemd's list of user numbers
// (systemd.io/UIDS-GIDS) gives 1879048192 to 2147483646 to nobody.
const unassigned = 1_990_000_000

// nobody is the user of a user namespace that has few numbers.
const nobody = 65534

// User is whom a confined process runs as.
type User struct {
	UID, GID uint32
	name     string
	changed  bool   // it is another than this process's
	why      string // why it is not [Account]'s
}

// String words the user.
func (u User) String() string {
	text := "user " + u.name
	if u.name == "" {
		text = fmt.Sprintf("user %d", u.UID)
	}
	if u.why != "" {
		text += " (" + u.why + ")"
	}
	return text
}

// own is the user of this process.
func own(why string) User {
	return User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), why: why}
}

// account is whom processes can be run as, and what this process can do about it.
var account = sync.OnceValue(func() User {
	if !changes() {
		return own(changesNone)
	}
	if a, err := user.Lookup(Account); err == nil {
		uid, err1 := strconv.ParseUint(a.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(a.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return User{UID: uint32(uid), GID: uint32(gid), name: Account, changed: true}
		}
	}
	for _, id := range []uint32{unassigned, nobody} {
		if mapped("/proc/self/uid_map", id) && mapped("/proc/self/gid_map", id) {
			return User{UID: id, GID: id, changed: true}
		}
	}
	return own("the agent's own: its user namespace has no other")
})

// changesNone is why processes run as this process's own user.
const changesNone = "the agent's own: it may not start processes as others"

// changes reports whether this process may start others as other users, and end them.
func changes() bool { return held(unix.CAP_SETUID) && held(unix.CAP_SETGID) && held(unix.CAP_KILL) }

// wanted is whom a process is to run as.
func wanted(need Need) User {
	switch {
	case need.User == 0:
		return account()
	case !changes():
		return own(changesNone)
	}
	return User{UID: need.User, GID: need.User, changed: true}
}

// mapped reports whether a number is in a user namespace's list (user_namespaces(7)).
func mapped(file string, id uint32) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var inside, outside, n uint64
		if _, err := fmt.Sscan(s.Text(), &inside, &outside, &n); err == nil && uint64(id) >= inside && uint64(id) < inside+n {
			return true
		}
	}
	return false
}

// choose is whom a process runs as: the wanted user where that one reaches the program,
// else the program's owner, else this process's own user. Somebody's own program in a
// folder that nobody else may enter keeps working so. It makes the process's temporary
// folder, because a thread of that user is there.
func choose(need Need) (who User, temp string, err error) {
	who = wanted(need)
	if !who.changed {
		temp, err = makeTemp(who)
		return who, temp, err
	}
	reaches, temp, err := prepare(who, need)
	if reaches {
		return who, temp, err
	}
	if os.Geteuid() == 0 {
		var st unix.Stat_t
		if err := unix.Stat(need.Program, &st); err == nil && st.Uid != 0 {
			owner := User{UID: st.Uid, GID: st.Gid, changed: true, why: "owner of the driver, which others may not execute"}
			if reaches, temp, err = prepare(owner, need); reaches {
				return owner, temp, err
			}
		}
	}
	who = own("the agent's own: others may not execute the driver")
	temp, err = makeTemp(who)
	return who, temp, err
}

// prepare reports whether a user may execute a program and read its folder, and makes a
// temporary folder of that user where it may.
func prepare(who User, need Need) (reaches bool, temp string, err error) {
	as(who, func() {
		reaches = unix.Faccessat(unix.AT_FDCWD, need.Program, unix.X_OK, unix.AT_EACCESS) == nil &&
			unix.Faccessat(unix.AT_FDCWD, need.Folder, unix.R_OK|unix.X_OK, unix.AT_EACCESS) == nil
		if reaches {
			temp, err = makeTemp(who)
		}
	})
	return reaches, temp, err
}

// as runs f on a thread that reaches files as a user does, and waits for it.
func as(who User, f func()) {
	if !who.changed {
		f()
		return
	}
	done := make(chan struct{})
	process.OnThread(func() {
		defer close(done)
		// Raw calls, which change this thread alone. User and group of its files only:
		// nothing else of the thread is another's.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(who.GID), 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(who.UID), 0, 0)
		// They report the value before; a value that cannot be is how to ask.
		if uid, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, ^uintptr(0), 0, 0); uint32(uid) != who.UID {
			return
		}
		f()
	})
	<-done
}

// makeTemp makes a folder that its user alone may enter; the calling thread is [as] it.
func makeTemp(who User) (path string, err error) {
	for _, parent := range slices.Compact([]string{os.TempDir(), "/tmp"}) {
		if path, err = os.MkdirTemp(parent, tempPrefix); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("temporary folder of a driver, as %s: %w", who, err)
}

const tempPrefix = "linktrial-driver-"

// Remove removes the process's temporary folder.
func (p *Process) Remove() {
	if p != nil {
		removeTemp(p.Temp, p.user)
	}
}

func removeTemp(path string, who User) {
	as(who, func() { _ = os.RemoveAll(path) }) // what stays is in the folder for temporary files
}

// RemoveTemp removes a temporary folder that an earlier, killed process has left.
func RemoveTemp(path string) {
	var st unix.Stat_t
	if !strings.HasPrefix(filepath.Base(path), tempPrefix) || unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	removeTemp(path, User{UID: st.Uid, GID: st.Gid, changed: int(st.Uid) != os.Geteuid()})
}

// Open opens a regular file of the process's temporary folder as the process itself
// would: a link in there leads nowhere that it could not go to.
func (p *Process) Open(path string) (f *os.File, err error) {
	err = fmt.Errorf("%s: %w", path, os.ErrPermission)
	as(p.user, func() {
		var fd int
		if fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
			return
		}
		f = os.NewFile(uintptr(fd), path)
	})
	return f, err
}

// MakeFolder makes a folder within the process's temporary folder.
func (p *Process) MakeFolder(name string) (path string, err error) {
	path = filepath.Join(p.Temp, name)
	err = fmt.Errorf("%s: %w", path, os.ErrPermission)
	as(p.user, func() { err = os.Mkdir(path, 0o700) })
	return path, err
}

// List lists a folder of the process.
func (p *Process) List(path string) (entries []os.DirEntry, err error) {
	err = fmt.Errorf("%s: %w", path, os.ErrPermission)
	as(p.user, func() { entries, err = os.ReadDir(path) })
	return entries, err
}

// capabilityNames has the numbers of capabilities (linux/capability.h) that a manifest can name.
var capabilityNames = map[string]uintptr{
	"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
	"CAP_FOWNER": unix.CAP_FOWNER, "CAP_FSETID": unix.CAP_FSETID, "CAP_KILL": unix.CAP_KILL, "CAP_SETGID": unix.CAP_SETGID,
	"CAP_SETUID": unix.CAP_SETUID, "CAP_SETPCAP": unix.CAP_SETPCAP, "CAP_LINUX_IMMUTABLE": unix.CAP_LINUX_IMMUTABLE,
	"CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "CAP_NET_BROADCAST": unix.CAP_NET_BROADCAST, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN,
	"CAP_NET_RAW": unix.CAP_NET_RAW, "CAP_IPC_LOCK": unix.CAP_IPC_LOCK, "CAP_IPC_OWNER": unix.CAP_IPC_OWNER,
	"CAP_SYS_MODULE": unix.CAP_SYS_MODULE, "CAP_SYS_RAWIO": unix.CAP_SYS_RAWIO, "CAP_SYS_CHROOT": unix.CAP_SYS_CHROOT,
	"CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE, "CAP_SYS_PACCT": unix.CAP_SYS_PACCT, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN,
	"CAP_SYS_BOOT": unix.CAP_SYS_BOOT, "CAP_SYS_NICE": unix.CAP_SYS_NICE, "CAP_SYS_RESOURCE": unix.CAP_SYS_RESOURCE,
	"CAP_SYS_TIME": unix.CAP_SYS_TIME, "CAP_SYS_TTY_CONFIG": unix.CAP_SYS_TTY_CONFIG, "CAP_MKNOD": unix.CAP_MKNOD,
	"CAP_LEASE": unix.CAP_LEASE, "CAP_AUDIT_WRITE": unix.CAP_AUDIT_WRITE, "CAP_AUDIT_CONTROL": unix.CAP_AUDIT_CONTROL,
	"CAP_SETFCAP": unix.CAP_SETFCAP, "CAP_MAC_OVERRIDE": unix.CAP_MAC_OVERRIDE, "CAP_MAC_ADMIN": unix.CAP_MAC_ADMIN,
	"CAP_SYSLOG": unix.CAP_SYSLOG, "CAP_WAKE_ALARM": unix.CAP_WAKE_ALARM, "CAP_BLOCK_SUSPEND": unix.CAP_BLOCK_SUSPEND,
	"CAP_AUDIT_READ": unix.CAP_AUDIT_READ, "CAP_PERFMON": unix.CAP_PERFMON, "CAP_BPF": unix.CAP_BPF,
	"CAP_CHECKPOINT_RESTORE": unix.CAP_CHECKPOINT_RESTORE,
}

// withheld are capabilities that would undo the confinement, or set the clock that times
// are by, whatever a manifest asks for.
var withheld = []string{"CAP_SYS_TIME", "CAP_SYS_BOOT", "CAP_SYS_CHROOT", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETFCAP", "CAP_KILL", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",
	"CAP_FOWNER", "CAP_CHOWN", "CAP_SYS_PTRACE", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_MKNOD", "CAP_CHECKPOINT_RESTORE"}

// granted are the capabilities that a process gets, sorted: those that it asks for and
// this process has.
func granted(asked []string) []string {
	var out []string
	for _, c := range asked {
		if n, known := capabilityNames[c]; known && held(n) && !slices.Contains(withheld, c) {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func numbers(names []string) []uintptr {
	var out []uintptr
	for _, n := range names {
		out = append(out, capabilityNames[n])
	}
	return out
}

// held reports whether this process has a capability and can pass it on.
func held(c uintptr) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	if data[c/32].Effective&(1<<(c%32)) == 0 {
		return false
	}
	in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
	return err == nil && in == 1
}

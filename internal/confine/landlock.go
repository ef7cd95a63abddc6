package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Rights of landlock(7).
const (
	execute   = ll.AccessFSExecute
	reading   = ll.AccessFSReadFile | ll.AccessFSReadDir
	writing   = ll.AccessFSWriteFile | ll.AccessFSTruncate
	toDevices = ll.AccessFSIoctlDev
	onFiles   = execute | ll.AccessFSReadFile | writing | toDevices // of those that a file can have
)

// byABI is what each version of Landlock can restrict, the first one first. A newer
// kernel's are those of the last one here.
var byABI = []landlock.Config{landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9}

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
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
})

// LandlockABI is the version of the kernel's Landlock; 0: there is none.
func LandlockABI() int { return abi() }

// ruleset is a Landlock rule that one thread can be put under; one without a kernel that
// knows it does nothing.
type ruleset struct {
	fd, abi int
	flags   uint32
}

func (r *ruleset) active() bool { return r.abi > 0 }

func (r *ruleset) close() {
	if r.active() {
		_ = unix.Close(r.fd)
	}
}

// newRuleset lists what a process may reach. All that this kernel's Landlock can restrict of
// files, signals and abstract sockets is; the network is the driver's work.
func newRuleset(need Need, who User) (*ruleset, error) {
	r := &ruleset{abi: abi()}
	if !r.active() {
		return r, nil
	}
	all := byABI[min(r.abi, len(byABI))-1]
	all = landlock.Config{HandledAccessFS: all.HandledAccessFS, Scoped: all.Scoped}
	rules, err := rulesFor(need, who, all.HandledAccessFS)
	if err != nil {
		return nil, err
	}
	if r.fd, r.flags, err = all.NewRulesetFD(rules...); err != nil {
		return nil, fmt.Errorf("confine: Landlock: %w", err)
	}
	return r, nil
}

// rulesFor are the rules of what a process needs; handled are the rights that there are.
func rulesFor(need Need, who User, handled landlock.AccessFSSet) (rules []landlock.Rule, err error) {
	var errs []error
	add := func(rights landlock.AccessFSSet, paths ...string) {
		for _, p := range paths {
			rule, err := allow(p, rights&handled)
			errs = append(errs, err)
			if rule != nil {
				rules = append(rules, rule)
			}
		}
	}
	add(execute|reading, everywhere...)
	add(reading, kernel...)
	if slices.Contains(need.Capabilities, ownNetwork) {
		add(reading|writing, settings)
	}
	add(reading|writing|toDevices, devices...)
	if who.UID == 0 {
		add(reading, readable("/etc")...)
	} else {
		add(reading, "/etc")
	}
	add(execute|reading, need.Folder, need.Program, interpreter(need.Program))
	add(execute|reading, need.Reads...)
	add(handled, need.Writes...)
	return rules, errors.Join(errs...)
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

// allow is a rule for what is below a path, or for one file; nil of what is not there, or
// what the process would not reach without a rule either.
func allow(path string, rights landlock.AccessFSSet) (landlock.Rule, error) {
	if path == "" {
		return nil, nil
	}
	st, err := os.Stat(path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	if !st.IsDir() {
		rights &= onFiles
	}
	return landlock.PathAccess(rights, path).IgnoreIfMissing(), nil
}

// enforce applies the rule to the calling thread and what it starts.
func (r *ruleset) enforce() error {
	if !r.active() {
		return nil
	}
	if err := ll.LandlockRestrictSelf(r.fd, r.flags); err != nil {
		return fmt.Errorf("confine: Landlock: %w", err)
	}
	return nil
}

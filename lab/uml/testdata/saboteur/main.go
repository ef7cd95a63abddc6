// Command saboteur is a driver that tries what a driver in a guest of the virtual-time lab
// must not be able to do: to write what the run's results are made of, and to carry data to
// the other end past the radios. The client names on standard error what both ends could
// do, and fails.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
)

// holdArgument has the program hold a lock until it is killed.
const holdArgument = "hold-lock"

func main() {
	if len(os.Args) > 1 && os.Args[1] == holdArgument {
		if err := lock(); err != nil {
			os.Exit(1)
		}
		fmt.Println("locked")
		time.Sleep(time.Hour)
	}
	doc, err := bufio.NewReader(os.Stdin).ReadBytes('\n') // a client's payload follows
	if err != nil {
		os.Exit(contract.ExitFailed)
	}
	p, err := contract.ParseParameters(doc)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(contract.ExitFailed)
	}
	run, _ := p.Options["run"].(string)
	switch p.Role {
	case contract.RoleServer:
		err = server(p, run)
	case contract.RoleClient:
		err = client(p, run)
	default:
		say(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "saboteur"}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(contract.ExitFailed)
	}
}

func say(e contract.Event) { _ = json.NewEncoder(os.Stdout).Encode(e) }

// offer is what the client has laid out for the other end to find.
type offer struct{ Temp, Secret, Socket, Name string }

func server(p *contract.Parameters, run string) error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() { <-end; os.Exit(0) }()
	l, err := net.Listen("tcp", net.JoinHostPort(p.Local.Address, strconv.Itoa(p.Local.Port)))
	if err != nil {
		return err
	}
	before := settings()
	say(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "saboteur"}})
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		var o offer
		if err := json.NewDecoder(c).Decode(&o); err == nil {
			did := append(found(o), done([]try{{"found a changed setting", func() error { return differ(before) }}})...)
			did = append(did, alone(run)...)
			_ = json.NewEncoder(c).Encode(did)
		}
		c.Close()
	}
}

func client(p *contract.Parameters, run string) error {
	say(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "saboteur"}})
	c, err := net.Dial("tcp", net.JoinHostPort(p.Remote.Address, strconv.Itoa(p.Remote.Port)))
	if err != nil {
		return err
	}
	defer c.Close()
	o, err := layOut()
	if err != nil {
		return err
	}
	before := settings()
	for path, value := range before {
		_ = os.WriteFile(path, []byte(strconv.Itoa(value+1)), 0) // many have a bound
	}
	if err := json.NewEncoder(c).Encode(o); err != nil {
		return err
	}
	var there []string
	if err := json.NewDecoder(c).Decode(&there); err != nil {
		return err
	}
	// First what it finds: what it mounts would hide its offer.
	own := append(found(o), done([]try{{"found a changed setting", func() error { return differ(before) }}})...)
	// Else the node's agent does, and the attempt does not count.
	for path, value := range before {
		_ = os.WriteFile(path, []byte(strconv.Itoa(value)), 0)
	}
	own = append(own, alone(run)...)
	return fmt.Errorf("client did: %s;\nserver did: %s;\nlevel of the client: user %d", strings.Join(own, ", "), strings.Join(there, ", "), os.Getuid())
}

// try is one thing that a driver tries; nil means that it could.
type try struct {
	name string
	do   func() error
}

func done(tries []try) (did []string) {
	for _, t := range tries {
		if t.do() == nil {
			did = append(did, t.name)
		}
	}
	return did
}

// alone is what a driver tries without the other end.
func alone(run string) []string {
	tries := []try{
		{"temporary", func() error { return write(filepath.Join(os.TempDir(), "own")) }}, // which is allowed
		{"usr", func() error { _, err := os.ReadFile("/usr/bin/env"); return err }},      // and this
		{"emulator", func() error { return dial("/run/radios/emulator.sock") }},
		{"list lab", func() error { _, err := os.ReadDir("/run/lab"); return err }},
		{"root", func() error { _, err := os.ReadDir("/root"); return err }},
		{"write driver", func() error { return write("saboteur.new") }},
		{"memory", func() error { return open("/dev/mem") }},
		{"kernel memory", func() error { return open("/proc/kcore") }},
		{"device", func() error {
			return unix.Mknod(filepath.Join(os.TempDir(), "mem"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1)))
		}},
		{"mount tmpfs", func() error { return unix.Mount("tmpfs", os.TempDir(), "tmpfs", 0, "") }},
		{"mount host", mountHost},
		{"clock", func() error {
			now := unix.NsecToTimeval(time.Now().UnixNano())
			return unix.Settimeofday(&now)
		}},
		{"power off", func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) }},
		{"user", func() error { return unix.Setuid(0) }},
		{"chroot", func() error { return unix.Chroot(os.TempDir()) }},
		{"core pattern", func() error { return write("/proc/sys/kernel/core_pattern") }},
	}
	for _, role := range []string{"client", "relay", "server"} {
		state := filepath.Join("/run/lab", run, role)
		journal := filepath.Join(state, "runs", run, "journal.jsonl")
		tries = append(tries,
			try{"journal of " + role, func() error { return open(journal) }},
			try{"size of the journal of " + role, func() error { _, err := os.Stat(journal); return err }},
			try{"state of " + role, func() error { return write(filepath.Join(state, "x")) }},
			try{"namespace of " + role, func() error { return enter(filepath.Join("/run/netns", role)) }},
			try{"clock of " + role, func() error { return write("/run/radios/emulator.sock." + role + ".clock") }},
		)
	}
	tries = append(tries, try{"sheet", func() error { return open(filepath.Join("/run/lab", run, "sheet.json")) }})
	return append(done(tries), processes()...)
}

// processNumbers are those that are tried, without a look at which there are.
const processNumbers = 400

// processes is what a driver can do to processes that it has not started.
func processes() (did []string) {
	for pid := 1; pid < processNumbers; pid++ {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		if b, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.Contains(string(b), holdArgument) {
			continue // its own child
		}
		if _, err := os.Stat(filepath.Join("/proc/self/task", strconv.Itoa(pid))); err == nil {
			continue // itself
		}
		did = append(did, done([]try{
			{"signal", func() error { return unix.Kill(pid, 0) }},
			{"trace", func() error { return unix.PtraceSeize(pid) }},
			{"environment", func() error { _, err := os.ReadFile(filepath.Join(dir, "environ")); return err }},
			{"memory of a process", func() error { return open(filepath.Join(dir, "mem")) }},
			{"files of a process", func() error { _, err := os.ReadDir(filepath.Join(dir, "fd")); return err }},
			{"root of a process", func() error { _, err := os.ReadDir(filepath.Join(dir, "root")); return err }},
			{"namespace of a process", func() error { return enter(filepath.Join(dir, "ns", "net")) }},
			{"interface to a process", func() error { return move(pid) }},
		})...)
	}
	slices.Sort(did)
	return slices.Compact(did)
}

func write(path string) error { return os.WriteFile(path, []byte("x"), 0o666) }

// open opens a file to write.
func open(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func dial(path string) error {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return err
}

// enter enters another network namespace on the calling thread.
func enter(path string) error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	if that, err := os.Readlink(path); err == nil && that == own {
		return errors.New("it is the node's own")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// move makes an interface whose packets this process could read and write, and moves it
// into the network of a process on another node.
func move(pid int) error {
	const name = "bridge"
	if err := netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TUN}); err != nil {
		return err
	}
	t, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsPid(t, pid); err != nil {
		return errors.Join(err, netlink.LinkDel(t))
	}
	if netlink.LinkDel(t) == nil {
		return errors.New("it is of the same node")
	}
	return nil
}

// mountHost mounts the host's file system without a place in the tree.
func mountHost() error {
	fs, err := unix.Fsopen("hostfs", 0)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	m, err := unix.Fsmount(fs, 0, 0)
	if err != nil {
		return err
	}
	defer unix.Close(m)
	fd, err := unix.Openat(m, "etc/hostname", unix.O_RDONLY, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// locked are files that both ends can read: locks of them are seen by others.
var locked = []string{"/usr/bin/env", "/dev/null", "/proc/version", "/sys/class/net", "/run/drivers/0/saboteur/driver.yaml"}

// lock takes a lock of each of these files and keeps it.
func lock() error {
	taken := 0
	for _, path := range locked {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		if err != nil {
			continue
		}
		l := unix.Flock_t{Type: unix.F_RDLCK, Start: 4711, Len: 1}
		if unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &l) == nil {
			taken++
		}
	}
	if taken < 3 {
		return errors.New("no files can be locked")
	}
	return nil
}

// seen reports whether somebody else has locked a file.
func seen(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: 4711, Len: 1}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &l); err != nil {
		return err
	}
	if l.Type == unix.F_UNLCK {
		return errors.New("nobody has")
	}
	return nil
}

const payload = "payload past the radio"

// layOut leaves payload wherever the other end might look.
func layOut() (offer, error) {
	o := offer{Temp: os.TempDir(), Socket: filepath.Join(os.TempDir(), "socket"), Name: "saboteur-of-the-client"}
	o.Secret = filepath.Join(o.Temp, "payload")
	if err := os.WriteFile(o.Secret, []byte(payload), 0o666); err != nil {
		return o, err
	}
	for _, path := range []string{o.Temp, o.Secret} {
		if err := os.Chmod(path, 0o777); err != nil {
			return o, err
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/mnt", "/run", "/dev"} {
		_ = os.WriteFile(filepath.Join(dir, o.Name), []byte(payload), 0o666) // tried, not expected
	}
	l, err := net.Listen("unix", o.Socket)
	if err != nil {
		return o, err
	}
	if err := os.Chmod(o.Socket, 0o777); err != nil {
		return o, err
	}
	abstract, err := net.Listen("unix", "@"+o.Name)
	if err != nil {
		return o, err
	}
	for _, l := range []net.Listener{l, abstract} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
	}
	_ = unix.Sethostname([]byte(o.Name)) // seen by who has the same
	hold := exec.Command(os.Args[0], holdArgument, o.Name)
	out, err := hold.StdoutPipe()
	if err != nil {
		return o, err
	}
	hold.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := hold.Start(); err != nil {
		return o, err
	}
	_, err = io.ReadFull(out, make([]byte, len("locked\n")))
	return o, err
}

// found is what an end finds of the client's offer. The client finds all of it: what it
// looks for is there.
func found(o offer) []string {
	tries := []try{
		{"found its file", func() error { return reads(o.Secret) }},
		{"found its folder", func() error { _, err := os.Stat(o.Temp); return err }},
		{"found its socket", func() error { return dial(o.Socket) }},
		{"found its abstract socket", func() error { return dial("@" + o.Name) }},
		{"found its command line", func() error { return runs(o.Name) }},
		{"found its host name", func() error {
			if name, err := os.Hostname(); err != nil || name != o.Name {
				return errors.New("another")
			}
			return nil
		}},
	}
	for _, path := range locked {
		tries = append(tries, try{"found its lock of " + path, func() error { return seen(path) }})
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/mnt", "/run", "/dev"} {
		tries = append(tries, try{"found a file in " + dir, func() error { return reads(filepath.Join(dir, o.Name)) }})
	}
	return done(tries)
}

// settings are those of the kernel's network that are a number, by path.
func settings() map[string]int {
	values := map[string]int{}
	_ = filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				values[path] = n
			}
		}
		return nil
	})
	return values
}

// differ reports whether a setting is another than before.
func differ(before map[string]int) error {
	now := settings()
	for path, value := range before {
		if now[path] != value {
			return nil
		}
	}
	return errors.New("none is")
}

func reads(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && string(b) != payload {
		err = errors.New("another")
	}
	return err
}

// runs reports whether a process with that in its command line is seen.
func runs(name string) error {
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lists {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), name) {
			return nil
		}
	}
	return errors.Join(err, errors.New("none"))
}

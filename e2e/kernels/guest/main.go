// Command guest is the first process of an emulated machine (e2e/kernels/machine):
// it mounts what programs expect, loads the modules, runs /tests, and switches
// the machine off. Comes in: modules in /modules, the program /tests. Goes out:
// records on the second serial line, of which the last is the exit code.
package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"linktrial/e2e/kernels/machine"
)

const tests = "/tests"

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this program is the first process of an emulated machine, and nothing else; make test-kernels runs it there")
		os.Exit(1)
	}
	code, err := run()
	if err != nil {
		fmt.Println("guest:", err)
	}
	if err := tell(code, err); err != nil {
		fmt.Println("guest:", err)
	}
	unix.Sync()
	// Without it the kernel panics, because its first process has ended.
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("guest: power off:", err)
	}
}

func run() (int, error) {
	if err := mounts(); err != nil {
		return 1, err
	}
	if err := raw(machine.RecordDevice); err != nil {
		return 1, err
	}
	if err := modules(); err != nil {
		return 1, err
	}
	pattern, err := os.ReadFile(machine.TestPattern)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // without the file, all
		return 1, fmt.Errorf("which tests to run: %w", err)
	}
	return execute(tests, "-test.v", "-test.timeout=0", "-test.run="+string(pattern))
}

// mounts makes the file systems that the kernel serves.
func mounts() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"},
		{"tmpfs", "/run"}, {"tmpfs", "/tmp"}, {"tmpfs", "/dev/shm"},
		{"bpf", "/sys/fs/bpf"}, {"cgroup2", "/sys/fs/cgroup"}, {"tracefs", "/sys/kernel/tracing"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil && !errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return os.MkdirAll("/run/netns", 0o755)
}

// raw makes a serial line carry bytes as they are.
func raw(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("the line for records: %w", err)
	}
	defer f.Close()
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return fmt.Errorf("the line for records: %w", err)
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ICANON
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t); err != nil {
		return fmt.Errorf("the line for records: %w", err)
	}
	return nil
}

func modules() error {
	order, err := os.ReadFile(machine.ModuleOrder)
	if err != nil {
		return fmt.Errorf("load the modules: %w", err)
	}
	for name := range strings.FieldsSeq(string(order)) {
		b, err := os.ReadFile(path.Join(machine.ModuleFolder, name))
		if err != nil {
			return fmt.Errorf("load the modules: %w", err)
		}
		if err := unix.InitModule(b, ""); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load the module %s: %w", name, err)
		}
	}
	return nil
}

// execute runs a program to its end, and waits for every process whose parent
// has ended before it, which only the first process can do.
func execute(args ...string) (int, error) {
	p, err := os.StartProcess(args[0], args, &os.ProcAttr{
		Dir: "/tmp", Env: []string{"PATH=/bin:/sbin", "HOME=/tmp", "TMPDIR=/tmp"}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 1, fmt.Errorf("start the tests: %w", err)
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the tests: %w", err)
		case pid != p.Pid:
		case status.Exited():
			return status.ExitStatus(), nil
		case status.Signaled():
			return 1, fmt.Errorf("the tests ended by signal %s", status.Signal())
		}
	}
}

// tell writes the last record.
func tell(code int, cause error) error {
	if cause != nil {
		return nil // without it, the host shows the console
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("the kernel's name: %w", err)
	}
	f, err := os.OpenFile(machine.RecordDevice, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("the line for records: %w", err)
	}
	_, err = f.Write(machine.ExitLine(code, unix.ByteSliceToString(u.Release[:])))
	if err == nil {
		// What the line still holds would go down with the machine.
		err = unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1)
	}
	return errors.Join(err, f.Close())
}

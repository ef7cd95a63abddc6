package tun

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// device is one node's end of the radio network.
type device struct {
	name string
	node node
	fd   int
	keep bool // it outlives this process
	// Where it is: the network namespace, as /proc/self/ns/net names it, and the interface's
	// index there.
	namespace string
	index     int
}

// transmitQueuePackets is how many packets the kernel holds between a sender
// and the loop. The radio's own queue is the emulator's; this one only has to
// outlast a busy moment of the loop.
const transmitQueuePackets = 1000

func openDevice(name string, n node, mtu int, keep bool) (*device, error) {
	d := &device{name: name, node: n, fd: -1, keep: keep}
	err := d.in(func() error {
		if err := d.create(); err != nil {
			return err
		}
		if err := d.configure(mtu); err != nil {
			return err
		}
		return d.locate()
	})
	if err != nil {
		d.close()
		return nil, fmt.Errorf("device %s of node %s: %w", name, n.role, err)
	}
	return d, nil
}

// locate notes where the device is. It runs inside the device's namespace.
func (d *device) locate() error {
	var err error
	if d.namespace, err = os.Readlink("/proc/thread-self/ns/net"); err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	l, err := netlink.LinkByName(d.name)
	if err != nil {
		return err
	}
	d.index = l.Attrs().Index
	return nil
}

// in runs f inside the device's network namespace.
func (d *device) in(f func() error) error {
	if d.node.netns == "" {
		return f()
	}
	return process.InNamespace(d.node.netns, f)
}

func (d *device) create() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV):
		return errors.New("this machine has no /dev/net/tun: load it with 'modprobe tun'")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return errors.New("opening /dev/net/tun needs root")
	case err != nil:
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	d.fd = fd
	ifr, err := unix.NewIfreq(d.name)
	if err != nil {
		return err
	}
	if err := d.number(); err != nil {
		return err
	}
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if !d.keep {
		flags |= unix.IFF_TUN_EXCL // one that is there is not this process's
	}
	ifr.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		if errors.Is(err, unix.EBUSY) {
			return errors.New("there is such a device already")
		}
		if errors.Is(err, unix.EPERM) {
			return errors.New("making a TUN device needs root")
		}
		return fmt.Errorf("make the TUN device: %w", err)
	}
	if d.keep {
		if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
			return fmt.Errorf("keep the TUN device: %w", err)
		}
	}
	// No segmentation offload: what the loop reads is what goes on the air.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETOFFLOAD, 0); errno != 0 {
		return fmt.Errorf("turn offloads off: %w", errno)
	}
	return nil
}

// deviceIndex is the interface's number where nobody else has it. A socket that
// is bound to the interface keeps the number, not the name: a listener would be
// deaf once the radio has been made anew with another one.
const deviceIndex = 0x4c54

// number asks for deviceIndex before the device is made.
func (d *device) number() error {
	_, err := netlink.LinkByIndex(deviceIndex)
	var none netlink.LinkNotFoundError
	switch {
	case err == nil:
		return nil // the kernel chooses another
	case !errors.As(err, &none):
		return fmt.Errorf("look for interface %d: %w", deviceIndex, err)
	}
	if err := unix.IoctlSetPointerInt(d.fd, unix.TUNSETIFINDEX, deviceIndex); err != nil {
		return fmt.Errorf("number of the TUN device: %w", err)
	}
	return nil
}

// configure sets a new device up. One that an emulator before this one has set up is as
// that one left it, or as somebody changed it since: that is not undone, so that what
// happens to an interface does not end with the emulator.
func (d *device) configure(mtu int) error {
	// Router solicitations and the like would be noise on the radio.
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+d.name+"/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("disable IPv6: %w", err)
	}
	l, err := netlink.LinkByName(d.name)
	if err != nil {
		return err
	}
	if _, ok := ofEmulator(l); ok {
		return nil // its MTU is that of the network which is configured next
	}
	if err := netlink.LinkSetTxQLen(l, transmitQueuePackets); err != nil {
		return fmt.Errorf("set queue length: %w", err)
	}
	a, err := netlink.ParseAddr(fmt.Sprintf("%s/%d", d.node.address, radio.PrefixBits))
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(l, a); err != nil {
		return fmt.Errorf("set address %s: %w", a, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return changeMTU(l, mtu) // last: with it the device is complete
}

func (d *device) setMTU(mtu int) error {
	return d.in(func() error {
		l, err := netlink.LinkByName(d.name)
		if err != nil {
			return err
		}
		return changeMTU(l, mtu)
	})
}

// aliasForm is the alias of a device that is set up; the number is the MTU that it has
// from the emulator.
const aliasForm = "linktrial mtu %d"

// ofEmulator returns the MTU that a device has from an emulator, and false where none has
// set it up.
func ofEmulator(l netlink.Link) (mtu int, ok bool) {
	n, err := fmt.Sscanf(l.Attrs().Alias, aliasForm, &mtu)
	return mtu, err == nil && n == 1
}

// changeMTU gives a device an MTU where an emulator has not given it that already: what
// it has instead somebody else has set, and who watches the interface says so.
func changeMTU(l netlink.Link, mtu int) error {
	if has, ok := ofEmulator(l); ok && has == mtu {
		return nil
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set MTU %d: %w", mtu, err)
	}
	if err := netlink.LinkSetAlias(l, fmt.Sprintf(aliasForm, mtu)); err != nil {
		return fmt.Errorf("set alias: %w", err)
	}
	return nil
}

// close removes the device, unless it is to be kept: it lives as long as its file.
func (d *device) close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
		d.fd = -1
	}
}

// The loop's own system calls go past Go's scheduler: each costs the call and
// nothing else. They must not block for long, for the scheduler would wait.

func rawRead(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), e
}

func rawWrite(fd int, b []byte) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return e
}

func rawSetTimer(fd int, absolute int64) unix.Errno {
	it := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, absolute))} // 0 would disarm it
	_, _, e := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&it)), 0, 0, 0)
	return e
}

func rawEpollWait(ep int, events []unix.EpollEvent, timeoutMilliseconds int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(timeoutMilliseconds), 0, 0)
	return int(n), e
}

// blockingEpollWait lets Go's scheduler go on with other work meanwhile.
func blockingEpollWait(ep int, events []unix.EpollEvent) (int, unix.Errno) {
	forever := -1
	n, _, e := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(forever), 0, 0)
	return int(n), e
}

// yieldToOthers makes the calling goroutine's thread give way to others. The
// thread ends with the goroutine.
func yieldToOthers() {
	runtime.LockOSThread()
	// Without it the computation only is less polite.
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 15)
}

// Package wallclock is the time of day on a node, and the time since its kernel was
// started, by which steps of the time of day are found.
//
// Comes in: the kernel's clocks; in a lab, whose nodes share them, also the offset of a
// node's time of day, which a fault campaign changes ([Offset]). Goes out: times of day
// for whatever is kept or sent. Elapsed times are never made of them.
package wallclock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LeastStep is the least step of a clock that is told from the time between two
// readings: two clocks are read one after the other, and the process may be interrupted
// between.
const LeastStep = time.Millisecond

// offsetBytes is the length of the file of an offset: nanoseconds, in the machine's order
// of bytes.
const offsetBytes = 8

// Variable is in the environment of an agent that a lab with plain radios has started: the
// path of the node's offset. A service manager sets no such variable.
const Variable = "LINKTRIAL_LAB_CLOCK"

// Path is where the offset of a lab's node is: beside the control socket of the emulated
// radios, which only agents in a lab are given, or where [Variable] says.
func Path(radioControl, role string) string { return radioControl + "." + role + ".clock" }

// Clock is a node's time of day. nil is the kernel's.
type Clock struct {
	mapped []byte
	offset *int64 // nanoseconds, changed by another process
}

// Of returns the clock of a lab's node: the kernel's with the offset in a file, which is
// read anew each time. Where there is no such file it is nil, the kernel's.
func Of(path string) (*Clock, error) {
	c, err := mapOffset(path, os.O_RDONLY, unix.PROT_READ)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return c, err
}

func mapOffset(path string, flags, protection int) (*Clock, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("offset of a node's clock: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("offset of a node's clock: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() != offsetBytes {
		return nil, fmt.Errorf("offset of a node's clock: %s has %d bytes, expected a regular file of %d", path, info.Size(), offsetBytes)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, offsetBytes, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("offset of a node's clock: map %s: %w", path, err)
	}
	return &Clock{mapped: b, offset: (*int64)(unsafe.Pointer(unsafe.SliceData(b)))}, nil
}

// Now is the time of day, without the monotonic reading of [time.Now]: the difference of
// two of these times has the steps between them.
func (c *Clock) Now() time.Time { return c.at(time.Now().Round(0)) }

func (c *Clock) at(kernel time.Time) time.Time {
	if c == nil {
		return kernel
	}
	return kernel.Add(time.Duration(atomic.LoadInt64(c.offset)))
}

// Read reads the time of day, and [Steady] at the same moment: both are read again where
// something came between.
func (c *Clock) Read() (wall time.Time, steady time.Duration) {
	var before, real, after unix.Timespec
	for range 10 {
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &before) // these clocks are in every kernel since 2.6.39
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &after)
		if after.Nano()-before.Nano() < int64(LeastStep)/10 {
			break
		}
	}
	return c.at(time.Unix(real.Unix())), time.Duration((before.Nano() + after.Nano()) / 2)
}

// Steady is the time since the kernel was started, time in which the machine was
// suspended included. Nobody can step it, and all nodes of a lab share it.
func Steady() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every kernel since 2.6.39 has it
	return time.Duration(t.Nano())
}

// Boot is the identity of this start of the kernel: times of [Steady] are compared only
// within one. Empty: it is not known.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Offset is the offset of a node's clock in a lab, as who makes the lab changes it.
type Offset struct{ clock *Clock }

// NewOffset makes the file of an offset, or takes the one that is there, whose value
// stays.
func NewOffset(path string) (*Offset, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("offset of a node's clock: %w", err)
	}
	if err := errors.Join(f.Truncate(offsetBytes), f.Close()); err != nil {
		return nil, fmt.Errorf("offset of a node's clock: %w", err)
	}
	c, err := mapOffset(path, os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	return &Offset{c}, nil
}

// Step sets the node's clock forwards, or with a negative duration back.
func (o *Offset) Step(by time.Duration) { atomic.AddInt64(o.clock.offset, int64(by)) }

// Close ends the use of the file, which stays.
func (o *Offset) Close() error { return unix.Munmap(o.clock.mapped) }

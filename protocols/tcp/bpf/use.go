package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// held are this process's registrations, by the names of plans.
var held struct {
	sync.Mutex
	registrations map[string]io.Closer
}

// attempts bounds how often a registration may vanish between two calls: each of
// them is the end of another process.
const attempts = 16

// Set gives a socket the congestion control of that name. Where no process has
// registered it this one does, and keeps it until [Release]. A process whose
// registration others use may end at any time: whoever needs it next registers
// it anew.
func Set(fd int, name string) error {
	held.Lock()
	defer held.Unlock()
	kernelName := KernelName(name)
	for range attempts {
		err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, kernelName)
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		r, err := Load(name)
		if errors.Is(err, os.ErrExist) {
			continue // another process was first
		}
		if err != nil {
			return err
		}
		if old := held.registrations[name]; old != nil {
			_ = old.Close() // somebody else has ended it
		}
		if held.registrations == nil {
			held.registrations = map[string]io.Closer{}
		}
		held.registrations[name] = r
	}
	return fmt.Errorf("%s vanished from the kernel %d times", kernelName, attempts)
}

// Release ends this process's registrations. A process that ends without it
// leaves them to the kernel: see [Load].
func Release() error {
	held.Lock()
	defer held.Unlock()
	var errs []error
	for _, r := range held.registrations {
		errs = append(errs, r.Close())
	}
	held.registrations = nil
	return errors.Join(errs...)
}

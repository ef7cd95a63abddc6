package packettimes

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"linktrial/internal/packetsocket"
)

// attached is a program at the interfaces of a node's radios.
type attached struct {
	program *ebpf.Program

	mu      sync.Mutex
	devices map[string]socket // by the interface's name
	came    int64             // how many interfaces have come anew
}

// socket is that of one interface; index 0: there is none.
type socket struct{ fd, index int }

func (a *attached) attachTo(devices []string) error {
	a.devices = map[string]socket{}
	for _, name := range devices {
		a.devices[name] = socket{}
	}
	return a.attach()
}

// attach has the program see the packets of all interfaces; one that has come anew with
// the same name is another one.
func (a *attached) attach() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for name, s := range a.devices {
		i, err := net.InterfaceByName(name)
		if err == nil && i.Index == s.index {
			continue
		}
		if s.index != 0 {
			_ = unix.Close(s.fd) // nothing was sent
			a.devices[name] = socket{}
			a.came++
		}
		fd := 0
		if err == nil {
			fd, err = packetsocket.OpenProgram(a.program.FD(), i.Index)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("packets of transfers on %s: %w", name, err))
			continue
		}
		a.devices[name] = socket{fd, i.Index}
	}
	return errors.Join(errs...)
}

// anew is how many interfaces have come anew; what passed one before it was found was not seen.
func (a *attached) anew() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.came
}

func (a *attached) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.devices {
		if s.index != 0 {
			_ = unix.Close(s.fd) // nothing was sent
		}
	}
	a.devices = nil
}

// closeAll closes what was made of them: nil as well.
func closeAll(program *ebpf.Program, maps ...*ebpf.Map) error {
	errs := []error{program.Close()}
	for _, m := range maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

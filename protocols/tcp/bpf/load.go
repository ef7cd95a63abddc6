package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// oldest is the oldest kernel on which the objects were tried.
const oldest = "6.1"

// typeInformation is where the kernel shows where the fields of its types lie.
const typeInformation = "/sys/kernel/btf/vmlinux"

// Probe reports whether this process can bring the congestion control along. It
// has the kernel check the programs, and registers nothing. Most of its time goes into
// the kernel's type information, which those who probe several keep in a cache; nil is
// one of its own.
func Probe(name string, kernel *btf.Cache) error {
	v, err := usable(name)
	if err != nil {
		return err
	}
	spec, _, err := v.spec()
	if err != nil {
		return err
	}
	delete(spec.Maps, opsMap) // without links, the kernel registers what comes into the map
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kernel})
	if err != nil {
		return reason(err)
	}
	c.Close()
	return nil
}

func usable(name string) (*variant, error) {
	v := find(name)
	if v == nil {
		return nil, fmt.Errorf("no congestion control %q is brought along", name)
	}
	if _, err := os.Stat(typeInformation); err != nil {
		return nil, fmt.Errorf("needs Linux %s or newer with type information (CONFIG_DEBUG_INFO_BTF): %w", oldest, err)
	}
	if err := v.unmet(); err != nil {
		return nil, err
	}
	return v, nil
}

// Load registers the congestion control in the kernel, under its [KernelName] and
// for all network namespaces, until the returned value is closed. It fails with
// [os.ErrExist] where another process has registered it.
//
// From Linux 6.4 on (links of struct_ops) the registration also ends with the
// process. On older kernels what a killed process leaves stays, and serves the
// next process. Connections keep what they have in any case, and so does a listener.
func Load(name string) (io.Closer, error) {
	v, err := usable(name)
	if err != nil {
		return nil, err
	}
	r, err := v.register(true)
	if noLinks(err) {
		r, err = v.register(false)
	}
	if err != nil {
		return nil, reason(err)
	}
	return r, nil
}

// noLinks reports whether the kernel knows no links of struct_ops: it refuses the
// map's flag.
func noLinks(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported)
}

// flagLink is BPF_F_LINK of <linux/bpf.h>.
const flagLink = 1 << 13

// register loads the object and registers it, with a link or by its map alone.
func (v *variant) register(withLink bool) (io.Closer, error) {
	spec, m, err := v.spec()
	if err != nil {
		return nil, err
	}
	m.Flags &^= flagLink
	if withLink {
		m.Flags |= flagLink
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, err
	}
	// The map keeps its programs.
	defer c.Close()
	if withLink {
		return link.AttachStructOps(link.StructOpsOptions{Map: c.Maps[opsMap]})
	}
	kept, err := c.Maps[opsMap].Clone()
	if err != nil {
		return nil, errors.Join(err, c.Maps[opsMap].Delete(uint32(0)))
	}
	return &unlinked{kept}, nil
}

// unlinked is a registration that stays until its map's element is deleted.
type unlinked struct{ ops *ebpf.Map }

func (u *unlinked) Close() error {
	err := u.ops.Delete(uint32(0))
	if cerr := u.ops.Close(); err == nil {
		err = cerr
	}
	return err
}

// reason says what is missing.
func reason(err error) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%w: %w", os.ErrExist, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("needs CAP_BPF and CAP_PERFMON, also in a container: %w", unix.EPERM)
	case errors.As(err, &refused):
		return fmt.Errorf("needs Linux %s or newer; this one refuses the program: %s", oldest, strings.Join(refused.Log[max(0, len(refused.Log)-3):], "; "))
	}
	return fmt.Errorf("needs Linux %s or newer with eBPF (CONFIG_BPF_JIT): %w", oldest, err)
}

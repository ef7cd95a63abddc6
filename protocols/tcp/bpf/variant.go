package bpf

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

//go:embed objects
var objects embed.FS

// variant is a congestion control that is brought along.
type variant struct {
	name  string // as plans have it
	short string // in the kernel's name
	// needs is what it takes beyond eBPF, nil for nothing.
	needs func() error
}

var variants = []variant{
	{name: "radio", short: "radio"},
	{name: "radio_newrto", short: "newrto", needs: boundedTimeout},
	{name: "westwood", short: "westw"},
	{name: "veno", short: "veno"},
}

// Names are the congestion controls that are brought along.
func Names() []string {
	var names []string
	for _, v := range variants {
		names = append(names, v.name)
	}
	return names
}

// Has reports whether a congestion control of that name is brought along.
func Has(name string) bool { return find(name) != nil }

func find(name string) *variant {
	i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
	if i < 0 {
		return nil
	}
	return &variants[i]
}

// prefix is that of all names under which the kernel has ours; tests have one of
// their own.
var prefix = ordinaryPrefix

const ordinaryPrefix = "lt_"

// IsKernelName reports whether a name in the kernel's list is one of ours.
func IsKernelName(name string) bool { return strings.HasPrefix(name, prefix) }

// KernelName is the name under which the kernel has the congestion control, "" for
// one that is not brought along. Its last part is of the object's digest: what
// another version of Linktrial has registered is another congestion control.
func KernelName(name string) string {
	v := find(name)
	if v == nil {
		return ""
	}
	sum := sha256.Sum256(v.object())
	return prefix + v.short + "_" + hex.EncodeToString(sum[:2])
}

func (v *variant) object() []byte {
	b, err := objects.ReadFile("objects/" + v.name + ".o")
	if err != nil {
		panic(err) // it is embedded
	}
	return b
}

// opsMap is the name of the variable that each object defines (CONGESTION_CONTROL).
const opsMap = "control"

// spec is the object as it is to be loaded, under the kernel's name.
func (v *variant) spec() (*ebpf.CollectionSpec, *ebpf.MapSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(v.object()))
	if err != nil {
		return nil, nil, err
	}
	m := spec.Maps[opsMap]
	if m == nil {
		return nil, nil, fmt.Errorf("the object defines no %s", opsMap)
	}
	ops, ok := btf.As[*btf.Struct](m.Value)
	value, ok2 := m.Contents[0].Value.([]byte)
	i := -1
	if ok && ok2 {
		i = slices.IndexFunc(ops.Members, func(m btf.Member) bool { return m.Name == "name" })
	}
	if i < 0 {
		return nil, nil, fmt.Errorf("the object's %s has no name", opsMap)
	}
	if tick := spec.Variables[tickVariable]; tick != nil {
		if err := setTick(tick); err != nil {
			return nil, nil, err
		}
	}
	m.Name = KernelName(v.name)
	copy(value[ops.Members[i].Offset.Bytes():], m.Name)
	return spec, m, nil
}

// tickVariable is how an object asks for the length of the kernel's tick.
const tickVariable = "tick_us"

// setTick sets it. The kernel's coarse clock is that of its ticks (clock_getres(2)).
func setTick(v *ebpf.VariableSpec) error {
	var t unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &t); err != nil {
		return fmt.Errorf("the length of the kernel's tick: %w", err)
	}
	return v.Set(uint32(t.Nano() / 1000))
}

// errTooOld reports a kernel that lacks what one variant takes.
var errTooOld = errors.New("the kernel is too old")

// unmet is why this kernel cannot take the variant, nil where it can.
func (v *variant) unmet() error {
	if v.needs == nil {
		return nil
	}
	return v.needs()
}

// boundedTimeout reports whether the kernel bounds the timeout of one socket.
func boundedTimeout() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return fmt.Errorf("%w: needs Linux 6.15, where a congestion control can bound the timeout (TCP_RTO_MAX_MS)", errTooOld)
	}
	return err
}

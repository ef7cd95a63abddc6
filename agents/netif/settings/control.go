package settings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// kind is one of traffic control's kinds of objects, with its messages of rtnetlink(7).
type kind struct {
	name                 string
	added, deleted, dump uint16
}

var (
	discipline = &kind{"queueing discipline (tc qdisc)", unix.RTM_NEWQDISC, unix.RTM_DELQDISC, unix.RTM_GETQDISC}
	class      = &kind{"classes of traffic (tc class)", unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS, unix.RTM_GETTCLASS}
	filter     = &kind{"filters of traffic (tc filter)", unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER, unix.RTM_GETTFILTER}
)

// Halves of the discipline clsact, which filters hang at (include/uapi/linux/pkt_sched.h).
const (
	handleClsact  = 0xffff0000 // its handle, and that of ingress
	parentIngress = 0xfffffff2
	parentEgress  = 0xfffffff3
)

// object is a discipline, class or filter.
type object struct {
	*kind
	algorithm  string // as "fq_codel" or "u32"
	head       nl.TcMsg
	options    []byte
	attributes []byte // all that make it again
}

// identity tells objects of an interface apart.
type identity struct {
	*kind
	handle, parent, info uint32
	algorithm            string
}

func (o *object) identity() identity {
	i := identity{kind: o.kind, handle: o.head.Handle, parent: o.head.Parent, algorithm: o.algorithm}
	if o.kind == filter {
		i.info = o.head.Info // priority and protocol; of others it counts users
	}
	return i
}

// String words an object. Options are told apart, not worded; those of filters also count
// what passed, and are left out.
func (o *object) String() string {
	switch o.kind {
	case filter:
		return fmt.Sprintf("%s %x: parent %x, priority %d", o.algorithm, o.head.Handle, o.head.Parent, o.head.Info>>16)
	case class:
		return fmt.Sprintf("%s %x:%x: parent %x, options %08x", o.algorithm, o.head.Handle>>16, o.head.Handle&0xffff, o.head.Parent, o.sum())
	}
	return fmt.Sprintf("%s %x: parent %x, options %08x", o.algorithm, o.head.Handle>>16, o.head.Parent, o.sum())
}

func (o *object) sum() uint32 {
	h := fnv.New32a()
	_, _ = h.Write(o.uncounted()) // never fails
	return h.Sum32()
}

// Where the options of a discipline htb have what (include/uapi/linux/pkt_sched.h,
// tc_htb_glob).
const (
	htbInit    = 2  // TCA_HTB_INIT
	htbVersion = 0  // of which the kernel tells more than it takes: 16 bits of its patches
	htbDirect  = 16 // the number of packets that no class had
	htbSize    = 20
)

// uncounted are the options without what in them counts packets.
func (o *object) uncounted() []byte {
	if o.kind != discipline || o.algorithm != "htb" {
		return o.options
	}
	out := bytes.Clone(o.options)
	each(out, func(at uint16, value []byte) {
		if at == htbInit && len(value) >= htbSize {
			clear(value[htbDirect:htbSize])
		}
	})
	return out
}

// each calls visit with the attributes in a text. The values are parts of it.
func each(text []byte, visit func(at uint16, value []byte)) {
	all, err := nl.ParseRouteAttr(text)
	if err != nil {
		return // the kernel's are well formed
	}
	for _, a := range all {
		visit(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value)
	}
}

// wordAll words the objects of one kind.
func wordAll(all []object, of *kind) string {
	var out []string
	for i := range all {
		if all[i].kind == of {
			out = append(out, all[i].String())
		}
	}
	if len(out) == 0 {
		return "none"
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// control reads the objects of an interface: disciplines, then their classes, then filters,
// each as the kernel lists them, parents before their children.
func control(index int) ([]object, error) {
	out, err := list(index, discipline, 0)
	if err != nil {
		return nil, err
	}
	parents := []uint32{0} // the root
	for _, o := range out {
		switch handle := o.head.Handle; {
		case handle == handleClsact:
			parents = append(parents, handleClsact, parentIngress, parentEgress)
		case handle != 0:
			parents = append(parents, handle)
		}
	}
	classes, err := list(index, class, 0)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		if len(c.options) > 0 { // else a queue of the device, or a flow that a discipline sees at this moment
			out = append(out, c)
			parents = append(parents, c.head.Handle)
		}
	}
	known := map[identity]bool{}
	for _, parent := range parents {
		filters, err := list(index, filter, parent)
		if err != nil {
			return nil, err
		}
		for _, f := range filters {
			if !known[f.identity()] { // the root's are those of its handle, too
				known[f.identity()] = true
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// list lists those of one kind.
func list(index int, k *kind, parent uint32) (out []object, err error) {
	request := nl.NewNetlinkRequest(int(k.dump), unix.NLM_F_DUMP)
	request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent})
	messages, err := request.Execute(unix.NETLINK_ROUTE, k.added)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	for _, m := range messages {
		o := object{kind: k, head: *nl.DeserializeTcMsg(m)}
		if o.head.Ifindex != int32(index) {
			continue
		}
		if o.attributes, err = without(m[o.head.Len():], unix.TCA_STATS, unix.TCA_STATS2, unix.TCA_XSTATS); err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		attributes, err := nl.ParseRouteAttr(o.attributes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		for _, a := range attributes {
			switch a.Attr.Type & nl.NLA_TYPE_MASK {
			case nl.TCA_KIND:
				o.algorithm = unix.ByteSliceToString(a.Value)
			case nl.TCA_OPTIONS:
				o.options = a.Value
			}
		}
		if k == filter && o.head.Handle == 0 {
			continue // of the priority, not of a filter
		}
		out = append(out, o)
	}
	return out, nil
}

// without copies attributes but for those of some types, which the kernel tells and does
// not take.
func without(attributes []byte, types ...uint16) ([]byte, error) {
	parsed, err := nl.ParseRouteAttr(attributes)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, a := range parsed {
		if !slices.Contains(types, a.Attr.Type&nl.NLA_TYPE_MASK) {
			out = append(out, nl.NewRtAttr(int(a.Attr.Type), a.Value).Serialize()...)
		}
	}
	return out, nil
}

// putBackControl removes the objects that were not there before, and makes those that were
// and are not, or are otherwise.
func putBackControl(is, before []object) error {
	var failed []error
	now, was := byIdentity(is), byIdentity(before)
	for i := len(is) - 1; i >= 0; i-- { // children first
		if o := &is[i]; was[o.identity()] == nil && o.head.Handle != 0 { // without a handle it is what the kernel makes of itself
			err := o.remove(before)
			if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) { // it went with its parent
				failed = append(failed, err)
			}
		}
	}
	var missing []*object
	for i := range before {
		o := &before[i]
		if n := now[o.identity()]; o.head.Handle != 0 && (n == nil || n.String() != o.String()) {
			missing = append(missing, o)
		}
	}
	return errors.Join(append(failed, restoreAll(missing)...)...)
}

// restoreAll makes objects, of which some need others.
func restoreAll(missing []*object) (failed []error) {
	for len(missing) > 0 {
		var left []*object
		failed = nil
		for _, o := range missing {
			if err := o.restore(); err != nil {
				left, failed = append(left, o), append(failed, err)
			}
		}
		if len(left) == len(missing) {
			break
		}
		missing = left
	}
	return failed
}

func byIdentity(all []object) map[identity]*object {
	out := map[identity]*object{}
	for i := range all {
		out[all[i].identity()] = &all[i]
	}
	return out
}

// remove removes an object, and a filter of a priority that there was no other of with it.
func (o *object) remove(before []object) error {
	gone := *o
	if o.kind == filter && !slices.ContainsFunc(before, func(b object) bool {
		return b.kind == filter && b.head.Parent == o.head.Parent && b.head.Info == o.head.Info
	}) {
		gone.head.Handle = 0 // also what the kernel made for the filter
	}
	if err := gone.request(o.deleted, 0); err != nil {
		return fmt.Errorf("%s is not removed: %w", o, err)
	}
	return nil
}

// rootTable is the first table of a filter u32, which the kernel makes with it.
const rootTable = 0x80000000

func (o *object) restore() error {
	if o.kind == filter && o.algorithm == "u32" && o.head.Handle == rootTable {
		return nil
	}
	if err := o.request(o.added, unix.NLM_F_CREATE|unix.NLM_F_REPLACE); err != nil {
		return fmt.Errorf("%s is not made again: %w", o, err)
	}
	return nil
}

func (o *object) request(message uint16, flags int) error {
	r := nl.NewNetlinkRequest(int(message), flags|unix.NLM_F_ACK)
	head := o.head
	if o.kind != filter {
		head.Info = 0
	}
	r.AddData(&head)
	r.AddRawData(o.taken())
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// Flags of filters say what is asked of the hardware, and the kernel adds whether that
// does it (include/uapi/linux/pkt_cls.h): by algorithm, where they stand.
var filterFlags = map[string]uint16{"u32": 11, "flower": 22, "matchall": 3, "bpf": 9}

const askedOfHardware = 1<<0 | 1<<1 // TCA_CLS_FLAGS_SKIP_HW, TCA_CLS_FLAGS_SKIP_SW

// taken are the attributes as the kernel takes them.
func (o *object) taken() []byte {
	out := bytes.Clone(o.attributes)
	each(out, func(at uint16, options []byte) {
		if at != nl.TCA_OPTIONS {
			return
		}
		each(options, func(at uint16, value []byte) {
			switch {
			case o.kind == filter && len(value) == 4 && at == filterFlags[o.algorithm]:
				binary.NativeEndian.PutUint32(value, binary.NativeEndian.Uint32(value)&askedOfHardware)
			case o.kind == discipline && o.algorithm == "htb" && at == htbInit && len(value) >= htbSize:
				if version := binary.NativeEndian.Uint32(value[htbVersion:]); version>>16 != 0 {
					binary.NativeEndian.PutUint32(value[htbVersion:], version>>16)
				}
			}
		})
	})
	return out
}

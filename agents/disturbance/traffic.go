package disturbance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"linktrial/agents/netif"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/packetsocket"
)

const (
	headBytes        = 128 // of a packet, for the headers
	maxConversations = 64  // that are told apart in one record; the rest is "others"
	mostShown        = 3
	firstRandomPort  = 32768 // of Linux (net.ipv4.ip_local_port_range)
	others           = "others"
	againAfter       = time.Second // an interface that is gone is looked for
)

// tally is the traffic of the present record. The lock of its [Watch] guards it.
type tally struct {
	packets   int64
	bytes     map[int64]int64 // by step of the steady clock
	by        map[string]int64
	unwatched map[string]string // by interface: why it cannot be watched
	missed    string            // why it could not be, at some time of the record
}

func newTally() *tally {
	return &tally{bytes: map[int64]int64{}, by: map[string]int64{}, unwatched: map[string]string{}}
}

func (t *tally) add(at time.Duration, n int64, what string) {
	t.packets++
	t.bytes[int64(at/journal.OtherTrafficStep)] += n
	if _, known := t.by[what]; !known && len(t.by) >= maxConversations {
		what = others
	}
	t.by[what] += n
}

// drain is what was counted since from, for a record of that length, and empties the
// tally; unwatched is why it may not be all.
func (t *tally) drain(from, length time.Duration) (out *journal.OtherTraffic, unwatched string) {
	unwatched, t.missed = t.missed, ""
	for _, why := range t.unwatched {
		unwatched, t.missed = why, why
	}
	if t.packets == 0 {
		return nil, unwatched
	}
	out = &journal.OtherTraffic{Packets: t.packets}
	for step, n := range t.bytes {
		at := time.Duration(step)*journal.OtherTrafficStep - from
		out.Bytes = append(out.Bytes, journal.BytesAt{After: min(max(at, 0), length), Bytes: n})
	}
	slices.SortFunc(out.Bytes, func(a, b journal.BytesAt) int { return int(a.After - b.After) })
	for what, n := range t.by {
		out.Most = append(out.Most, journal.Conversation{What: what, Bytes: n})
	}
	slices.SortFunc(out.Most, func(a, b journal.Conversation) int {
		if a.Bytes != b.Bytes {
			return int(b.Bytes - a.Bytes)
		}
		return strings.Compare(a.What, b.What)
	})
	out.Most = out.Most[:min(len(out.Most), mostShown)]
	t.packets = 0
	clear(t.bytes)
	clear(t.by)
	return out, unwatched
}

// watchDevices listens on the radio's interfaces, and returns what counts there.
func (w *Watch) watchDevices() (loops []func(context.Context)) {
	if len(w.cfg.Devices) == 0 {
		w.traffic.unwatched[""] = "the agent does not know the radio's interface: give it with --device"
		return nil
	}
	for _, d := range w.cfg.Devices {
		conn, err := listen(d) // before the first trial
		w.noteDevice(d, err)
		loops = append(loops, func(ctx context.Context) { w.watchDevice(ctx, d, conn) })
	}
	return append(loops, func(ctx context.Context) { netif.Follow(ctx, w.cfg.Logger, w.network.Notify) })
}

// noteDevice keeps why an interface cannot be watched; nil: it is.
func (w *Watch) noteDevice(device string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.traffic.unwatched, device)
		return
	}
	if w.traffic.unwatched[device] == "" {
		w.cfg.Logger.Warn("other traffic cannot be watched; the run continues", "device", device, "error", err)
	}
	w.traffic.unwatched[device] = err.Error()
	w.traffic.missed = err.Error()
}

// watchDevice counts until ctx ends. An interface that is gone, as that of an emulated
// radio which is started again, is looked for, and so is one with the same name that has
// taken its place.
func (w *Watch) watchDevice(ctx context.Context, device string, conn *packets) {
	for {
		if conn != nil {
			turn, end := context.WithCancel(ctx)
			var looking sync.WaitGroup
			looking.Go(func() {
				defer end()
				w.awaitAnother(turn, device, conn.index)
			})
			err := w.count(turn, conn.File)
			end()
			looking.Wait()
			_ = conn.Close() // nothing was sent
			if ctx.Err() != nil {
				return
			}
			if turn.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				err = errors.New("another one has its name")
			}
			w.noteDevice(device, fmt.Errorf("interface %s: %w", device, err))
		}
		network := w.network.Changed()
		var err error
		conn, err = listen(device)
		w.noteDevice(device, err)
		if err == nil {
			continue
		}
		select {
		case <-network:
		case <-time.After(againAfter):
		case <-ctx.Done():
			return
		}
	}
}

// awaitAnother returns when the interface of a name has another index, or when ctx ends.
func (w *Watch) awaitAnother(ctx context.Context, device string, index int) {
	for {
		network := w.network.Changed()
		if i, err := net.InterfaceByName(device); err == nil && i.Index != index {
			return
		}
		select {
		case <-network:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) count(ctx context.Context, conn *os.File) error {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	head := make([]byte, headBytes)
	fragments := fragments{}
	for {
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, _, failed = unix.Recvfrom(int(fd), head, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		p := parse(head[:min(n, len(head))])
		if p.own() || fragments.own(&p) || !w.limited() && p.at(w.cfg.Apart) {
			continue
		}
		w.mu.Lock()
		_, now := w.cfg.Clocks()
		w.traffic.add(now, int64(n), p.String())
		w.mu.Unlock()
	}
}

// packets is a socket with the packets of the interface with an index.
type packets struct {
	*os.File
	index int
}

// listen opens a packet socket that hands over what leaves and enters an interface
// and is not of a listener's port. What is of one never leaves the kernel's path, so
// the measured transfers are not slowed down.
func listen(device string) (*packets, error) {
	fail := func(err error) error {
		return fmt.Errorf("packets of interface %s cannot be watched: %w", device, err)
	}
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fail(err)
	}
	fd, err := packetsocket.Open(filter(), i.Index)
	if err != nil {
		return nil, fail(err)
	}
	return &packets{os.NewFile(uintptr(fd), "packets of "+device), i.Index}, nil
}

// withPorts are the protocols whose header begins with both ports.
var withPorts = []uint32{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_UDPLITE}

// filter passes packets of a listener's port over, and takes all others. Later fragments
// of IPv4, which have no ports, are taken, and so are IPv6 packets with extension headers,
// which all fragments have: [packet] and [fragments] know whose they are.
func filter() []bpf.Instruction {
	const takeAll = 0xffffffff
	take := bpf.RetConstant{Val: takeAll}
	// ported goes on where the protocol has ports, and takes the packet otherwise.
	ported := func(protocol bpf.Instruction) []bpf.Instruction {
		code := []bpf.Instruction{protocol}
		for i, p := range withPorts {
			code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: p, SkipTrue: uint8(len(withPorts) - i)})
		}
		return append(code, take)
	}
	// ports passes the packet over where one of its ports is a listener's.
	ports := func(each ...bpf.Instruction) (code []bpf.Instruction) {
		for _, port := range each {
			code = append(code, port,
				bpf.JumpIf{Cond: bpf.JumpLessThan, Val: runsheet.FirstPort, SkipTrue: 2},
				bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: runsheet.LastPort, SkipTrue: 1},
				bpf.RetConstant{Val: 0})
		}
		return append(code, take)
	}
	over4 := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipFalse: 1}, take,
	}, ported(bpf.LoadAbsolute{Off: 9, Size: 1}), []bpf.Instruction{bpf.LoadMemShift{Off: 0}}, ports(bpf.LoadIndirect{Off: 0, Size: 2}, bpf.LoadIndirect{Off: 2, Size: 2}))
	over6 := slices.Concat(ported(bpf.LoadAbsolute{Off: 6, Size: 1}), ports(bpf.LoadAbsolute{Off: 40, Size: 2}, bpf.LoadAbsolute{Off: 42, Size: 2}))
	return slices.Concat([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: uint8(len(over4))},
	}, over4, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 1}, take,
	}, over6)
}

// packet is what the headers of one say.
type packet struct {
	family   string
	protocol uint8
	from, to netip.Addr
	ports    [2]uint16 // 0: it has none
	id       uint32    // of fragments
	offset   uint16    // of a fragment
	more     bool      // fragments follow
	inner    *packet   // that an ICMP error is about
}

// parse reads the headers of a packet; what is too short has fewer.
func parse(b []byte) (p packet) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return parse6(b)
	}
	p = packet{family: "IPv4", protocol: b[9], id: uint32(binary.BigEndian.Uint16(b[4:])), offset: binary.BigEndian.Uint16(b[6:]) & 0x1fff, more: b[6]&0x20 != 0}
	p.from, p.to = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	if header := int(b[0]&15) * 4; header >= 20 && header <= len(b) && p.offset == 0 {
		p.transport(b[header:])
	}
	return p
}

func parse6(b []byte) (p packet) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return packet{family: "no IP"}
	}
	p = packet{family: "IPv6", protocol: b[6]}
	p.from, p.to = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	rest := b[40:]
	if p.protocol == unix.IPPROTO_FRAGMENT && len(rest) >= 8 { // RFC 8200, section 4.5
		at := binary.BigEndian.Uint16(rest[2:])
		p.protocol, p.offset, p.more, p.id = rest[0], at>>3, at&1 != 0, binary.BigEndian.Uint32(rest[4:])
		rest = rest[8:]
	}
	if p.offset == 0 {
		p.transport(rest)
	}
	return p
}

func (p *packet) transport(b []byte) {
	switch {
	case slices.Contains(withPorts, uint32(p.protocol)) && len(b) >= 4:
		p.ports = [2]uint16{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}
	case p.protocol == unix.IPPROTO_ICMP && len(b) >= 8 && (b[0] == 3 || b[0] == 5 || b[0] == 11 || b[0] == 12):
		inner := parse(b[8:]) // RFC 792: the header that the error is about, and its ports
		p.inner = &inner
	case p.protocol == unix.IPPROTO_ICMPV6 && len(b) >= 8 && b[0] >= 1 && b[0] <= 4:
		inner := parse(b[8:]) // RFC 4443, section 3: the same
		p.inner = &inner
	}
}

// own reports whether the packet is to or from a listener's port, or an error about
// such a packet.
func (p *packet) own() bool {
	if p.inner != nil {
		return p.inner.own()
	}
	return slices.ContainsFunc(p.ports[:], func(port uint16) bool { return runsheet.ListenerPort(int(port)) })
}

// at reports whether one of the packet's ends is among these.
func (p *packet) at(ends []netip.AddrPort) bool {
	return slices.Contains(ends, netip.AddrPortFrom(p.from, p.ports[0])) || slices.Contains(ends, netip.AddrPortFrom(p.to, p.ports[1]))
}

var protocolNames = map[uint8]string{unix.IPPROTO_TCP: "TCP", unix.IPPROTO_UDP: "UDP", unix.IPPROTO_SCTP: "SCTP", unix.IPPROTO_DCCP: "DCCP",
	unix.IPPROTO_UDPLITE: "UDP-Lite", unix.IPPROTO_ICMP: "ICMP", unix.IPPROTO_ICMPV6: "ICMPv6", unix.IPPROTO_IGMP: "IGMP"}

func (p *packet) String() string {
	if !p.from.IsValid() {
		return p.family
	}
	name := protocolNames[p.protocol]
	if name == "" {
		name = fmt.Sprintf("protocol %d", p.protocol)
	}
	return fmt.Sprintf("%s %s → %s", name, end(p.from, p.ports[0]), end(p.to, p.ports[1]))
}

// end is an address with its port, but for ports that programs are given at random:
// what a program sends over many sockets is one conversation.
func end(a netip.Addr, port uint16) string {
	if port == 0 || port >= firstRandomPort {
		return a.String()
	}
	return netip.AddrPortFrom(a, port).String()
}

// fragments is the packets that came in fragments and are not of a listener. Later
// fragments of others are a listener's: their first one was passed over.
type fragments map[string]bool

// own reports whether a packet is a later fragment of a listener's packet.
func (f fragments) own(p *packet) bool {
	if p.offset == 0 && !p.more {
		return false
	}
	key := fmt.Sprint(p.from, p.to, p.protocol, p.id)
	if p.offset == 0 {
		if len(f) >= maxConversations {
			clear(f) // of long ago
		}
		f[key] = true
		return false
	}
	return !f[key]
}

package packettimes

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"linktrial/executor/runsheet"
)

// withPorts are the protocols whose header begins with both ports, and the header's bytes;
// that of TCP says itself how long it is (RFC 9293, 768, 3828, 9260, 4340).
var withPorts = []struct{ protocol, header int32 }{{unix.IPPROTO_UDP, 8}, {unix.IPPROTO_UDPLITE, 8}, {unix.IPPROTO_SCTP, 12}, {unix.IPPROTO_DCCP, 12}}

// The places of the counts: a listener's port from [runsheet.FirstPort] on, then those of
// packets with listeners' ports at both ends, of which nobody knows whose they are.
const (
	bothPlace = runsheet.LastPort - runsheet.FirstPort + 1
	places    = bothPlace + 1
)

// Bytes have passed, with IP headers, and of these the payload of the transport, which both
// ends count alike, however the kernel joins and divides segments.
type Bytes struct {
	Sent, Received               uint64
	SentPayload, ReceivedPayload uint64
}

// The places of the counts within [Bytes].
const (
	bytesSent = 8 * iota
	bytesReceived
	payloadSent
	payloadReceived
	bytesSize
)

// Traffic counts the bytes to and from listeners' ports that pass the interfaces of this
// node's radios, until [Traffic.Close].
type Traffic struct {
	attached
	bytes *ebpf.Map
	keys  [places]uint32 // of one look at all
	seen  [places]Bytes
}

// StartTraffic begins to count, with the rights that [StartSent] needs. An interface that is
// not there is looked for by [Traffic.Attach].
func StartTraffic(devices ...string) (*Traffic, error) {
	t := &Traffic{}
	var err error
	t.bytes, err = ebpf.NewMap(&ebpf.MapSpec{Name: "lt_traffic", Type: ebpf.Array, KeySize: 4, ValueSize: bytesSize, MaxEntries: places})
	if err == nil {
		t.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lt_traffic", Type: ebpf.SocketFilter, License: "MIT", Instructions: counting(t.bytes.FD())})
	}
	if err != nil {
		return nil, fmt.Errorf("packets of listeners cannot be counted: %w", errors.Join(err, t.Close()))
	}
	_ = t.attachTo(devices) // [Traffic.Attach] tells
	return t, nil
}

// Attach looks for interfaces that are new, and has an error where one is missing.
func (t *Traffic) Attach() error {
	return t.attach()
}

// Each calls f with the counts of every port at which packets have passed since the begin;
// port 0 are those between two listeners' ports. It is for one goroutine at a time.
func (t *Traffic) Each(f func(port int, all Bytes)) error {
	var at ebpf.MapBatchCursor
	n, err := t.bytes.BatchLookup(&at, t.keys[:], t.seen[:], nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) || n != places {
		return fmt.Errorf("packets of listeners: %d of %d counts: %w", n, places, err)
	}
	for i, key := range t.keys {
		switch all := t.seen[i]; {
		case all == Bytes{}:
		case key == bothPlace:
			f(0, all)
		default:
			f(runsheet.FirstPort+int(key), all)
		}
	}
	return nil
}

// Close ends it.
func (t *Traffic) Close() error {
	t.detach()
	return closeAll(t.program, t.bytes)
}

// counting are the instructions of the program that counts. It returns 0 for every packet.
func counting(counts int) asm.Instructions {
	const tcp, ported, none, source, destination, one, counted, leaves, out = "tcp", "ported", "none", "source", "destination", "one", "counted", "leaves", "out"
	const last = runsheet.LastPort - runsheet.FirstPort
	p := append(headers(out), asm.JEq.Imm(asm.R9, unix.IPPROTO_TCP, tcp))
	for i, x := range withPorts {
		this, next := "with"+string(rune('0'+i)), "with"+string(rune('1'+i))
		p = append(p,
			asm.JNE.Imm(asm.R9, x.protocol, next).WithSymbol(this),
			asm.Mov.Imm(asm.R0, x.header),
			asm.Ja.Label(ported))
	}
	return append(p,
		asm.Ja.Label(out).WithSymbol("with"+string(rune('0'+len(withPorts)))),

		asm.LoadMem(asm.R9, asm.RFP, stackOffset, asm.DWord).WithSymbol(tcp),
		asm.LoadInd(asm.R0, asm.R9, 12, asm.Byte), // the length in words, above other bits
		asm.RSh.Imm(asm.R0, 4),
		asm.LSh.Imm(asm.R0, 2),

		// The payload: what is behind the transport's header. Then the listener's port.
		asm.LoadMem(asm.R1, asm.RFP, stackOffset, asm.DWord).WithSymbol(ported),
		asm.Add.Reg(asm.R0, asm.R1),
		asm.Mov.Imm(asm.R9, 0),
		asm.JGE.Reg(asm.R0, asm.R7, none),
		asm.Mov.Reg(asm.R9, asm.R7),
		asm.Sub.Reg(asm.R9, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R8).WithSymbol(none),
		asm.RSh.Imm(asm.R1, 16),
		asm.And.Imm(asm.R8, 0xffff),
		asm.Sub.Imm(asm.R1, runsheet.FirstPort), // a lower one is then higher than all
		asm.Sub.Imm(asm.R8, runsheet.FirstPort),
		asm.JGT.Imm(asm.R1, last, destination),
		asm.JGT.Imm(asm.R8, last, source),
		asm.StoreImm(asm.RFP, stackPort, bothPlace, asm.Word),
		asm.Ja.Label(counted),
		asm.Mov.Reg(asm.R8, asm.R1).WithSymbol(source),
		asm.Ja.Label(one),
		asm.JGT.Imm(asm.R8, last, out).WithSymbol(destination),
		asm.StoreMem(asm.RFP, stackPort, asm.R8, asm.Word).WithSymbol(one),

		asm.LoadMapPtr(asm.R1, counts).WithSymbol(counted),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackPort),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.LoadMem(asm.R1, asm.R6, skbType, asm.Word),
		asm.JEq.Imm(asm.R1, unix.PACKET_OUTGOING, leaves),
		asm.AddAtomic.Mem(asm.R0, asm.R7, asm.DWord, bytesReceived),
		asm.AddAtomic.Mem(asm.R0, asm.R9, asm.DWord, payloadReceived),
		asm.Ja.Label(out),
		asm.AddAtomic.Mem(asm.R0, asm.R7, asm.DWord, bytesSent).WithSymbol(leaves),
		asm.AddAtomic.Mem(asm.R0, asm.R9, asm.DWord, payloadSent),

		asm.Mov.Imm(asm.R0, 0).WithSymbol(out),
		asm.Return(),
	)
}

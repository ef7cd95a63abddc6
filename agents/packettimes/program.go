package packettimes

import (
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"linktrial/executor/runsheet"
)

// The layout of [connection], [moments] and [listener], as the kernel keeps them.
const (
	keyBytes      = 8
	valueBytes    = 48
	fieldFirst    = 0
	fieldAnswered = 8
	fieldBytes    = 16
	fieldSince    = 24
	fieldFlowing  = 32
	fieldAll      = 40

	listenerBytes = 32
	listenerLeast = 0
	listenerSum   = 8
	listenerSent  = 16
	listenerAll   = 24
)

// The fields of struct __sk_buff (linux/bpf.h) that are read.
const (
	skbLength   = 0
	skbType     = 4
	skbSegments = 164 // packets that the kernel has joined (GRO) or will divide (GSO); 0: one
)

// The places of variables on the stack.
const (
	stackKey   = -8
	stackPort  = -16 // the key of the size and of the count: the listener's port, from [runsheet.FirstPort] on
	stackValue = -72

	stackOffset = -24 // where the transport's header begins; of [headers]
)

// fetchAdd adds src to what is at a place, and has in src what was there before.
func fetchAdd(dst, src asm.Register, offset int16) asm.Instruction {
	i := asm.FetchAdd.Mem(dst, src, asm.DWord, offset)
	i.Constant = unix.BPF_FETCH // ebpf 0.22 encodes an addition without it
	return i
}

// leastHeaders are fewer bytes than the headers of a packet with payload have, IPv4's among
// them: TCP; UDP; SCTP with that of a DATA chunk (RFC 9293, section 3.1; RFC 768; RFC 9260,
// sections 3 and 3.3.1).
var leastHeaders = []struct{ protocol, bytes int32 }{{unix.IPPROTO_TCP, 40}, {unix.IPPROTO_UDP, 28}, {unix.IPPROTO_SCTP, 48}}

// unknownPort is the place of the count of packets whose port is not known: of other
// protocols, and of IPv6 with extension headers, as all fragments have (RFC 8200, section 4).
const unknownPort = runsheet.LastPort - runsheet.FirstPort + 1

// answersPlace is where the counts of the packets that come from listeners begin, in the
// same order.
const answersPlace = unknownPort + 1

// direction is which packets have the payload, as a packet socket has them, and which come
// from its receiver.
type direction struct{ payload, answer int32 }

var (
	leaving  = direction{unix.PACKET_OUTGOING, unix.PACKET_HOST}
	arriving = direction{unix.PACKET_HOST, unix.PACKET_OUTGOING}
)

// headers reads what every program needs of a packet, which begins with its IP header:
// R6 has the packet, R7 its length, R8 both ports, the source's above the destination's, and
// R9 the protocol, which may be one without ports. On the stack is where the transport's
// header begins. Fragments but the first, IPv6 packets
// with extension headers and what is no IP go to out.
func headers(out string) asm.Instructions {
	const v4, v6, transport = "v4", "v6", "transport"
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, skbLength, asm.Word),
		asm.LoadAbs(0, asm.Byte),
		asm.RSh.Imm(asm.R0, 4),
		asm.JEq.Imm(asm.R0, 4, v4),
		asm.JEq.Imm(asm.R0, 6, v6),
		asm.Ja.Label(out),

		asm.LoadAbs(6, asm.Half).WithSymbol(v4), // the fragment's offset
		asm.And.Imm(asm.R0, 0x1fff),
		asm.JNE.Imm(asm.R0, 0, out),
		asm.LoadAbs(9, asm.Byte),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.LoadAbs(0, asm.Byte),
		asm.And.Imm(asm.R0, 0xf),
		asm.LSh.Imm(asm.R0, 2),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Ja.Label(transport),

		asm.LoadAbs(6, asm.Byte).WithSymbol(v6), // the next header
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.Mov.Imm(asm.R8, 40),

		asm.StoreMem(asm.RFP, stackOffset, asm.R8, asm.DWord).WithSymbol(transport),
		asm.LoadInd(asm.R0, asm.R8, 0, asm.Word), // both ports
		asm.Mov.Reg(asm.R8, asm.R0),
	}
}

// instructions are the program's. It returns 0 for every packet: the socket gets none.
// Fragments but the first, and IPv6 packets with extension headers, are not seen: what is
// noted is never too long.
//
// Registers: R6 the packet, R7 its length, then without headers; R8 where the transport's
// header begins, then the ports; R9 the protocol, then what is kept of the connection.
func instructions(d direction, connections, listeners, packets int) asm.Instructions {
	const unknown, answered, passed = "unknown", "answered", "passed"
	const payload, known, answers, have, carries, counted, several, single, out = "payload", "known", "answers", "have", "carries", "counted", "several", "single", "out"
	p := headers(out)
	// The length without headers: never less than that of the payload.
	for i, h := range leastHeaders {
		this, next := "protocol"+string(rune('0'+i)), "protocol"+string(rune('1'+i))
		p = append(p,
			asm.JNE.Imm(asm.R9, h.protocol, next).WithSymbol(this),
			asm.JLT.Imm(asm.R7, h.bytes, out),
			asm.Sub.Imm(asm.R7, h.bytes),
			asm.Ja.Label(known))
	}
	return append(p,
		asm.LoadMem(asm.R0, asm.R6, skbType, asm.Word).WithSymbol("protocol"+string(rune('0'+len(leastHeaders)))),
		asm.StoreImm(asm.RFP, stackPort, unknownPort, asm.Word),
		asm.JEq.Imm(asm.R0, d.payload, unknown),
		asm.JNE.Imm(asm.R0, d.answer, out),
		asm.StoreImm(asm.RFP, stackPort, answersPlace+unknownPort, asm.Word),
		asm.LoadMapPtr(asm.R1, packets).WithSymbol(unknown),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackPort),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Ja.Label(out),

		// The key: the client's port, the listener's, the protocol.
		asm.StoreMem(asm.RFP, stackKey+4, asm.R9, asm.Word).WithSymbol(known),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.RSh.Imm(asm.R1, 16),     // the source port
		asm.And.Imm(asm.R8, 0xffff), // the destination port
		asm.LoadMem(asm.R0, asm.R6, skbType, asm.Word),
		asm.JEq.Imm(asm.R0, d.payload, payload),
		asm.JNE.Imm(asm.R0, d.answer, out),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Mov.Reg(asm.R8, asm.R2),
		asm.StoreMem(asm.RFP, stackKey, asm.R1, asm.Half).WithSymbol(payload),
		asm.StoreMem(asm.RFP, stackKey+2, asm.R8, asm.Half),
		asm.JLT.Imm(asm.R8, runsheet.FirstPort, out),
		asm.JGT.Imm(asm.R8, runsheet.LastPort, out),
		asm.Mov.Reg(asm.R8, asm.R0), // its type

		asm.LoadMapPtr(asm.R1, connections),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.FnMapLookupElem.Call(),
		asm.JNE.Imm(asm.R0, 0, have),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackValue+fieldFirst, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackValue+fieldAnswered, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackValue+fieldBytes, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackValue+fieldSince, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackValue+fieldFlowing, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackValue+fieldAll, asm.R1, asm.DWord),
		asm.JNE.Imm(asm.R8, d.payload, answers),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, stackValue+fieldFirst, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, connections).WithSymbol(answers),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, stackValue),
		asm.Mov.Imm(asm.R4, 1), // BPF_NOEXIST: another processor may have been first
		asm.FnMapUpdateElem.Call(),
		asm.LoadMapPtr(asm.R1, connections),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),

		asm.Mov.Reg(asm.R9, asm.R0).WithSymbol(have),
		asm.JEq.Imm(asm.R8, d.payload, carries),
		asm.LoadMem(asm.R1, asm.R9, fieldAnswered, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, answered),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, fieldAnswered, asm.R0, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackKey+2, asm.Half).WithSymbol(answered),
		asm.Sub.Imm(asm.R1, runsheet.FirstPort-answersPlace),
		asm.StoreMem(asm.RFP, stackPort, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, packets),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackPort),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.LoadMem(asm.R1, asm.R6, skbSegments, asm.Word),
		asm.JNE.Imm(asm.R1, 0, passed),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0).WithSymbol(passed),
		asm.Ja.Label(out),

		asm.LoadMem(asm.R0, asm.R9, fieldAnswered, asm.DWord).WithSymbol(carries),
		asm.JEq.Imm(asm.R0, 0, counted),
		asm.Mov.Reg(asm.R8, asm.R7),
		fetchAdd(asm.R9, asm.R8, fieldSince), // R8: before
		asm.JGT.Imm(asm.R8, opening, counted),
		asm.Add.Reg(asm.R8, asm.R7),
		asm.JLE.Imm(asm.R8, opening, counted),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, fieldFlowing, asm.R0, asm.DWord),

		asm.LoadMem(asm.R1, asm.RFP, stackKey+2, asm.Half).WithSymbol(counted),
		asm.Sub.Imm(asm.R1, runsheet.FirstPort),
		asm.StoreMem(asm.RFP, stackPort, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, packets),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackPort),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.LoadMem(asm.R1, asm.R6, skbSegments, asm.Word),
		asm.JNE.Imm(asm.R1, 0, several),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0).WithSymbol(several),

		asm.LoadMapPtr(asm.R1, listeners),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackPort),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.LoadMem(asm.R6, asm.R0, listenerLeast, asm.DWord), // the packet is not needed any more
		asm.LoadMem(asm.R1, asm.R0, listenerSum, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, single),
		asm.Mov.Reg(asm.R2, asm.R7),
		fetchAdd(asm.R0, asm.R2, listenerSent), // R2: before
		asm.JGE.Reg(asm.R2, asm.R1, single),
		asm.Add.Reg(asm.R2, asm.R7),
		asm.JLT.Reg(asm.R2, asm.R1, single),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R8, listenerAll, asm.R0, asm.DWord),

		asm.Mov.Reg(asm.R8, asm.R7).WithSymbol(single),
		fetchAdd(asm.R9, asm.R8, fieldBytes), // R8: before
		asm.JGE.Reg(asm.R8, asm.R6, out),
		asm.Add.Reg(asm.R8, asm.R7),
		asm.JLT.Reg(asm.R8, asm.R6, out),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, fieldAll, asm.R0, asm.DWord),

		asm.Mov.Imm(asm.R0, 0).WithSymbol(out),
		asm.Return(),
	)
}

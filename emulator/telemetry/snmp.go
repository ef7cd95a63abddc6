package telemetry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gosnmp/gosnmp"

	"linktrial/internal/radio"
)

// Bounds of a request: far beyond what a manager asks for at once, and small
// enough for an answer in one datagram on Ethernet.
const (
	maxVariables   = 32
	maxRepetitions = 32
)

// entry is one object of the radio's small tree.
type entry struct {
	arcs []uint32
	pdu  gosnmp.SnmpPDU
}

// respond answers one SNMPv1 or v2c request (RFC 3416, section 4.2). A message
// that is none, or has another community, gets no answer (RFC 3584, section 5.2).
func respond(request []byte, read func() (*State, error)) ([]byte, error) {
	decoder := &gosnmp.GoSNMP{Version: gosnmp.Version2c, MaxOids: maxVariables}
	in, err := decoder.SnmpDecodePacket(request)
	if err != nil {
		return nil, err
	}
	if in.Version != gosnmp.Version2c && in.Version != gosnmp.Version1 {
		return nil, fmt.Errorf("version %s, expected 2c", in.Version)
	}
	if in.Community != radio.EmulatedCommunity {
		return nil, fmt.Errorf("another community")
	}
	out := &gosnmp.SnmpPacket{Version: in.Version, Community: in.Community, PDUType: gosnmp.GetResponse, RequestID: in.RequestID}
	fail := func(code gosnmp.SNMPError) ([]byte, error) {
		out.Error, out.ErrorIndex, out.Variables = code, 0, nil
		return out.MarshalMsg()
	}
	if len(in.Variables) > maxVariables {
		return fail(gosnmp.TooBig)
	}
	state, err := read()
	if err != nil {
		return fail(gosnmp.GenErr)
	}
	all := tree(state)
	switch in.PDUType {
	case gosnmp.GetRequest:
		for _, v := range in.Variables {
			out.Variables = append(out.Variables, exactly(all, v.Name))
		}
	case gosnmp.GetNextRequest:
		for _, v := range in.Variables {
			out.Variables = append(out.Variables, after(all, v.Name))
		}
	case gosnmp.GetBulkRequest:
		once := min(int(in.NonRepeaters), len(in.Variables))
		for _, v := range in.Variables[:once] {
			out.Variables = append(out.Variables, after(all, v.Name))
		}
		rest := in.Variables[once:]
		for range min(int(in.MaxRepetitions), maxRepetitions) {
			for i := range rest {
				next := after(all, rest[i].Name)
				out.Variables = append(out.Variables, next)
				rest[i].Name = next.Name
			}
			if len(rest) == 0 || len(out.Variables) >= maxVariables {
				break
			}
		}
	case gosnmp.SetRequest:
		return fail(gosnmp.NotWritable)
	default:
		return nil, fmt.Errorf("a PDU of type %s", in.PDUType)
	}
	return out.MarshalMsg()
}

func exactly(all []entry, name string) gosnmp.SnmpPDU {
	want, ok := arcs(name)
	i, found := find(all, want)
	if !ok || !found {
		return gosnmp.SnmpPDU{Name: name, Type: gosnmp.NoSuchInstance}
	}
	return all[i].pdu
}

func after(all []entry, name string) gosnmp.SnmpPDU {
	want, _ := arcs(name)
	i, found := find(all, want)
	if found {
		i++
	}
	if i >= len(all) {
		return gosnmp.SnmpPDU{Name: name, Type: gosnmp.EndOfMibView}
	}
	return all[i].pdu
}

func find(all []entry, want []uint32) (int, bool) {
	return slices.BinarySearchFunc(all, want, func(e entry, w []uint32) int { return slices.Compare(e.arcs, w) })
}

func arcs(name string) ([]uint32, bool) {
	var out []uint32
	for a := range strings.SplitSeq(strings.TrimPrefix(name, "."), ".") {
		n, err := strconv.ParseUint(a, 10, 32)
		if err != nil {
			return out, false
		}
		out = append(out, uint32(n))
	}
	return out, true
}

// tree is all objects in the order of their identifiers.
func tree(s *State) []entry {
	var all []entry
	add := func(oid string, kind gosnmp.Asn1BER, value any) {
		a, _ := arcs(oid) // ours are numbers
		all = append(all, entry{a, gosnmp.SnmpPDU{Name: "." + oid, Type: kind, Value: value}})
	}
	oper := 2 // down
	if s.Up {
		oper = 1
	}
	add(radio.OIDSysDescr, gosnmp.OctetString, "Linktrial, emulated radio of the "+string(s.Role))
	add(radio.OIDSysUpTime, gosnmp.TimeTicks, uint32(uint64(s.UptimeSeconds*100)))
	add(radio.OIDSysName, gosnmp.OctetString, string(s.Role))
	add(radio.OIDIfNumber, gosnmp.Integer, 1)
	add(radio.OIDIfDescr, gosnmp.OctetString, "radio")
	add(radio.OIDIfMTU, gosnmp.Integer, s.MTUBytes)
	add(radio.OIDIfOper, gosnmp.Integer, oper)
	add(radio.OIDIfOutDrops, gosnmp.Counter32, uint32(s.DroppedPackets))
	add(radio.OIDIfHCIn, gosnmp.Counter64, s.InBytes)
	add(radio.OIDIfHCInPkts, gosnmp.Counter64, s.InPackets)
	add(radio.OIDIfHCOut, gosnmp.Counter64, s.OutBytes)
	add(radio.OIDIfHCOutPkt, gosnmp.Counter64, s.OutPackets)
	for i, n := range s.Neighbours {
		row := i + 1
		add(radio.EnterpriseColumn(radio.ColumnPeer, row), gosnmp.OctetString, string(n.Role))
		add(radio.EnterpriseColumn(radio.ColumnSNR, row), gosnmp.Integer, int(n.SNR*100))
		add(radio.EnterpriseColumn(radio.ColumnQueueBytes, row), gosnmp.Gauge32, uint32(n.QueueBytes))
		add(radio.EnterpriseColumn(radio.ColumnRate, row), gosnmp.Gauge32, uint32(n.RateBitsPerSecond/1000))
		add(radio.EnterpriseColumn(radio.ColumnLoss, row), gosnmp.Gauge32, uint32(n.Loss*1e6))
	}
	slices.SortFunc(all, func(a, b entry) int { return slices.Compare(a.arcs, b.arcs) })
	return all
}

package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
)

// What both ends have counted says where a treatment is blocked.
func TestJudgeTreatment(t *testing.T) {
	flow := func(reason, message string, change ...func(*linktrialv1.FlowSeen)) *linktrialv1.FlowSeen {
		f := &linktrialv1.FlowSeen{From: "client", To: "server", Reason: reason, Message: message, SizeBytes: 16 << 10, Carried: reason == ""}
		if f.Carried {
			f.Connected, f.Bytes, f.Seconds = true, 16<<10, 0.25
		}
		for _, c := range change {
			c(f)
		}
		return f
	}
	connected := func(f *linktrialv1.FlowSeen) { f.Connected = true }
	counts := func(toReceived, toSent, fromReceived, fromSent int64) *linktrialv1.ListenerSeen {
		l := &linktrialv1.ListenerSeen{At: "server", Port: 5003, ToReceived: toReceived, ToSent: toSent, FromReceived: fromReceived, FromSent: fromSent}
		if toReceived+toSent+fromReceived+fromSent > 0 {
			l.IpProtocol = 17
		}
		return l
	}
	ready := func(l *linktrialv1.ListenerSeen) *linktrialv1.ListenerSeen { l.Here, l.Ready = true, true; return l }
	broken := func(code, message string) *linktrialv1.ListenerSeen {
		l := counts(0, 0, 0, 0)
		l.Here, l.Code, l.Message = true, code, message
		return l
	}
	uncounted := func(l *linktrialv1.ListenerSeen) *linktrialv1.ListenerSeen { l.Uncounted = true; return l }
	const timeout = "connect-timeout"
	for name, tt := range map[string]struct {
		client, relay, server *linktrialv1.ListenerSeen
		flows                 []*linktrialv1.FlowSeen
		failure               string // of the client
		state                 linktrialv1.CheckState
		found, remedy         string
	}{
		"works": {client: counts(0, 9, 8, 0), server: ready(counts(9, 0, 0, 8)), flows: []*linktrialv1.FlowSeen{flow("", "")},
			state: stateOK, found: "t: works: 16 KiB in 250 ms over UDP port 5003"},
		"dropped on the way": {client: counts(0, 9, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: blocked, before a connection was made: 9 packets to UDP port 5003 left c, none arrived at s", remedy: "between the nodes"},
		"dropped by the server": {client: counts(0, 9, 0, 0), server: ready(counts(9, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: blocked, before a connection was made: 9 packets to UDP port 5003 arrived at s, and nothing there answered", remedy: "firewall there"},
		"dropped by the client": {client: counts(0, 0, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: blocked, before a connection was made: no packet to port 5003 left c", remedy: "rule on c"},
		"one direction only": {client: counts(0, 9, 0, 0), server: ready(counts(9, 0, 0, 7)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: blocked, before a connection was made: 7 packets from UDP port 5003 left s as answers, none arrived at c", remedy: "route from s"},
		"answers dropped by the client": {client: counts(0, 9, 7, 0), server: ready(counts(9, 0, 0, 7)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "no connection was made", remedy: "firewall on c"},
		"not forwarded": {client: counts(0, 9, 0, 0), relay: counts(9, 0, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "9 packets for UDP port 5003 arrived at r, none left it towards s", remedy: "ip_forward"},
		"not at the relay": {client: counts(0, 9, 0, 0), relay: counts(0, 0, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "left c, none arrived at r", remedy: "route on c"},
		"lost behind the relay": {client: counts(0, 9, 0, 0), relay: counts(9, 9, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "left r, none arrived at s"},
		"large packets lost": {client: counts(0, 30, 8, 0), server: ready(counts(4, 0, 0, 8)), flows: []*linktrialv1.FlowSeen{flow("transfer-timeout", "late", connected)},
			state: stateFailed, found: "t: blocked, after the connection was made (transfer-timeout: late): 30 packets to UDP port 5003 left c, 4 arrived at s", remedy: "mtu"},
		"slow": {client: counts(0, 30, 8, 0), server: ready(counts(30, 0, 0, 8)), flows: []*linktrialv1.FlowSeen{flow("transfer-timeout", "late", connected, func(f *linktrialv1.FlowSeen) { f.Bytes = 8 << 10 })},
			state: stateWarning, found: "t: works, and is slow: 8 KiB of 16 KiB"},
		"refused by the client": {client: counts(0, 0, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow("bad-parameters", "no IPv6")},
			state: stateFailed, found: "t: not supported: the driver on c refuses: no IPv6"},
		"refused by the server": {client: counts(0, 0, 0, 0), server: broken("unsupported", "no module"), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: not supported: the driver on s refuses: no module"},
		"port taken": {client: counts(0, 3, 3, 0), server: broken("listen-failed", "address already in use"), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: not ready: nothing listens on s at port 5003: address already in use", remedy: "sport = 5003"},
		"fails in order": {client: counts(0, 9, 9, 0), server: ready(counts(9, 0, 0, 9)), flows: []*linktrialv1.FlowSeen{flow("corrupted", "a byte", connected)},
			state: stateFailed, found: "t: fails: corrupted: a byte; 9 packets to UDP port 5003 left c, 9 came back"},
		"not counted": {client: uncounted(counts(0, 0, 0, 0)), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow(timeout, "no answer")},
			state: stateFailed, found: "t: fails: connect-timeout: no answer; packets were not counted"},
		"apparatus": {client: counts(0, 0, 0, 0), server: ready(counts(0, 0, 0, 0)), flows: []*linktrialv1.FlowSeen{flow("no-process", "no memory", func(f *linktrialv1.FlowSeen) { f.Invalid = true })},
			state: stateUnknown, found: "fault of the apparatus: no-process: no memory"},
		"busy":      {server: ready(counts(0, 0, 0, 0)), failure: "a run uses this node", state: stateUnknown, found: "t: not carried: c: a run uses this node"},
		"no report": {server: ready(counts(0, 0, 0, 0)), state: stateUnknown, found: "c did not report"},
		"probe": {client: counts(0, 9, 9, 0), server: ready(counts(9, 0, 0, 9)), flows: []*linktrialv1.FlowSeen{
			{From: "client", To: "server", Probe: true, Carried: true, Bytes: 9}, {From: "server", To: "client", Probe: true, Carried: true, Bytes: 8}},
			state: stateOK, found: "t: works: 9 packets from c to s, 8 packets from s to c"},
		"probe, one way": {client: counts(0, 9, 0, 0), server: ready(counts(9, 0, 0, 9)), flows: []*linktrialv1.FlowSeen{
			{From: "client", To: "server", Probe: true, Carried: true, Bytes: 9}, {From: "server", To: "client", Probe: true, Carried: true}},
			state: stateFailed, found: "t: blocked, no packet from s to c arrived: 9 packets from UDP port 5003 left s"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &transfers{nodes: map[radio.Role]*nodes.Node{}}
			reports := map[string]*transferReport{}
			add := func(role radio.Role, name string, l *linktrialv1.ListenerSeen, flows []*linktrialv1.FlowSeen, failure string) {
				x.nodes[role] = &nodes.Node{Registration: nodes.Registration{Name: name}}
				seen := &linktrialv1.TransferSeen{Treatment: "t", Flows: flows}
				if l != nil {
					seen.Listeners = []*linktrialv1.ListenerSeen{l}
				}
				reports[name] = &transferReport{failure: failure, seen: map[string]*linktrialv1.TransferSeen{"t": seen}}
			}
			add(radio.RoleClient, "c", tt.client, tt.flows, tt.failure)
			add(radio.RoleServer, "s", tt.server, nil, "")
			if tt.relay != nil {
				add(radio.RoleRelay, "r", tt.relay, nil, "")
			}
			c := x.judge(&runsheet.Treatment{Name: "t"}, reports)
			require.Equal(t, tt.state, c.State, "%v", c)
			require.Contains(t, c.Found, tt.found)
			require.Contains(t, c.Remedy, tt.remedy)
			require.Equal(t, []string{"c", "s"}, []string{c.Node, c.Peer})
			if c.State != stateOK {
				require.NotEmpty(t, c.Remedy)
			}
		})
	}
}

// What a radio carries in a preflight is bounded by time and by size.
func TestTransferSize(t *testing.T) {
	for rate, want := range map[float64]int64{0: maxTransfer, 2e6: maxTransfer, 16e3: 10000, 75: minTransfer} {
		size, _ := transferSize(rate)
		require.Equal(t, want, size, "%g bit/s", rate)
	}
}

// A plan of several radios names none: nobody knows which is attached first.
func TestRequestOfAPlan(t *testing.T) {
	cell := func(of, topology string, stations int) Cell {
		s := &runsheet.Sheet{Cell: runsheet.Cell{Radio: of, Topology: topology}}
		s.Topology.Stations = append(s.Topology.Stations, make([]radio.Station, stations)...)
		return Cell{Sheet: s}
	}
	for name, tt := range map[string]struct {
		cells      []Cell
		flag, want string
	}{
		"one":                 {[]Cell{cell("a", "two", 2), cell("a", "three", 3)}, "", "a"},
		"several":             {[]Cell{cell("a", "two", 2), cell("b", "three", 3)}, "", ""},
		"several, and a flag": {[]Cell{cell("a", "two", 2), cell("b", "three", 3)}, "b", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Radio: tt.flag, Protocols: []string{"udt"}}
			r.OfPlan("p", []string{"tcp", "udt"}, tt.cells)
			require.Equal(t, tt.want, r.Radio)
			require.Equal(t, "three", r.Topology)
			require.Equal(t, []string{"udt", "tcp"}, r.Protocols)
			require.Equal(t, "p", r.Plan)
		})
	}
}

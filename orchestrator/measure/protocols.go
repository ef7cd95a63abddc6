package measure

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/yamldoc"
)

// Protocol is one that a comparison can have.
type Protocol struct {
	Name, Label string // of the treatment
	Driver      string
	options     string // as YAML; empty: the driver's own
	missing     string // why a node may lack it; empty: every node has it
	// leastPayload is the largest payload of UDP, in bytes, that a link must carry for the
	// protocol to connect; 0: any.
	leastPayload int64
}

// quicPayload is the least payload of UDP that QUIC needs (RFC 9000, section 14).
const quicPayload = 1200

// protocols are all, in the order of plans.
var protocols = []Protocol{
	{Name: tcp, Label: "TCP CUBIC", Driver: "tcp", options: "{congestion: cubic}"},
	{Name: "tcp-reno", Label: "TCP Reno", Driver: "tcp", options: "{congestion: reno}"},
	{Name: "tcp-bbr", Label: "TCP BBR", Driver: "tcp", options: "{congestion: bbr}", missing: "not every kernel has BBR"},
	{Name: "tcp-westwood", Label: "TCP Westwood+", Driver: "tcp", options: "{congestion: westwood}", missing: "not every kernel has Westwood+"},
	{Name: "quic", Label: "QUIC", Driver: "quic", leastPayload: quicPayload},
	{Name: "sctp", Label: "SCTP", Driver: "sctp"},
	{Name: "udt", Label: "UDT", Driver: "udt"},
	{Name: "lt-tcp", Label: "LT-TCP", Driver: "lttcp"},
	{Name: haul, Label: "Haul", Driver: "haul"},
}

// usual are those of the plan two-laptops, which are compared where nobody names others.
var usual = []string{tcp, "quic", haul}

// ProtocolsOf are the protocols of these names, in their order, the first of which is the
// reference; none: the usual ones.
func ProtocolsOf(names []string) ([]Protocol, error) {
	if len(names) == 0 {
		names = usual
	}
	var out []Protocol
	for _, name := range names {
		i := slices.IndexFunc(protocols, func(p Protocol) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no protocol %q to compare%s: expected some of %s", name, yamldoc.Suggest(name, protocolNames()), strings.Join(protocolNames(), ", "))
		}
		if slices.ContainsFunc(out, func(p Protocol) bool { return p.Name == name }) {
			return nil, fmt.Errorf("the protocol %s is there twice", name)
		}
		out = append(out, protocols[i])
	}
	return out, nil
}

func protocolNames() (out []string) {
	for _, p := range protocols {
		out = append(out, p.Name)
	}
	return out
}

// treatment is the protocol as an element of a plan.
func (p *Protocol) treatment() string {
	text := fmt.Sprintf("{name: %s, label: %s, protocol: %s", p.Name, p.Label, p.Driver)
	if p.options != "" {
		text += ", options: " + p.options
	}
	if p.missing != "" {
		text += ", missing: " + p.missing
	}
	return text + "}"
}

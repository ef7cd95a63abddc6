package radio

import (
	"fmt"
	"net/netip"
)

// AddressProblem says why drivers cannot be given an address of a node's radio, and what to
// do; empty: they can. Link-local addresses mean something only with a zone, which is the
// name of an interface of one node and says nothing on another (RFC 4007, section 6;
// [P9] of docs/driver-contract.md).
func AddressProblem(node, address string) string {
	if address == "" {
		return "" // the emulated network's
	}
	a, err := netip.ParseAddr(address)
	const do = "give the radio's interface an address of a network of its own (IPv4, or IPv6 such as fd00:77::1/64) and name that to the agent (--radio-address)"
	switch {
	case err != nil:
		return fmt.Sprintf("the radio address %.60q of node %s is not an IP address; %s", address, node, do)
	case a.Zone() != "" || a.IsLinkLocalUnicast() && a.Is6():
		return fmt.Sprintf("node %s has the link-local radio address %s, which means nothing on the other nodes, so drivers are not given one; %s", node, address, do)
	}
	return ""
}

// FamilyProblem says that the radio addresses of two nodes are of different IP versions;
// empty: they are of one, or not known.
func FamilyProblem(node, address, other, otherAddress string) string {
	a, err := netip.ParseAddr(address)
	b, also := netip.ParseAddr(otherAddress)
	if err != nil || also != nil || a.Unmap().Is6() == b.Unmap().Is6() {
		return ""
	}
	return fmt.Sprintf("the radio addresses of node %s (%s) and node %s (%s) are of different IP versions, so no connection can be made between them; give both nodes an address of one version and name it to their agents (--radio-address)",
		node, address, other, otherAddress)
}

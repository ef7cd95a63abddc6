package executor

import (
	"fmt"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// SecondRadio is the interface of a node's second radio and its address: where radios
// are emulated that of the emulator, else what the attach section of the second radio's
// profile says. ok is false where the topology gives the nodes one radio.
func SecondRadio(s *runsheet.Sheet, role radio.Role, place string) (path contract.Path, ok bool) {
	second := s.Topology.Second
	if second == nil {
		return contract.Path{}, false
	}
	if place == journal.PlaceEmulated || place == journal.PlaceVirtual {
		if s.Network == nil || s.Network.Second == nil {
			return contract.Path{}, false
		}
		return contract.Path{Device: radio.SecondDevice, Address: s.Network.Second.AddressOf(role)}, true
	}
	if second.Profile == nil {
		return contract.Path{}, true
	}
	at := second.Profile.Attach.For(role)
	address, _, _ := strings.Cut(at.Address, "/")
	return contract.Path{Device: at.Interface, Address: address}, true
}

// radios tells a driver of a treatment's end which radio it uses, and which there are.
func (n *node) radios(p *contract.Parameters, t *runsheet.Treatment) error {
	path, there := SecondRadio(n.sheet, n.Role, n.Place)
	switch {
	case !there && t.SecondRadio:
		return fmt.Errorf("treatment %s uses second radios, and topology %s has none", t.Name, n.sheet.Topology.Name)
	case !there:
		return nil
	case path.Address == "" && t.SecondRadio:
		return fmt.Errorf("the address of the second radio of the %s is not known: give it in the profile %s, attach.roles.%s.address", n.Role, n.sheet.Topology.Second.Radio, n.Role)
	case t.SecondRadio:
		p.Local.Address, p.Device = path.Address, path.Device
	case path.Address != "":
		p.Paths = []contract.Path{{Device: p.Device, Address: p.Local.Address}, path}
	}
	return nil
}

// addressFor is the address of a node's radio that a treatment uses.
func (n *node) addressFor(t *runsheet.Treatment, role radio.Role) string {
	if !t.SecondRadio {
		return n.addressOf(role)
	}
	path, _ := SecondRadio(n.sheet, role, n.Place)
	return path.Address
}

// networkOf is the emulated network that a treatment's flows cross.
func (n *node) networkOf(t *runsheet.Treatment) *radio.Network {
	if t.SecondRadio && n.sheet.Network != nil {
		return n.sheet.Network.Second
	}
	return n.sheet.Network
}

package tun

import (
	"errors"
	"fmt"

	"linktrial/internal/radiocontrol"
	"linktrial/internal/signature"
)

// vouch signs that a node's radio is emulated where that is so: the interface that the
// node uses as its radio is the device of this emulator. An agent that is started with the
// control socket of a lab outside of the lab's namespaces, or with another interface, would
// measure something else.
func (c *control) vouch(v *radiocontrol.Vouch) (*signature.LabProof, error) {
	s := &v.Statement
	if len(c.labKey) == 0 {
		return nil, errors.New("vouch: these radios belong to no lab")
	}
	for _, d := range c.e.devices {
		if d.node.second || string(d.node.role) != s.Role {
			continue
		}
		switch {
		case d.node.address.String() != s.Address:
			return nil, fmt.Errorf("vouch: the %s of this lab has the radio address %s, not %q", s.Role, d.node.address, s.Address)
		case d.namespace != v.Namespace:
			return nil, fmt.Errorf("vouch: the %s of this lab is in the network namespace %s, and the agent runs in %q", s.Role, d.namespace, v.Namespace)
		case d.index != v.Interface:
			return nil, fmt.Errorf("vouch: the radio of the %s of this lab is interface %d (%s), and the agent uses interface %d", s.Role, d.index, d.name, v.Interface)
		}
		p := signature.SignLab(c.labKey, *s)
		return &p, nil
	}
	return nil, fmt.Errorf("vouch: this lab has no %q", s.Role)
}

package executor

import (
	"testing"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// Two drivers on one node speak over its loopback interface, so neither is told
// the radio's: a socket that is bound to it may not reach the other.
func TestDeviceOfRelayProcessesOnOneNode(t *testing.T) {
	tr := runsheet.Treatment{Name: "proxied", Protocol: "tcp", Port: 5001, Via: []runsheet.Via{
		{At: radio.RoleClient, Protocol: "split", Port: 5201}, {At: radio.RoleRelay, Protocol: "split", Port: 5202}, {At: radio.RoleServer, Protocol: "split", Port: 5203}}}
	plain := runsheet.Treatment{Name: "plain", Protocol: "tcp", Port: 5002}
	sheet := &runsheet.Sheet{Treatments: []runsheet.Treatment{tr, plain}}
	at := func(role radio.Role) *node {
		return newNode(Config{Role: role, Device: "radio0", Address: radio.Addresses[role]}, sheet)
	}
	for name, from := range map[string]radio.Role{"proxied": radio.RoleClient, "plain": radio.RoleClient} {
		f := &flow{node: at(from), spec: runsheet.Flow{Treatment: name, From: from, To: radio.RoleServer}}
		want := map[string]string{"proxied": "", "plain": "radio0"}[name]
		if p, err := f.parameters(sheet.Treatment(name)); err != nil || p.Device != want {
			t.Errorf("the client of %s is told device %q, expected %q", name, p.Device, want)
		}
	}
	// A flow that starts at the relay goes out over the radio, to the server's relay process.
	f := &flow{node: at(radio.RoleRelay), spec: runsheet.Flow{Treatment: "proxied", From: radio.RoleRelay, To: radio.RoleServer}}
	if p, err := f.parameters(&tr); err != nil || p.Device != "radio0" || p.Remote.Port != 5203 {
		t.Errorf("a flow from the relay is told device %q and port %d", p.Device, p.Remote.Port)
	}
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		for _, l := range sheet.Listeners(role) {
			want := "radio0"
			if l.Treatment.Name == "proxied" && role != radio.RoleRelay {
				want = ""
			}
			if _, p, err := (&listener{Listener: l, node: at(role)}).parameters(); err != nil || p.Device != want {
				t.Errorf("listener of %s at the %s (relay process: %t) is told device %q, expected %q", l.Treatment.Name, role, l.Via != nil, p.Device, want)
			}
		}
	}
}

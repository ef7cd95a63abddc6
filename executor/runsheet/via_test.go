package runsheet

import (
	"slices"
	"strings"
	"testing"

	"linktrial/internal/radio"
)

// passing is a sheet of one treatment that passes relay processes at the roles.
func passing(at ...radio.Role) *Sheet {
	s := sample()
	for i, role := range at {
		s.Treatments[0].Via = append(s.Treatments[0].Via, Via{At: role, Protocol: "split", Options: map[string]any{}, Port: 5201 + i})
	}
	return s
}

const client, relay, server = radio.RoleClient, radio.RoleRelay, radio.RoleServer

// A flow connects to the first relay process on its way, and that to the next.
func TestWays(t *testing.T) {
	for _, c := range []struct {
		via  []radio.Role
		from radio.Role
		want []radio.Role // what the bytes pass, in order
	}{
		{nil, client, nil},
		{[]radio.Role{relay}, client, []radio.Role{relay}},
		{[]radio.Role{relay}, relay, nil},
		{[]radio.Role{client, relay, server}, client, []radio.Role{client, relay, server}},
		{[]radio.Role{client, relay, server}, relay, []radio.Role{server}},
		{[]radio.Role{client}, relay, nil},
	} {
		s := passing(c.via...)
		tr := &s.Treatments[0]
		var got []radio.Role
		at := tr.First(c.from, server)
		for at.Port != tr.Port {
			i := slices.IndexFunc(tr.Via, func(v Via) bool { return v.Port == at.Port })
			if i < 0 || tr.Via[i].At != at.At {
				t.Fatalf("via %q from %s: a connection to %+v, where nobody listens", c.via, c.from, at)
			}
			got = append(got, at.At)
			at = tr.After(i)
		}
		if !slices.Equal(got, c.want) || at.At != server {
			t.Errorf("via %q from %s: %q and then %+v, expected %q", c.via, c.from, got, at, c.want)
		}
	}
}

func TestListenersAndUses(t *testing.T) {
	s := passing(client, relay)
	for role, want := range map[radio.Role]string{client: "a@client", relay: "a@relay", server: "a@"} {
		var got []string
		for _, l := range s.Listeners(role) {
			got = append(got, l.Treatment.Name+"@"+string(l.At()))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the %s listens with %q, expected %q", role, got, want)
		}
	}
	for role, want := range map[radio.Role]string{client: "tcp split", relay: "split", server: "tcp"} {
		var got []string
		for _, u := range s.Uses(role) {
			got = append(got, u.Protocol)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the %s needs %q, expected %q", role, got, want)
		}
	}
}

// Relay processes end connections: who is beside one speaks with it alone.
func TestNeighbours(t *testing.T) {
	for name, c := range map[string]struct {
		s    *Sheet
		want map[radio.Role][]radio.Role
	}{
		"direct":       {passing(), map[radio.Role][]radio.Role{client: {server}, relay: nil, server: {client}}},
		"relay":        {passing(relay), map[radio.Role][]radio.Role{client: {relay}, relay: {client, server}, server: {relay}}},
		"at all nodes": {passing(client, relay, server), map[radio.Role][]radio.Role{client: {relay}, relay: {client, server}, server: {relay}}},
	} {
		for i := range c.s.Trials {
			for k := range c.s.Trials[i].Flows {
				c.s.Trials[i].Flows[k].From, c.s.Trials[i].Flows[k].To = client, server
			}
		}
		for role, want := range c.want {
			if got := c.s.Neighbours(role); !slices.Equal(got, want) {
				t.Errorf("%s: the %s has %q, expected %q", name, role, got, want)
			}
		}
	}
}

func TestInvalidVia(t *testing.T) {
	for name, c := range map[string]struct {
		s    *Sheet
		want string
	}{
		"order":      {passing(server, relay), "expected client, relay, server in this order"},
		"twice":      {passing(relay, relay), "expected client, relay, server in this order"},
		"no role":    {passing(""), "expected client, relay, server in this order"},
		"a program":  {passing(relay), "via the relay) has protocol"},
		"the server": {passing(server), "share port 5001"},
	} {
		switch name {
		case "a program":
			c.s.Treatments[0].Via[0].Protocol = "../x"
		case "the server":
			c.s.Treatments[0].Via[0].Port = 5001
		}
		if err := c.s.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	if err := passing(client, relay, server).Check(); err != nil {
		t.Error(err)
	}
}

package radio

import (
	"strings"
	"testing"
	"time"

	"linktrial/internal/telemetrysource"
)

const attachText = `attach:
  reach: by the radio's Ethernet adapter
  source: a manual, page 3
  interface: eth1
  mtu: 1500 B
  roles:
    client: {address: 10.77.0.1/24, radio: 10.77.0.101, routes: [{to: 10.78.0.0/24, via: 10.77.0.2}, {to: 10.79.0.0/16}]}
    relay: {interface: eth2, forwarding: true}
telemetry:
  - {name: counters, kind: snmp, source: RFC 2863, target: radio, values: [{name: in_bytes, oid: .1.3.6.1.2.1.31.1.1.1.6.1, unit: B, counter: true}]}
  - {name: place, kind: gpsd, on: both, source: s}
  - {name: power, kind: host, source: s}
emulation:
`

func TestParseAttach(t *testing.T) {
	p, err := ParseProfile("p", []byte(strings.Replace(profileText, "emulation:\n", attachText, 1)))
	if err != nil {
		t.Fatal(err)
	}
	client, relay := p.Attach.For(RoleClient), p.Attach.For(RoleRelay)
	if p.Attach.MTUBytes != 1500 || client.Interface != "eth1" || client.Address != "10.77.0.1/24" || client.Radio != "10.77.0.101" || client.Forwarding != nil || len(client.Routes) != 2 || client.Routes[0] != (Route{"10.78.0.0/24", "10.77.0.2"}) {
		t.Errorf("client %+v of %+v", client, p.Attach)
	}
	if relay.Interface != "eth2" || relay.Forwarding == nil || !*relay.Forwarding {
		t.Errorf("relay %+v", relay)
	}
	if none := (*Attach)(nil).For(RoleServer); none.Interface != "" {
		t.Errorf("of no attachment: %+v", none)
	}
	names := func(list []telemetrysource.Source) (out string) {
		for _, s := range list {
			out += s.Name + " "
		}
		return out
	}
	if got := names(p.Sources(false)); got != "counters place power " {
		t.Errorf("real: %s", got)
	}
	if got := names(p.Sources(true)); got != "place radio-snmp radio-http " {
		t.Errorf("emulated: %s", got)
	}
	if f, ok := p.ParameterOf("frequency"); !ok || f.Value != 402.5 {
		t.Errorf("frequency %+v %t", f, ok)
	}
	if _, ok := p.ParameterOf("delay"); ok {
		t.Error("an unknown parameter was given a value")
	}
}

func TestAttachRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"attach: {source: s}\n", "attach.reach is missing"},
		{"attach: {reach: by cable}\n", "attach.source is missing"},
		{"attach: {reach: r, source: s, interface: eth one}\n", `p:10:42: attach.interface: expected the name of a network interface`},
		{"attach: {reach: r, source: s, mtu: 20 B}\n", "expected a size from 576 B"},
		{"attach: {reach: r, source: s, roles: {driver: {}}}\n", `unknown key "driver"`},
		{"attach: {reach: r, source: s, roles: {client: {address: 10.77.0.1}}}\n", "an address with its prefix"},
		{"attach: {reach: r, source: s, roles: {client: {radio: here}}}\n", `expected an IP address, found "here"`},
		{"attach: {reach: r, source: s, roles: {client: {routes: [{to: 10.77.0.1/24}]}}}\n", "without host bits"},
		{"attach: {reach: r, source: s, roles: {relay: {forwarding: often}}}\n", "expected true or false"},
	} {
		_, err := ParseProfile("p", []byte(strings.Replace(profileText, "emulation:\n", c.text+"emulation:\n", 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}

// What every emulated radio tells is written as a profile might write it.
func TestEmulatedTelemetryIsValid(t *testing.T) {
	for _, s := range EmulatedTelemetry() {
		d := telemetrysource.Of(s.Kind)
		if d == nil || s.Host != telemetrysource.TargetRadio || s.On != telemetrysource.OnEmulated || s.Settings == nil || s.IntervalNS < int64(time.Second) || len(s.Values) == 0 {
			t.Errorf("%+v", s)
		}
		for _, v := range s.Values {
			if v.Name == "" || v.Unit == "" || v.Place == "" || v.Scale == 0 {
				t.Errorf("%s: %+v", s.Name, v)
			}
		}
	}
}

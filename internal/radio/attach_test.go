package radio

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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
  - name: counters
    kind: snmp
    source: RFC 2863
    target: radio
    values:
      - {name: in_bytes, oid: .1.3.6.1.2.1.31.1.1.1.6.1, unit: B, counter: true}
  - name: secret
    kind: snmp
    on: both
    source: s
    target: "[2001:db8::1]:1161"
    poll: always
    interval: 2s
    snmp: {version: 3, user: u, auth: sha256, auth_env: RADIO_AUTH, privacy: aes, privacy_env: RADIO_PRIVACY}
    values: [{name: snr, oid: 1.3.6.1.4.1.32473.7.2.1, unit: dB, scale: 0.01}]
  - {name: page, kind: http, source: s, target: radio.local:8080, path: /status, values: [{name: snr, pointer: /a~1b/0, unit: dB}]}
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
	want := []Telemetry{
		{Name: "counters", Kind: TelemetrySNMP, On: OnReal, Source: "RFC 2863", Poll: PollBetweenTrials, IntervalNS: int64(10 * time.Second), Host: "radio", Port: 161,
			SNMP: &SNMP{Version: "2c", Community: "public"}, Values: []TelemetryValue{{Name: "in_bytes", OID: "1.3.6.1.2.1.31.1.1.1.6.1", Unit: "B", Scale: 1, Counter: true}}},
		{Name: "secret", Kind: TelemetrySNMP, On: OnBoth, Source: "s", Poll: PollAlways, IntervalNS: int64(2 * time.Second), Host: "2001:db8::1", Port: 1161,
			SNMP:   &SNMP{Version: "3", User: "u", Auth: "sha256", AuthEnv: "RADIO_AUTH", Privacy: "aes", PrivacyEnv: "RADIO_PRIVACY"},
			Values: []TelemetryValue{{Name: "snr", OID: "1.3.6.1.4.1.32473.7.2.1", Unit: "dB", Scale: 0.01}}},
		{Name: "page", Kind: TelemetryHTTP, On: OnReal, Source: "s", Poll: PollBetweenTrials, IntervalNS: int64(10 * time.Second), Host: "radio.local", Port: 8080, Path: "/status",
			Values: []TelemetryValue{{Name: "snr", Pointer: "/a~1b/0", Unit: "dB", Scale: 1}}},
		{Name: "place", Kind: TelemetryGPSD, On: OnBoth, Source: "s", Poll: PollAlways, IntervalNS: int64(5 * time.Second), Host: "127.0.0.1", Port: 2947},
		{Name: "power", Kind: TelemetryHost, On: OnReal, Source: "s", Poll: PollAlways, IntervalNS: int64(5 * time.Second)},
	}
	if got, all := asJSON(t, p.Telemetry), asJSON(t, want); got != all {
		t.Errorf("got\n%s\nwant\n%s", got, all)
	}
	names := func(list []Telemetry) (out string) {
		for _, s := range list {
			out += s.Name + " "
		}
		return out
	}
	if got := names(p.Sources(false)); got != "counters secret page place power " {
		t.Errorf("real: %s", got)
	}
	if got := names(p.Sources(true)); got != "secret place radio-snmp radio-http " {
		t.Errorf("emulated: %s", got)
	}
	if f, ok := p.FigureOf("frequency"); !ok || f.Value != 402.5 {
		t.Errorf("frequency %+v %t", f, ok)
	}
	if _, ok := p.FigureOf("delay"); ok {
		t.Error("an unknown figure was given a value")
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What every emulated radio tells is written as a profile might write it.
func TestEmulatedTelemetryIsValid(t *testing.T) {
	for _, s := range EmulatedTelemetry() {
		if s.IntervalNS < int64(minPoll) || s.Host != TargetRadio || s.On != OnEmulated || len(s.Values) == 0 {
			t.Errorf("%+v", s)
		}
		for _, v := range s.Values {
			if !valueForm.MatchString(v.Name) || !unitForm.MatchString(v.Unit) || (v.OID == "") == (v.Pointer == "") || !validPointer(v.Pointer) || v.Scale == 0 {
				t.Errorf("%s: %+v", s.Name, v)
			}
		}
	}
}

func TestAttachRefused(t *testing.T) {
	source := func(s string) string { return "telemetry:\n  - {name: x, source: s, " + s + "}\n" }
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
		{source("kind: smoke"), `unknown "smoke"`},
		{source("kind: host, target: radio"), "a source of kind host has none; it belongs to snmp, http and gpsd"},
		{source("kind: gpsd, interval: 1ms"), "expected from 200ms to 1h0m0s, found 1ms"},
		{source("kind: snmp, values: [{name: a, oid: 1.3}]"), "target is missing"},
		{source("kind: snmp, target: radio"), "values is missing"},
		{source("kind: snmp, target: radio, values: []"), "0 values, expected 1 to 64"},
		{source("kind: snmp, target: 'a b', values: [{name: a, oid: 1.3}]"), `expected a host such as "radio"`},
		{source("kind: snmp, target: 'a:99999', values: [{name: a, oid: 1.3}]"), `expected a host such as "radio"`},
		{source("kind: snmp, target: radio, values: [{name: a, oid: sysUpTime}]"), "a numeric object identifier"},
		{source("kind: snmp, target: radio, values: [{name: a, oid: 1.40.1}]"), "a numeric object identifier"},
		{source("kind: snmp, target: radio, values: [{name: a, pointer: /a}]"), `unknown key "pointer"`},
		{source("kind: snmp, target: radio, values: [{name: a, oid: 1.3}, {name: a, oid: 1.3}]"), `value "a" is given twice`},
		{source("kind: snmp, target: radio, values: [{name: a, oid: 1.3, scale: 0}]"), "a scale of 0"},
		{source("kind: snmp, target: radio, values: [{name: a, oid: 1.3, unit: 'a b'}]"), "expected a unit"},
		{source("kind: snmp, target: radio, snmp: {version: 3}, values: [{name: a, oid: 1.3}]"), "snmp.user is missing"},
		{source("kind: snmp, target: radio, snmp: {user: u}, values: [{name: a, oid: 1.3}]"), "version 2c has none"},
		{source("kind: snmp, target: radio, snmp: {version: 3, user: u, auth: sha}, values: [{name: a, oid: 1.3}]"), "auth_env is missing"},
		{source("kind: snmp, target: radio, snmp: {version: 3, user: u, auth: sha, auth_env: my-password}, values: [{name: a, oid: 1.3}]"), "secrets are no part of a profile"},
		{source("kind: snmp, target: radio, snmp: {version: 3, user: u, privacy: aes, privacy_env: A}, values: [{name: a, oid: 1.3}]"), "privacy without authentication"},
		{source("kind: http, target: radio, path: status, values: [{name: a, pointer: /a}]"), `expected a path such as "/status.json"`},
		{source("kind: http, target: radio, path: /s, values: [{name: a, pointer: a}]"), "expected a JSON pointer"},
		{source("kind: http, target: radio, path: /s, values: [{name: a, pointer: /a~2}]"), "expected a JSON pointer"},
		{"telemetry:\n  - {name: x, kind: host, source: s}\n  - {name: x, kind: host, source: s}\n", `p:12:5: telemetry[1]: source "x" is given twice`},
	} {
		_, err := ParseProfile("p", []byte(strings.Replace(profileText, "emulation:\n", c.text+"emulation:\n", 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}

package telemetrysource

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/yamldoc"
)

const sourcesText = `- name: counters
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
`

// sourcesJSON is sourcesText as run sheets have had it since telemetry exists: their hashes are
// over it.
const sourcesJSON = `[{"name":"counters","kind":"snmp","on":"real","source":"RFC 2863","poll":"between-trials","interval_ns":10000000000,"host":"radio","port":161,"snmp":{"version":"2c","community":"public"},"values":[{"name":"in_bytes","oid":"1.3.6.1.2.1.31.1.1.1.6.1","unit":"B","scale":1,"counter":true}]},
{"name":"secret","kind":"snmp","on":"both","source":"s","poll":"always","interval_ns":2000000000,"host":"2001:db8::1","port":1161,"snmp":{"version":"3","user":"u","auth":"sha256","auth_env":"RADIO_AUTH","privacy":"aes","privacy_env":"RADIO_PRIVACY"},"values":[{"name":"snr","oid":"1.3.6.1.4.1.32473.7.2.1","unit":"dB","scale":0.01}]},
{"name":"page","kind":"http","on":"real","source":"s","poll":"between-trials","interval_ns":10000000000,"host":"radio.local","port":8080,"path":"/status","values":[{"name":"snr","pointer":"/a~1b/0","unit":"dB","scale":1}]},
{"name":"place","kind":"gpsd","on":"both","source":"s","poll":"always","interval_ns":5000000000,"host":"127.0.0.1","port":2947},
{"name":"power","kind":"host","on":"real","source":"s","poll":"always","interval_ns":5000000000}]`

func parse(text string) ([]Source, error) {
	d := yamldoc.Parse("p", []byte("telemetry:\n"+text))
	out := Parse(d.Root().Mapping("telemetry").Field("telemetry"))
	return out, d.Err()
}

func TestParse(t *testing.T) {
	sources, err := parse(sourcesText)
	require.NoError(t, err)
	b, err := json.Marshal(sources)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(sourcesJSON, ",\n", ","), string(b))
	var again []Source
	require.NoError(t, json.Unmarshal(b, &again))
	require.Equal(t, sources, again)
}

// A source of a kind that this program does not know is kept as it came, and is no reason
// to refuse the profile; a key that its kind does not have is.
func TestJSONOfOthers(t *testing.T) {
	const other = `{"name":"x","kind":"smoke","on":"real","source":"s","poll":"always","interval_ns":1,"colour":"grey","values":[{"name":"a"}]}`
	var s Source
	require.NoError(t, json.Unmarshal([]byte(other), &s))
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, other, string(b))
	require.Equal(t, "x ! a source of kind \"smoke\", which this agent does not know", check(t, Node{}, s))
	require.Equal(t, "a source of kind smoke", s.Way())

	for text, want := range map[string]string{
		`{"name":"x","kind":"http","colour":"grey"}`:                                  `telemetry source "x" of kind http: json: unknown field "colour"`,
		`{"name":"x","kind":"snmp","values":[{"name":"a","pointer":"/a","scale":1}]}`: `telemetry source "x": json: unknown field "pointer"`,
		`{"name":"x","kind":"gpsd","values":[{"name":"a","oid":"1.3"}]}`:              `telemetry source "x" of kind gpsd: json: unknown field "values"`,
		`{"name":"x","kind":"http","values":{}}`:                                      `telemetry source "x": json: cannot unmarshal`,
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), new(Source)), want)
	}
}

func TestParseRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"- {name: x, source: s, kind: smoke}", `unknown "smoke"`},
		{"- {name: x, source: s, kind: host, target: radio}", "a source of kind host has none; it belongs to snmp, http and gpsd"},
		{"- {name: x, source: s, kind: gpsd, interval: 1ms}", "expected from 200ms to 1h0m0s, found 1ms"},
		{"- {name: x, source: s, kind: snmp, values: [{name: a, oid: 1.3}]}", "target is missing"},
		{"- {name: x, source: s, kind: snmp, target: radio}", "values is missing"},
		{"- {name: x, source: s, kind: snmp, target: radio, values: []}", "0 values, expected 1 to 64"},
		{"- {name: x, source: s, kind: snmp, target: 'a b', values: [{name: a, oid: 1.3}]}", `expected a host such as "radio"`},
		{"- {name: x, source: s, kind: snmp, target: 'a:99999', values: [{name: a, oid: 1.3}]}", `expected a host such as "radio"`},
		{"- {name: x, source: s, kind: snmp, target: radio, values: [{name: a, oid: sysUpTime}]}", "a numeric object identifier"},
		{"- {name: x, source: s, kind: snmp, target: radio, values: [{name: a, oid: 1.40.1}]}", "a numeric object identifier"},
		{"- {name: x, source: s, kind: snmp, target: radio, values: [{name: a, pointer: /a}]}", `unknown key "pointer"`},
		{"- {name: x, source: s, kind: snmp, target: radio, values: [{name: a, oid: 1.3}, {name: a, oid: 1.3}]}", `value "a" is given twice`},
		{"- {name: x, source: s, kind: snmp, target: radio, values: [{name: a, oid: 1.3, scale: 0}]}", "a scale of 0"},
		{"- {name: x, source: s, kind: snmp, target: radio, values: [{name: a, oid: 1.3, unit: 'a b'}]}", "expected a unit"},
		{"- {name: x, source: s, kind: snmp, target: radio, snmp: {version: 3}, values: [{name: a, oid: 1.3}]}", "snmp.user is missing"},
		{"- {name: x, source: s, kind: snmp, target: radio, snmp: {user: u}, values: [{name: a, oid: 1.3}]}", "version 2c has none"},
		{"- {name: x, source: s, kind: snmp, target: radio, snmp: {version: 3, user: u, auth: sha}, values: [{name: a, oid: 1.3}]}", "auth_env is missing"},
		{"- {name: x, source: s, kind: snmp, target: radio, snmp: {version: 3, user: u, auth: sha, auth_env: my-password}, values: [{name: a, oid: 1.3}]}", "secrets are no part of a profile"},
		{"- {name: x, source: s, kind: snmp, target: radio, snmp: {version: 3, user: u, privacy: aes, privacy_env: A}, values: [{name: a, oid: 1.3}]}", "privacy without authentication"},
		{"- {name: x, source: s, kind: http, target: radio, path: status, values: [{name: a, pointer: /a}]}", `expected a path such as "/status.json"`},
		{"- {name: x, source: s, kind: http, target: radio, path: /s, values: [{name: a, pointer: a}]}", "expected a JSON pointer"},
		{"- {name: x, source: s, kind: http, target: radio, path: /s, values: [{name: a, pointer: /a~2}]}", "expected a JSON pointer"},
		{"- {name: x, kind: host, source: s}\n- {name: x, kind: host, source: s}", `p:3:3: telemetry[1]: source "x" is given twice`},
	} {
		if _, err := parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}

// FuzzParse: what is taken from a profile is within bounds, can be asked, and comes through a
// run sheet as it is.
func FuzzParse(f *testing.F) {
	f.Add(sourcesText)
	f.Add("- {name: x, kind: http, source: s, target: a:1, path: /, tls: true, values: [{name: a, pointer: ''}]}")
	f.Fuzz(func(t *testing.T, text string) {
		sources, err := parse(text)
		if err != nil {
			return
		}
		for _, s := range sources {
			d := Of(s.Kind)
			if d == nil || s.Name == "" || s.Origin == "" || s.IntervalNS < int64(minPoll) || d.has("target") != (s.Host != "" && s.Port > 0 && s.Port < 1<<16) || s.Way() == "" || (len(s.Values) > 0) != d.has("values") {
				t.Fatalf("source %+v", s)
			}
			for _, v := range s.Values {
				if math.IsNaN(v.Scale) || math.IsInf(v.Scale, 0) || v.Scale == 0 {
					t.Fatalf("value %+v", v)
				}
			}
			b, err := json.Marshal(s)
			require.NoError(t, err)
			var again Source
			require.NoError(t, json.Unmarshal(b, &again))
			require.Equal(t, s, again)
		}
	})
}

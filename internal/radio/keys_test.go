package radio

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/docpart"
	"linktrial/internal/yamlschema"
	"linktrial/internal/yamlschema/yamlschematest"
)

// shipped is the documents of a folder of the checkout.
func shipped(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../" + folder + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v (%v)", folder, files, err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		if out[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The example of every key of a topology is right, the JSON Schema takes all topologies and
// refuses what the parser refuses.
func TestTopologyKeys(t *testing.T) {
	e := &yamlschematest.Examples{
		Of: TopologyLanguage,
		Basis: `name: basis
title: Basis
source: s
stations:
  - {name: a, role: client, latitude: 39.03, longitude: -76.96, elevation: 60 m}
  - {name: b, role: server, latitude: 39.0308993, longitude: -76.96, elevation: unknown}
links: [{between: [client, server], distance: 100 m, source: s}]
`,
		Read: func(text []byte) error {
			_, err := ParseTopology("t.yaml", text)
			return err
		},
	}
	if tried := e.Run(t); tried < 40 {
		t.Errorf("%d examples were tried", tried)
	}
	yamlschematest.Files(t, e.Of, shipped(t, "topologies"))
	e.Refused(t, "there_is_no_such_key: 1", "name: Capitals", "stations: []", "links: [{between: [client], source: s}]", "second_radio: {radio: mpu4}", "notes: none",
		"links: [{between: [client, server], distance: -1 m, source: s}]", "links: [{between: [client, server], distance: 1 parsec, source: s}]",
		"stations: [{name: a, role: sink, latitude: 0, longitude: 0, elevation: 0 m}]", "stations: [{name: a, role: client, latitude: 91, longitude: 0, elevation: 0 m}]",
		"stations: [{name: a, role: client, latitude: 0, longitude: 0, elevation: low}]",
		"stations: [{name: a, role: client, latitude: 0, longitude: 0, elevation: 0 m, moves: {speed: 5 knots, waypoints: [{latitude: 0, longitude: 1}]}}]")
	for _, m := range e.Of.Mappings() {
		docpart.Hold(t, "docs/radios.md", "keys of "+m.Name, docpart.Table(yamlschema.Head, m.Rows(func(name string) string { return "[" + name + "](#topologies)" })))
	}
}

const keysBasis = `name: basis
title: Basis
manufacturer: M
model: M
waveform: W
figures: [{name: frequency, value: 300 MHz, source: s}]
emulation:
  medium: {value: shared, source: s}
  rate: {value: 2 Mbit/s, source: s}
  processing_delay: {value: 5ms, source: s}
  mtu: {value: 1500 B, source: s}
  queue: {bytes: 64 KiB, source: s}
  channel: {model: perfect, source: s}
`

func profileExamples() *yamlschematest.Examples {
	return &yamlschematest.Examples{Of: ProfileLanguage, Basis: keysBasis, Read: func(text []byte) error {
		_, err := ReadProfile("p.yaml", text, func(string) ([]byte, error) { return []byte(traceText), nil })
		return err
	}, Above: map[string]string{
		"levels.min_snr": "{exponent: 3, reference: 100 m, reference_snr: 30}",
	}}
}

// The example of every key of a profile is right, the JSON Schema takes all profiles and
// refuses what the parser refuses.
func TestProfileKeys(t *testing.T) {
	e := profileExamples()
	if tried := e.Run(t); tried < 400 {
		t.Errorf("%d examples were tried", tried)
	}
	yamlschematest.Files(t, e.Of, shipped(t, "radio-profiles"))
	e.Refused(t, "there_is_no_such_key: 1", "name: Capitals", "figures: [{name: power, value: many, source: s}]", "figures: [{name: power, value: 5 horses, source: s}]",
		"attach: {reach: r, source: s, interface: a/b}", "attach: {reach: r, source: s, roles: {sink: {}}}", "attach: {reach: r, source: s, roles: {client: {address: here}}}",
		"emulation: {rate: 2 Mbit/s}", "emulation: {rate: {value: 2 knots, source: s}}", "emulation: {medium: {value: duplex, source: s}}",
		"emulation: {channel: {model: lossy, source: s}}", "emulation: {channel: {model: uniform, loss: 2, source: s}}", "emulation: {channel: {model: trace, file: ../x.csv, source: s}}",
		"emulation: {channel: {model: combined, parts: [{model: combined}, {model: perfect}], source: s}}", "emulation: {channel: {model: uniform, los: 2, source: s}}",
		"emulation: {fec: {code: turbo, source: s}}", "emulation: {queue: {red: {min: 1 B}}}", "emulation: {access: {tdma: {slot: 50ms, owners: []}, source: s}}", "emulation: {sites: {here: {speed: 1}}}")
}

// Each key of a variant is right beside what the variant requires, and none of those may
// be left out.
func TestVariantKeys(t *testing.T) {
	e := profileExamples()
	for _, c := range []struct {
		place, choice string
		of            variants
	}{{"channel", "model", channelModels}, {"fec", "code", fecCodes}} {
		for _, v := range c.of {
			for _, k := range v.keys.Keys {
				tree := yamlschematest.Parsed[map[string]any](t, keysBasis)
				in := map[string]any{"source": "s"}
				tree["emulation"].(map[string]any)[c.place] = in
				yamlschematest.Merge(t, in, c.of.beside(c.choice, v.keys, &k))
				in[k.Name] = yamlschematest.Parsed[any](t, k.Example)
				read := func() error {
					text, err := yaml.Marshal(tree)
					if err != nil {
						t.Fatal(err)
					}
					return e.Read(text)
				}
				if err := read(); err != nil {
					t.Errorf("%s.%s: %v", v.keys.Name, k.Name, err)
				}
				if delete(in, k.Name); k.Required && read() == nil {
					t.Errorf("%s without %s is taken", v.keys.Name, k.Name)
				}
			}
		}
	}
}

// radio-profiles/README.md has every key. Write it with:
// go test ./internal/radio -run TestDocumentHasProfileKeys -update
func TestDocumentHasProfileKeys(t *testing.T) {
	const document = "radio-profiles/README.md"
	listed := map[string]bool{}
	link := func(name string) string {
		anchor := map[string]string{"parameters": "keys-of-a-profile", "attach": "attachment-and-telemetry", "role": "attachment-and-telemetry", "channels": "channels", "channels of sites": "channels", "parts": "channels", "levels": "channels"}[name]
		if anchor == "" {
			anchor = "emulation"
		}
		return "[" + name + "](#" + anchor + ")"
	}
	rows := func(m *yamlschema.Mapping) (out [][]string) {
		listed[m.Name] = true
		for _, row := range m.Rows(link) {
			out = append(out, append([]string{"`" + m.Name + "`"}, row...))
		}
		return out
	}
	hold := func(part string, all ...[][]string) {
		docpart.Hold(t, document, part, docpart.Table(slices.Concat([]string{"of"}, yamlschema.Head), slices.Concat(all...)))
	}
	for part, m := range map[string]*yamlschema.Mapping{"keys of profiles": profileKeys, "keys of parameters": parameterKeys, "keys of emulation": emulationKeys} {
		listed[m.Name] = true
		docpart.Hold(t, document, part, docpart.Table(yamlschema.Head, m.Rows(link)))
	}
	hold("keys of attach", rows(attachKeys), rows(attachRoleKeys))
	hold("keys of parts of the emulation", rows(queueKeys), rows(redKeys), rows(framingKeys), rows(fecKeys.Some("fec", "code", "source")), fecCodes.rows(link), rows(arqKeys),
		rows(reorderingKeys), rows(duplicationKeys), rows(accessKeys), rows(tdmaKeys), rows(csmaKeys), rows(siteKeys))
	var models [][]string
	for _, v := range channelModels {
		models = append(models, []string{"`" + v.keys.Name + "`", v.meaning})
	}
	docpart.Hold(t, document, "channel models", docpart.Table([]string{"`model`", "what it does"}, models))
	hold("keys of channels", channelModels.rows(link), rows(levelKeys))
	for _, m := range ProfileLanguage.Mappings() {
		if !listed[m.Name] && m != channelKeys && m != siteChannelKeys && m != partKeys {
			t.Errorf("no table has the keys of %s", m.Name)
		}
	}
}

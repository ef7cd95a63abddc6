package radio

import (
	"os"
	"path/filepath"
	"testing"

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

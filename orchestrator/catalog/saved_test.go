package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
)

const drawn = `name: meadow
title: A meadow
source: drawn on the map
stations:
  - {name: a, role: server, latitude: 39.03, longitude: -76.96, elevation: 10 m}
  - {name: b, role: client, latitude: 39.04, longitude: -76.96, elevation: 12 m}
links:
  - between: [client, server]
    source: computed
`

func TestSavedTopologies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "topologies")
	c := load(t, Config{SavedDir: dir})
	if got := c.ShippedTopologies(); !slices.Equal(got, c.Topologies()) || len(got) < 5 {
		t.Fatalf("shipped: %v of %v", got, c.Topologies())
	}
	if err := c.SaveTopology("meadow", []byte(drawn)); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]*Catalog{"at once": c, "after a restart": load(t, Config{SavedDir: dir})} {
		got := c.Topology("meadow")
		if got == nil || got.Title != "A meadow" || slices.Contains(c.ShippedTopologies(), "meadow") {
			t.Fatalf("%s: %+v", what, got)
		}
		src, err := c.TopologySource("meadow")
		if err != nil || string(src.Text) != drawn || src.Shipped || src.File != filepath.Join(dir, "meadow.yaml") {
			t.Errorf("%s: source %+v, %v", what, src, err)
		}
	}
	before := c.Topology("meadow")
	if err := c.SaveTopology("meadow", []byte(strings.Replace(drawn, "A meadow", "Another meadow", 1))); err != nil {
		t.Fatal(err)
	}
	if before.Title != "A meadow" || c.Topology("meadow").Title != "Another meadow" {
		t.Error("a topology that was looked up changed, or the new one is not there")
	}
	if err := c.DeleteTopology("meadow"); err != nil {
		t.Fatal(err)
	}
	if c.Topology("meadow") != nil || load(t, Config{SavedDir: dir}).Topology("meadow") != nil {
		t.Error("the deleted topology is still there")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRefusedTopologies(t *testing.T) {
	dir := t.TempDir()
	c := load(t, Config{SavedDir: dir})
	for _, x := range []struct {
		name, text string
		line       int // 0: refused for another reason
		is         error
		word       string
	}{
		{name: "meadow", text: strings.Replace(drawn, "latitude: 39.04", "latitude: 139.04", 1), line: 6, word: "139.04"},
		{name: "meadow", text: "name: [", line: 1},
		{name: "meadow", text: strings.Repeat("#", yamldoc.MaxText+1), word: "at most"},
		{name: "forest", text: drawn, line: 1, word: `"meadow"`},
		{name: "../meadow", text: strings.Replace(drawn, "name: meadow", "name: ../meadow", 1), line: 1},
		{name: "vip-lot", text: strings.Replace(drawn, "name: meadow", "name: vip-lot", 1), is: ErrReadOnly, word: "another name"},
	} {
		err := c.SaveTopology(x.name, []byte(x.text))
		if err == nil || !strings.Contains(err.Error(), x.word) {
			t.Errorf("%s: %v, expected an error with %q", x.name, err, x.word)
			continue
		}
		var ps yamldoc.Problems
		if errors.As(err, &ps) != (x.is == nil) || x.line > 0 && (ps[0].Line != x.line || ps[0].Column == 0) {
			t.Errorf("%s: %v, expected a problem at line %d", x.name, err, x.line)
		}
		if x.is != nil && !errors.Is(err, x.is) {
			t.Errorf("%s: %v, expected %v", x.name, err, x.is)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || c.Topology("meadow") != nil {
		t.Errorf("something was saved: %v", left)
	}
	if err := c.DeleteTopology("vip-lot"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("delete a shipped one: %v", err)
	}
	if err := c.DeleteTopology("none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("delete nothing: %v", err)
	}
	if err := load(t, Config{}).SaveTopology("meadow", []byte(drawn)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("save without a folder: %v", err)
	}
	for _, err := range []error{second(c.TopologySource("none")), second(c.ProfileSource("none"))} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("source of nothing: %v", err)
		}
	}
	if src, err := c.ProfileSource("mpu4"); err != nil || !src.Shipped || len(src.Text) == 0 {
		t.Errorf("source of a radio: %+v, %v", src, err)
	}
}

func second(_ Source, err error) error { return err }

// A radio that a later start could not read without the topology keeps it.
func TestTopologyOfARadioStays(t *testing.T) {
	extra, saved := t.TempDir(), t.TempDir()
	shipped := load(t, Config{})
	src, err := shipped.ProfileSource("prc-117g-anw2c")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(saved, "meadow.yaml"), drawn)
	text := strings.Replace(string(src.Text), "name: prc-117g-anw2c", "name: mine", 1)
	if !strings.Contains(text, "sites:") {
		t.Fatal("the profile of this test has no sites any more")
	}
	text = strings.Replace(text, "sites:", "sites:\n    meadow:\n      source: measured\n      rate: 10 kbit/s", 1)
	write(t, filepath.Join(extra, "radio-profiles", "mine.yaml"), text)
	c := load(t, Config{ExtraDirs: []string{extra}, SavedDir: saved})
	if err := c.DeleteTopology("meadow"); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "mine") {
		t.Errorf("%v", err)
	}
}

const ownRadio = `name: own-hf
title: An HF radio of our own
manufacturer: somebody
model: one
waveform: none
figures:
  - {name: rate, value: 9600 bit/s, source: measured}
emulation:
  medium: {value: half-duplex, source: measured}
  rate: {value: 9600 bit/s, source: measured}
  processing_delay: {value: 20ms, source: measured}
  mtu: {value: 1500 B, source: measured}
  queue: {bytes: 64 KiB, source: measured}
  channel: {model: perfect, source: measured}
`

func TestSavedProfiles(t *testing.T) {
	folders := Config{SavedDir: filepath.Join(t.TempDir(), "topologies"), SavedProfilesDir: filepath.Join(t.TempDir(), "radio-profiles")}
	c := load(t, folders)
	if err := c.SaveProfile("own-hf", []byte(ownRadio)); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]*Catalog{"at once": c, "after a restart": load(t, folders)} {
		if p := c.Profile("own-hf"); p == nil || p.Title != "An HF radio of our own" || !slices.Equal(c.SavedProfiles(), []string{"own-hf"}) || !slices.Contains(c.Profiles(), "own-hf") {
			t.Fatalf("%s: %+v, saved %v", what, p, c.SavedProfiles())
		}
		src, err := c.ProfileSource("own-hf")
		if err != nil || string(src.Text) != ownRadio || src.Shipped {
			t.Errorf("%s: source %+v, %v", what, src, err)
		}
		changed, err := c.Vary("own-hf", []radio.Change{{Path: "rate", Value: "4800 bit/s"}})
		if err != nil || changed.Emulation.RateBitsPerSecond != 4800 {
			t.Errorf("%s: varied: %+v, %v", what, changed, err)
		}
	}
	// What was looked up stays, and a topology that has the radio takes the new one.
	if err := c.SaveTopology("meadow", []byte(drawn+"second_radio: {radio: own-hf, source: measured}\n")); err != nil {
		t.Fatal(err)
	}
	before, meadow := c.Profile("own-hf"), c.Topology("meadow")
	if err := c.SaveProfile("own-hf", []byte(strings.Replace(ownRadio, "An HF radio", "Another radio", 1))); err != nil {
		t.Fatal(err)
	}
	if before.Title != "An HF radio of our own" || meadow.Second.Profile != before || c.Topology("meadow").Second.Profile != c.Profile("own-hf") || c.Profile("own-hf").Title != "Another radio of our own" {
		t.Error("something that was looked up changed, or the new profile is not everywhere")
	}
	if err := c.DeleteProfile("own-hf"); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "meadow") {
		t.Errorf("delete what a topology has: %v", err)
	}
	if err := c.DeleteTopology("meadow"); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteProfile("own-hf"); err != nil {
		t.Fatal(err)
	}
	if c.Profile("own-hf") != nil || load(t, folders).Profile("own-hf") != nil {
		t.Error("the deleted profile is still there")
	}
}

func TestRefusedProfiles(t *testing.T) {
	dir := t.TempDir()
	c := load(t, Config{SavedProfilesDir: dir})
	for _, x := range []struct {
		name, text string
		line       int // 0: refused for another reason
		is         error
		word       string
	}{
		{name: "own-hf", text: strings.Replace(ownRadio, "rate: {value: 9600 bit/s", "rate: {value: 9600 m", 1), line: 10, word: "9600 m"},
		{name: "own-hf", text: ownRadio + "  sites: {medow: {rate: 4800 bit/s, source: measured}}\n", line: 15, word: "unknown topology"},
		{name: "own-hf", text: "name: [", line: 1},
		{name: "other", text: ownRadio, line: 1, word: `"own-hf"`},
		{name: "../own-hf", text: strings.Replace(ownRadio, "name: own-hf", "name: ../own-hf", 1), line: 1},
		{name: "mpu4", text: strings.Replace(ownRadio, "name: own-hf", "name: mpu4", 1), is: ErrReadOnly, word: "another name"},
	} {
		err := c.SaveProfile(x.name, []byte(x.text))
		if err == nil || !strings.Contains(err.Error(), x.word) {
			t.Errorf("%s: %v, expected an error with %q", x.name, err, x.word)
			continue
		}
		var ps yamldoc.Problems
		if errors.As(err, &ps) != (x.is == nil) || x.line > 0 && (ps[0].Line != x.line || ps[0].Column == 0) {
			t.Errorf("%s: %v, expected a problem at line %d", x.name, err, x.line)
		}
		if x.is != nil && !errors.Is(err, x.is) {
			t.Errorf("%s: %v, expected %v", x.name, err, x.is)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || c.Profile("own-hf") != nil {
		t.Errorf("something was saved: %v", left)
	}
	if err := c.DeleteProfile("mpu4"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("delete a shipped one: %v", err)
	}
	if err := c.DeleteProfile("none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("delete nothing: %v", err)
	}
	if err := load(t, Config{}).SaveProfile("own-hf", []byte(ownRadio)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("save without a folder: %v", err)
	}
}

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"linktrial/internal/atomicfile"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
)

// book is the topologies and the radio profiles, those that can be saved and deleted
// among them.
type book struct {
	dir, profilesDir string // of the saved ones; empty: none can be saved

	mu         sync.RWMutex
	topologies map[string]page
	profiles   map[string]source
}

type page struct {
	topology *radio.Topology
	file     string
	text     []byte
	shipped  bool // came with the binary
	saved    bool // in dir
}

// source is a radio profile with its file, to read it with other parameters.
type source struct {
	profile *radio.Profile
	tree    *radio.Tree
	file    string
	text    []byte
	shipped bool
	saved   bool // in profilesDir
}

// Source is a file of the catalog.
type Source struct {
	File    string // for people
	Text    []byte
	Shipped bool // came with Linktrial
}

// What callers branch on.
var (
	ErrUnknown  = errors.New("there is none of that name")
	ErrReadOnly = errors.New("is read-only")
	ErrInUse    = errors.New("is in use")
)

// Topology is the topology of that name, or nil.
func (b *book) Topology(name string) *radio.Topology {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.topologies[name].topology
}

// Topologies is the names of all topologies, sorted.
func (b *book) Topologies() []string {
	return names(b, b.topologies, func(page) bool { return true })
}

// ShippedTopologies is the names of those that came with Linktrial, sorted.
func (b *book) ShippedTopologies() []string {
	return names(b, b.topologies, func(p page) bool { return p.shipped })
}

// Profile is the radio profile of that name, or nil.
func (b *book) Profile(name string) *radio.Profile {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.profiles[name].profile
}

// Profiles is the names of all radio profiles, sorted.
func (b *book) Profiles() []string {
	return names(b, b.profiles, func(source) bool { return true })
}

// SavedProfiles is the names of those that were saved, sorted.
func (b *book) SavedProfiles() []string {
	return names(b, b.profiles, func(s source) bool { return s.saved })
}

func names[T any](b *book, all map[string]T, wanted func(T) bool) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []string
	for name, x := range all {
		if wanted(x) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Vary is the radio profile of that name with some parameters of its emulation
// changed, as [radio.Tree.Vary].
func (b *book) Vary(name string, changes []radio.Change) (*radio.Profile, error) {
	b.mu.RLock()
	src, ok := b.profiles[name]
	b.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("unknown radio %q", name)
	}
	return src.tree.Vary(changes)
}

// TopologySource is a topology's text.
func (b *book) TopologySource(name string) (Source, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p, ok := b.topologies[name]
	if !ok {
		return Source{}, fmt.Errorf("topology %q: %w", name, ErrUnknown)
	}
	return Source{File: p.file, Text: p.text, Shipped: p.shipped}, nil
}

// ProfileSource is a radio profile's text.
func (b *book) ProfileSource(name string) (Source, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s, ok := b.profiles[name]
	if !ok {
		return Source{}, fmt.Errorf("radio %q: %w", name, ErrUnknown)
	}
	return Source{File: s.file, Text: s.text, Shipped: s.shipped}, nil
}

// SaveTopology keeps a topology under a new name, or again under one that was
// saved before. What is wrong with its text comes as [yamldoc.Problems], and
// nothing was saved then. Plans see it when SaveTopology returns, and it is on
// disk.
func (b *book) SaveTopology(name string, text []byte) error {
	t, err := radio.ParseTopology(name+".yaml", text)
	if err != nil {
		return err
	}
	if err := called("topology", t.Name, name, text); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.completeSecond(t, name+".yaml"); err != nil {
		return err
	}
	old, known := b.topologies[name]
	file, err := writeSaved("topology", b.dir, name, text, old.file, known && !old.saved)
	if err != nil {
		return err
	}
	b.topologies[name] = page{topology: t, file: file, text: slices.Clone(text), saved: true}
	return nil
}

// called refuses a text that has another name than the one under which it is to be saved.
func called(kind, is, name string, text []byte) error {
	if is == name {
		return nil
	}
	d := yamldoc.Parse(name+".yaml", text)
	d.Root().Mapping().Field("name").Problem("the %s is called %q, and is to be saved as %q; both must be the same", kind, is, name)
	return d.Err()
}

// writeSaved writes the file of what people save; fixed says that the one of this name, in
// old, is not theirs.
func writeSaved(kind, dir, name string, text []byte, old string, fixed bool) (file string, err error) {
	if dir == "" {
		return "", fmt.Errorf("%s %q cannot be saved: there is no data folder, so the catalog %w", kind, name, ErrReadOnly)
	}
	if fixed {
		return "", fmt.Errorf("%s %q is in %s, which %w: save it under another name", kind, name, old, ErrReadOnly)
	}
	file = filepath.Join(dir, name+".yaml")
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = atomicfile.Write(file, text, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("save %s %s: %w", kind, name, err)
	}
	return file, nil
}

// deletable refuses to delete what is not there, and what was not saved by people.
func deletable(kind, name, file string, known, saved bool) error {
	switch {
	case !known:
		return fmt.Errorf("%s %q: %w", kind, name, ErrUnknown)
	case !saved:
		return fmt.Errorf("%s %q is in %s, which %w", kind, name, file, ErrReadOnly)
	}
	return nil
}

func removeSaved(kind, name, file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete %s %s: %w", kind, name, err)
	}
	return nil
}

// DeleteTopology removes a topology that was saved, unless a radio profile has
// conditions for it. Runs that were made with it keep it in their sheets.
func (b *book) DeleteTopology(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, known := b.topologies[name]
	if err := deletable("topology", name, p.file, known, p.saved); err != nil {
		return err
	}
	var users []string
	for radio, s := range b.profiles {
		if s.profile.Emulation == nil {
			continue
		}
		if _, uses := s.profile.Emulation.Sites[name]; uses {
			users = append(users, radio)
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		return fmt.Errorf("topology %q %w by the radio profiles %s", name, ErrInUse, strings.Join(users, ", "))
	}
	if err := removeSaved("topology", name, p.file); err != nil {
		return err
	}
	delete(b.topologies, name)
	return nil
}

// SaveProfile keeps a radio profile under a new name, or again under one that was saved
// before, as [Catalog.SaveTopology] does topologies. It cannot name further files, such as
// traces of a channel.
func (b *book) SaveProfile(name string, text []byte) error {
	file := name + ".yaml"
	p, err := radio.ReadProfile(file, text, NoFurtherFiles)
	if err != nil {
		return err
	}
	if err := called("radio", p.Name, name, text); err != nil {
		return err
	}
	tree, err := radio.ReadTree(file, text, NoFurtherFiles)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.knownSites(p, file, text); err != nil {
		return err
	}
	old, known := b.profiles[name]
	changed, err := b.withSecond(p)
	if err != nil {
		return err
	}
	written, err := writeSaved("radio", b.profilesDir, name, text, old.file, known && !old.saved)
	if err != nil {
		return err
	}
	b.profiles[name] = source{profile: p, tree: tree, file: written, text: slices.Clone(text), saved: true}
	for name, t := range changed {
		at := b.topologies[name]
		at.topology = t
		b.topologies[name] = at
	}
	return nil
}

// NoFurtherFiles is the reader of further files for [radio.ReadProfile], of a profile that
// people save: it has none.
func NoFurtherFiles(string) ([]byte, error) {
	return nil, errors.New("a profile that is saved at the orchestrator has no further files; put profile and file into a folder for serve --catalog")
}

// knownSites refuses conditions for a topology that does not exist: they would silently
// never apply.
func (b *book) knownSites(p *radio.Profile, file string, text []byte) error {
	if p.Emulation == nil {
		return nil
	}
	d := yamldoc.Parse(file, text)
	sites := d.Root().Mapping().Field("emulation").Mapping().Field("sites").Mapping()
	for _, site := range slices.Sorted(maps.Keys(p.Emulation.Sites)) {
		if _, ok := b.topologies[site]; !ok {
			all := slices.Sorted(maps.Keys(b.topologies))
			sites.Key(site).Problem("unknown topology %q%s; there are %s", site, yamldoc.Suggest(site, all), strings.Join(all, ", "))
		}
	}
	return d.Err()
}

// withSecond are the topologies whose second radio a profile is, each with this one.
func (b *book) withSecond(p *radio.Profile) (map[string]*radio.Topology, error) {
	out := map[string]*radio.Topology{}
	for name, at := range b.topologies {
		if at.topology.Second == nil || at.topology.Second.Radio != p.Name {
			continue
		}
		t, second := *at.topology, *at.topology.Second
		second.Profile = p
		t.Second = &second
		if p.Emulation != nil {
			if _, err := radio.Resolve(p, &t); err != nil {
				return nil, yamldoc.Problems{{File: p.Name + ".yaml", Message: fmt.Sprintf("as the second radio of the topology %s: %v", name, err)}}
			}
		}
		out[name] = &t
	}
	return out, nil
}

// DeleteProfile removes a radio profile that was saved, unless it is the second radio of a
// topology. Runs that were made with it keep it in their sheets.
func (b *book) DeleteProfile(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.profiles[name]
	if err := deletable("radio", name, s.file, known, s.saved); err != nil {
		return err
	}
	var users []string
	for topology, p := range b.topologies {
		if p.topology.Second != nil && p.topology.Second.Radio == name {
			users = append(users, topology)
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		return fmt.Errorf("radio %q %w as the second radio of the topologies %s", name, ErrInUse, strings.Join(users, ", "))
	}
	if err := removeSaved("radio", name, s.file); err != nil {
		return err
	}
	delete(b.profiles, name)
	return nil
}

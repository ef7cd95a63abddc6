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

// book is the topologies, those that can be saved and deleted among them.
type book struct {
	dir string // of the saved ones; empty: none can be saved

	mu  sync.RWMutex
	all map[string]page
}

type page struct {
	topology *radio.Topology
	file     string
	text     []byte
	shipped  bool // came with the binary
	saved    bool // in dir
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
func (c *Catalog) Topology(name string) *radio.Topology {
	c.topologies.mu.RLock()
	defer c.topologies.mu.RUnlock()
	return c.topologies.all[name].topology
}

// Topologies is the names of all topologies, sorted.
func (c *Catalog) Topologies() []string {
	c.topologies.mu.RLock()
	defer c.topologies.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.topologies.all))
}

// ShippedTopologies is the names of those that came with Linktrial, sorted.
func (c *Catalog) ShippedTopologies() []string {
	c.topologies.mu.RLock()
	defer c.topologies.mu.RUnlock()
	var out []string
	for name, p := range c.topologies.all {
		if p.shipped {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TopologySource is a topology's text.
func (c *Catalog) TopologySource(name string) (Source, error) {
	c.topologies.mu.RLock()
	defer c.topologies.mu.RUnlock()
	p, ok := c.topologies.all[name]
	if !ok {
		return Source{}, fmt.Errorf("topology %q: %w", name, ErrUnknown)
	}
	return Source{File: p.file, Text: p.text, Shipped: p.shipped}, nil
}

// ProfileSource is a radio profile's text.
func (c *Catalog) ProfileSource(name string) (Source, error) {
	s, ok := c.sources[name]
	if !ok {
		return Source{}, fmt.Errorf("radio %q: %w", name, ErrUnknown)
	}
	return Source{File: s.file, Text: s.text, Shipped: s.shipped}, nil
}

// SaveTopology keeps a topology under a new name, or again under one that was
// saved before. What is wrong with its text comes as [yamldoc.Problems], and
// nothing was saved then. Plans see it when SaveTopology returns, and it is on
// disk.
func (c *Catalog) SaveTopology(name string, text []byte) error {
	t, err := radio.ParseTopology(name+".yaml", text)
	if err == nil {
		err = c.completeSecond(t, name+".yaml")
	}
	if err != nil {
		return err
	}
	if t.Name != name {
		d := yamldoc.Parse(name+".yaml", text)
		d.Root().Mapping().Field("name").Problem("the topology is called %q, and is to be saved as %q; both must be the same", t.Name, name)
		return d.Err()
	}
	b := c.topologies
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dir == "" {
		return fmt.Errorf("topology %q cannot be saved: there is no data folder, so the catalog %w", name, ErrReadOnly)
	}
	if old, ok := b.all[name]; ok && !old.saved {
		return fmt.Errorf("topology %q is in %s, which %w: save it under another name", name, old.file, ErrReadOnly)
	}
	file := filepath.Join(b.dir, name+".yaml")
	err = os.MkdirAll(b.dir, 0o755)
	if err == nil {
		err = atomicfile.Write(file, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("save topology %s: %w", name, err)
	}
	b.all[name] = page{topology: t, file: file, text: slices.Clone(text), saved: true}
	return nil
}

// DeleteTopology removes a topology that was saved, unless a radio profile has
// conditions for it. Runs that were made with it keep it in their sheets.
func (c *Catalog) DeleteTopology(name string) error {
	b := c.topologies
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.all[name]
	if !ok {
		return fmt.Errorf("topology %q: %w", name, ErrUnknown)
	}
	if !p.saved {
		return fmt.Errorf("topology %q is in %s, which %w", name, p.file, ErrReadOnly)
	}
	var users []string
	for radio, p := range c.profiles {
		if p.Emulation == nil {
			continue
		}
		if _, uses := p.Emulation.Sites[name]; uses {
			users = append(users, radio)
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		return fmt.Errorf("topology %q %w by the radio profiles %s", name, ErrInUse, strings.Join(users, ", "))
	}
	if err := os.Remove(p.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete topology %s: %w", name, err)
	}
	delete(b.all, name)
	return nil
}

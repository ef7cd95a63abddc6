// Package catalog loads what plans may name: the radio profiles and topologies
// that come with the binary, those in extra folders, the topologies that people
// saved, and the drivers' manifests. Comes in: folders, topologies to save. Goes
// out: a [Catalog] (the one of orchestrator/plan), or every problem of every
// file.
package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/internal/driverfolder"
	"linktrial/internal/inputfile"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
	radioprofiles "linktrial/radio-profiles"
	"linktrial/topologies"
)

// Config says where to look besides the binary's own data.
type Config struct {
	// DriversDir has a folder with a driver.yaml for each protocol; folders
	// without one are passed over. It can be a list of folders, as PATH has it.
	// Empty: no protocols.
	DriversDir string
	// ExtraDirs may each have folders radio-profiles and topologies, with
	// *.yaml files as in the source tree. A name that exists already is
	// refused: which file a plan meant must never be in doubt.
	ExtraDirs []string
	// SavedDir is where [Catalog.SaveTopology] keeps topologies, and where those
	// saved earlier are; it need not exist. Empty: none can be saved.
	SavedDir string
	// SavedProfilesDir is where [Catalog.SaveProfile] keeps radio profiles, and where those
	// saved earlier are; it need not exist. Empty: none can be saved.
	SavedProfilesDir string
}

// Catalog is everything that plans may name. Any number of goroutines may use
// it. Only topologies and radio profiles come and go once it is loaded; one that was
// looked up does not change.
type Catalog struct {
	*book
	manifests  map[string]*contract.Manifest
	driverDirs map[string]string
	driversDir string            // where drivers were looked for
	origin     map[string]string // of each kind/name, for messages
}

// Load reads all files. The error, if any, is [yamldoc.Problems] with every
// problem of every file, or the reason why a folder could not be read.
func Load(c Config) (*Catalog, error) {
	l := loader{cat: &Catalog{
		book:      &book{dir: c.SavedDir, profilesDir: c.SavedProfilesDir, topologies: map[string]page{}, profiles: map[string]source{}},
		manifests: map[string]*contract.Manifest{}, driverDirs: map[string]string{},
		origin: map[string]string{},
	}}
	l.shipped = true
	if err := l.folder(radioprofiles.Files, ".", "radio-profiles", l.profile); err != nil {
		return nil, err
	}
	if err := l.folder(topologies.Files, ".", "topologies", l.topology); err != nil {
		return nil, err
	}
	l.shipped = false
	for _, dir := range c.ExtraDirs {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("extra data folder: %w", err)
		}
		root := os.DirFS(dir)
		for _, sub := range []struct {
			name string
			take takes
		}{{"radio-profiles", l.profile}, {"topologies", l.topology}} {
			err := l.folder(root, sub.name, filepath.Join(dir, sub.name), sub.take)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("extra data folder: %w", err)
			}
		}
	}
	l.saved = true
	for _, of := range []struct {
		what, dir string
		take      takes
	}{{"radio profiles", c.SavedProfilesDir, l.profile}, {"topologies", c.SavedDir, l.topology}} {
		if of.dir == "" {
			continue
		}
		if err := l.folder(os.DirFS(of.dir), ".", of.dir, of.take); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("saved %s: %w", of.what, err)
		}
	}
	if c.DriversDir != "" {
		l.cat.driversDir = c.DriversDir
		if err := l.drivers(c.DriversDir); err != nil {
			return nil, err
		}
	}
	l.checkSites()
	l.secondRadios()
	if len(l.problems) > 0 {
		slices.SortStableFunc(l.problems, func(a, b yamldoc.Problem) int { return strings.Compare(a.File, b.File) })
		return nil, l.problems
	}
	return l.cat, nil
}

type loader struct {
	cat      *Catalog
	problems yamldoc.Problems
	shipped  bool // what is read now came with the binary
	saved    bool // what is read now was saved by people
}

// takes reads one file of a kind; open gives other files of its folder.
type takes func(file, base string, data []byte, open func(name string) ([]byte, error)) error

// folder gives every *.yaml of a folder to take, in the order of their names.
func (l *loader) folder(root fs.FS, dir, shown string, take takes) error {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".yaml")
		if !ok || e.IsDir() || strings.HasPrefix(base, ".") {
			continue
		}
		data, err := inputfile.ReadFS(root, path.Join(dir, e.Name()), yamldoc.MaxText)
		if errors.Is(err, inputfile.ErrRefused) {
			l.note(filepath.Join(shown, e.Name()), err)
			continue
		}
		if err != nil {
			return err
		}
		l.note(filepath.Join(shown, e.Name()), take(filepath.Join(shown, e.Name()), base, data, func(name string) ([]byte, error) {
			return inputfile.ReadFS(root, path.Join(dir, name), radio.MaxTraceText)
		}))
	}
	return nil
}

func (l *loader) note(file string, err error) {
	var ps yamldoc.Problems
	switch {
	case err == nil:
	case errors.As(err, &ps):
		l.problems = append(l.problems, ps...)
	default:
		l.problems = append(l.problems, yamldoc.Problem{File: file, Message: err.Error()})
	}
}

// claim keeps a name for a file. The file must be called as what it holds, so
// that a name leads to its file.
func (l *loader) claim(kind, name, base, file string) error {
	if name != base {
		return fmt.Errorf("%s %q is in a file called %q; name and file must be the same", kind, name, base)
	}
	if other, taken := l.cat.origin[kind+"/"+name]; taken {
		return fmt.Errorf("%s %q exists already, in %s", kind, name, other)
	}
	l.cat.origin[kind+"/"+name] = file
	return nil
}

func (l *loader) profile(file, base string, data []byte, open func(name string) ([]byte, error)) error {
	p, err := radio.ReadProfile(file, data, open)
	if err != nil {
		return err
	}
	if err := l.claim("radio", p.Name, base, file); err != nil {
		return err
	}
	tree, err := radio.ReadTree(file, data, open)
	if err != nil {
		return err
	}
	l.cat.profiles[p.Name] = source{p, tree, file, data, l.shipped, l.saved}
	return nil
}

func (l *loader) topology(file, base string, data []byte, _ func(name string) ([]byte, error)) error {
	t, err := radio.ParseTopology(file, data)
	if err != nil {
		return err
	}
	if err := l.claim("topology", t.Name, base, file); err != nil {
		return err
	}
	l.cat.topologies[t.Name] = page{t, file, data, l.shipped, l.saved}
	return nil
}

func (l *loader) drivers(list string) error {
	names, err := driverfolder.Names(list)
	if err != nil {
		return err
	}
	for _, name := range names {
		dir, found := driverfolder.Find(list, name)
		file := filepath.Join(dir, driverfolder.Manifest)
		data, err := inputfile.Read(file, yamldoc.MaxText)
		if !found || errors.Is(err, fs.ErrNotExist) {
			continue // it has gone meanwhile
		}
		if errors.Is(err, inputfile.ErrRefused) {
			l.note(file, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("driver manifest: %w", err)
		}
		m, err := contract.ParseManifest(file, data)
		if err == nil {
			err = l.claim("protocol", m.Name, name, file)
		}
		if err != nil {
			l.note(file, err)
			continue
		}
		l.cat.manifests[m.Name] = m
		l.cat.driverDirs[m.Name] = dir
	}
	return nil
}

// checkSites refuses conditions for a topology that does not exist: they
// would silently never apply.
func (l *loader) checkSites() {
	for _, name := range l.cat.Profiles() {
		e := l.cat.profiles[name].profile.Emulation
		if e == nil {
			continue
		}
		for _, site := range slices.Sorted(maps.Keys(e.Sites)) {
			if l.cat.Topology(site) == nil {
				all := l.cat.Topologies()
				l.problems = append(l.problems, yamldoc.Problem{File: l.cat.origin["radio/"+name], Message: fmt.Sprintf(
					"emulation.sites: unknown topology %q%s; there are %s", site, yamldoc.Suggest(site, all), strings.Join(all, ", "))})
			}
		}
	}
}

// secondRadios gives topologies the profiles of their second radios.
func (l *loader) secondRadios() {
	for _, name := range l.cat.Topologies() {
		at := l.cat.topologies[name]
		if err := l.cat.completeSecond(at.topology, at.file); err != nil {
			l.note(at.file, err)
		}
	}
}

// completeSecond gives a topology the profile of its second radio.
func (b *book) completeSecond(t *radio.Topology, file string) error {
	second := t.Second
	if second == nil {
		return nil
	}
	second.Profile = b.profiles[second.Radio].profile
	problem := ""
	switch all := slices.Sorted(maps.Keys(b.profiles)); {
	case second.Profile == nil:
		problem = fmt.Sprintf("unknown radio %q%s; there are %s", second.Radio, yamldoc.Suggest(second.Radio, all), strings.Join(all, ", "))
	case second.Profile.Emulation != nil:
		if _, err := radio.Resolve(second.Profile, t); err != nil {
			problem = err.Error()
		}
	}
	if problem != "" {
		return yamldoc.Problems{{File: file, Message: "second_radio: " + problem}}
	}
	return nil
}

// Manifest is the driver manifest of that protocol, or nil.
func (c *Catalog) Manifest(protocol string) *contract.Manifest { return c.manifests[protocol] }

// LookedFor says where drivers were looked for, for messages.
func (c *Catalog) LookedFor() string { return driverfolder.Shown(c.driversDir) }

// Protocols is the names of all protocols, sorted.
func (c *Catalog) Protocols() []string { return slices.Sorted(maps.Keys(c.manifests)) }

// DriverDir is the folder of a protocol's manifest, to which its command is
// relative; empty for a protocol that does not exist.
func (c *Catalog) DriverDir(protocol string) string { return c.driverDirs[protocol] }

// WithChoices is the catalog with an option's choices as the nodes' queries
// report them, for options whose choices depend on the node
// ([contract.Option.FromNode]). Other options and unknown protocols stay as
// they are; the receiver does not change.
func (c *Catalog) WithChoices(protocol, option string, choices []string) *Catalog {
	m := c.manifests[protocol]
	if m == nil {
		return c
	}
	i := slices.IndexFunc(m.Options, func(o contract.Option) bool { return o.Name == option && o.FromNode })
	if i < 0 {
		return c
	}
	changed := *m
	changed.Options = slices.Clone(m.Options)
	changed.Options[i].Choices = slices.Clone(choices)
	out := *c
	out.manifests = maps.Clone(c.manifests)
	out.manifests[protocol] = &changed
	return &out
}

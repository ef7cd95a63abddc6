package rebuild

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
)

// fileName is a name that a folder of our own may get a file under.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// catalogKinds are the folders of evidence.Catalog.
var catalogKinds = []string{"radio-profiles", "topologies"}

// loadCatalog is what the plan may name: what comes with this program, the manifests of the
// bag's drivers, and the radio profiles and topologies that the bag has.
func loadCatalog(b Bag, dir string) (*catalog.Catalog, error) {
	drivers, own := filepath.Join(dir, "drivers"), filepath.Join(dir, "catalog")
	for _, d := range []string{drivers, own} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range below(b, evidence.Drivers) {
		protocol := path.Base(path.Dir(name))
		if name != path.Join(evidence.Drivers, protocol, "driver.yaml") {
			continue
		}
		if err := copyInto(b, name, filepath.Join(drivers, protocol)); err != nil {
			return nil, err
		}
	}
	shipped, err := catalog.Load(catalog.Config{})
	if err != nil {
		return nil, err
	}
	for _, kind := range catalogKinds {
		for _, name := range below(b, path.Join(evidence.Catalog, kind)) {
			of, _ := strings.CutSuffix(path.Base(name), ".yaml")
			if shipped.Profile(of) != nil && kind == catalogKinds[0] || shipped.Topology(of) != nil && kind == catalogKinds[1] {
				continue // a later version comes with it
			}
			if err := copyInto(b, name, filepath.Join(own, kind)); err != nil {
				return nil, err
			}
		}
	}
	all, err := catalog.Load(catalog.Config{DriversDir: drivers, ExtraDirs: []string{own}})
	var problems yamldoc.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		return nil, fmt.Errorf("the bag's drivers, radio profiles and topologies do not read: %s", strings.ReplaceAll(problems[0].String(), dir+string(filepath.Separator), ""))
	}
	return all, err
}

// copyInto writes a file of the bag into a folder of our own.
func copyInto(b Bag, name, folder string) error {
	base := path.Base(name)
	for _, part := range []string{base, filepath.Base(folder)} {
		if !fileName.MatchString(part) {
			return fmt.Errorf("%s: its name is none of a file of a catalog", name)
		}
	}
	content, err := read(b, name, longestDoc)
	if err != nil {
		return err
	}
	return cmp.Or(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, base), content, 0o600))
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// typesetter is what sets reports as PDF: a wheel for Python, unpacked beside the program
// (scripts/install-typst). What is in it, its own bill says.
var typesetter = dependency{kind: kindPython, name: "typst", licence: "Apache-2.0"}

// typesetterIn is it, as make build has left it in a folder with programs.
func typesetterIn(bin string) dependency {
	d := typesetter
	d.dirs = []string{filepath.Join(bin, d.name)}
	if found, err := filepath.Glob(filepath.Join(bin, d.name, d.name+"-*.dist-info")); err == nil && len(found) == 1 {
		d.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), d.name+"-"), ".dist-info")
		d.dirs = []string{filepath.Join(found[0], "licenses")}
	}
	return d
}

// wheel describes the typesetter in a folder, with what it was built from.
func (b *bills) wheel(folder string) (cdx.Component, error) {
	d := typesetterIn(filepath.Dir(folder))
	c := b.of(d)
	c.Type = cdx.ComponentTypeApplication
	own := filepath.Join(folder, d.name+"-"+d.version+".dist-info", "sboms", "typst-py.cyclonedx.json")
	content, err := os.ReadFile(own)
	if err != nil {
		return c, fmt.Errorf("bill of materials of the wheel: %w (make typst unpacks it)", err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(content), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return c, fmt.Errorf("%s: %w", own, err)
	}
	c.Components = bom.Components
	return c, nil
}

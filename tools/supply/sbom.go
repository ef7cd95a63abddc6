package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bills makes bills of materials.
type bills struct {
	version  string
	licences map[string]string // by dependency
	pages    []dependency      // that are in linktrial
	drivers  map[string][]dependency
}

// writeBOMs writes a bill of materials for each artefact.
func writeBOMs(ctx context.Context, root, out, version string, artefacts []string) error {
	if len(artefacts) == 0 {
		return fmt.Errorf("expected programs, image:NAME or install bundles, found none")
	}
	list, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return err
	}
	b := bills{version: version, licences: parseList(list), drivers: nativeLibraries(ctx)}
	if b.pages, err = npmPackages(filepath.Join(root, "web")); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, a := range artefacts {
		c, err := b.component(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		doc, n := document(c)
		file := filepath.Join(out, fileName(a)+".cdx.json")
		var buf bytes.Buffer
		enc := cdx.NewBOMEncoder(&buf, cdx.BOMFileFormatJSON)
		enc.SetPretty(true)
		if err := enc.EncodeVersion(doc, cdx.SpecVersion1_6); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Printf("%-50s %4d components\n", file, n)
	}
	return nil
}

// parseList reads the list of licences, by dependency.
func parseList(b []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 3 && !strings.HasPrefix(line, "#") {
			out[f[0]+" "+f[1]] = strings.Join(f[2:], " ")
		}
	}
	return out
}

// fileName is an artefact's name as that of a file.
func fileName(artefact string) string {
	name, isImage := strings.CutPrefix(artefact, "image:")
	if isImage {
		return "image-" + strings.NewReplacer("/", "-", ":", "-").Replace(name)
	}
	return strings.TrimSuffix(filepath.Base(artefact), ".tar.gz")
}

// component describes an artefact, with what is in it.
func (b *bills) component(ctx context.Context, artefact string) (cdx.Component, error) {
	if name, ok := strings.CutPrefix(artefact, "image:"); ok {
		return b.image(ctx, name)
	}
	if strings.HasSuffix(artefact, ".tar.gz") {
		return b.bundle(artefact)
	}
	if filepath.Base(artefact) == typesetter.name {
		return b.wheel(artefact)
	}
	content, err := os.ReadFile(artefact)
	if err != nil {
		return cdx.Component{}, err
	}
	return b.program(filepath.Base(artefact), content)
}

// document is the bill of one artefact. It has no time and no serial number, so that the same
// artefact has the same bill.
func document(c cdx.Component) (doc *cdx.BOM, components int) {
	inner := c.Components
	c.Components = nil
	doc = cdx.NewBOM()
	doc.Metadata = &cdx.Metadata{Component: &c, Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "linktrial tools/supply", Version: c.Version}}}}
	doc.Components = inner
	return doc, count(inner)
}

func count(list *[]cdx.Component) int {
	n := 0
	if list != nil {
		for _, c := range *list {
			n += 1 + count(c.Components)
		}
	}
	return n
}

// hashes of a file.
func hashes(content []byte) *[]cdx.Hash {
	sum := sha256.Sum256(content)
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
}

// of is a dependency as a component.
func (b *bills) of(d dependency) cdx.Component {
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: d.name, Version: d.version, PackageURL: purl(d)}
	c.BOMRef = c.PackageURL
	if licence := b.licences[d.String()]; licence != "" {
		choice := cdx.LicenseChoice{License: &cdx.License{ID: licence}}
		if strings.ContainsAny(licence, " (") {
			choice = cdx.LicenseChoice{Expression: licence}
		}
		c.Licenses = &cdx.Licenses{choice}
	}
	if d.sha512 != "" {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: d.sha512}}
	}
	return c
}

// purl names a dependency as databases of vulnerabilities do
// (https://github.com/package-url/purl-spec).
func purl(d dependency) string {
	version := ""
	if d.version != "" {
		version = "@" + url.PathEscape(d.version)
	}
	switch d.kind {
	case kindGo:
		return "pkg:golang/" + strings.ToLower(d.name) + version
	case kindPython:
		return "pkg:pypi/" + d.name + version
	case kindNPM:
		return "pkg:npm/" + strings.Replace(d.name, "@", "%40", 1) + version
	}
	// Debian has the C libraries, too; its package of a library is the one that was linked.
	name := d.name
	if d.kind == kindC {
		name = d.debianPackage()
	}
	return "pkg:deb/debian/" + name + version
}

// components are dependencies in one order, each once.
func (b *bills) components(all []dependency) *[]cdx.Component {
	sortDependencies(all)
	out := make([]cdx.Component, 0, len(all))
	for i, d := range all {
		if i == 0 || compare(d, all[i-1]) != 0 {
			out = append(out, b.of(d))
		}
	}
	return &out
}

package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"linktrial/internal/driverfolder"
)

// Format is the version of the bundle format that this package writes and reads.
const Format = 1

// folder is the one folder of an archive.
const folder = "linktrial-bundle"

// Names of files with a meaning, within the folder.
const (
	manifestFile  = "manifest.json"
	checksumsFile = "SHA256SUMS"
	programFile   = "bin/linktrial"
	driversFolder = "bin/drivers"
	debianFolder  = "debian"
	imagesFolder  = "images"
)

// Manifest lists the contents of a bundle.
type Manifest struct {
	Format       int       `json:"format"`
	Version      string    `json:"version"`      // of linktrial
	Architecture string    `json:"architecture"` // as Debian names it: "amd64"
	Debian       string    `json:"debian,omitempty"`
	Drivers      []string  `json:"drivers"`
	Packages     []Package `json:"packages,omitempty"`
	Images       []Image   `json:"images,omitempty"`
}

// Package is one Debian package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	File    string `json:"file"`
}

// Image is one container image.
type Image struct {
	Name string `json:"name"` // as it was asked for
	ID   string `json:"id"`   // digest of its configuration
	File string `json:"file"`
}

// parseManifest parses a manifest. Unknown fields and other formats are errors.
func parseManifest(b []byte) (Manifest, error) {
	var m Manifest
	// The format is checked first: another one has other fields.
	var form struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &form); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if form.Format != Format {
		return m, fmt.Errorf("%s: format %d, expected %d: the bundle was made by another version of linktrial", manifestFile, form.Format, Format)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("%s: expected one document, found more behind it", manifestFile)
	}
	if m.Version == "" || m.Architecture == "" {
		return m, fmt.Errorf("%s: expected a version and an architecture", manifestFile)
	}
	return m, nil
}

// files returns the names of the files that the manifest requires.
func (m Manifest) files() []string {
	out := []string{programFile}
	for _, d := range m.Drivers {
		out = append(out, path.Join(driversFolder, d, driverfolder.Manifest))
	}
	for _, p := range m.Packages {
		out = append(out, p.File)
	}
	if len(m.Packages) > 0 {
		out = append(out, path.Join(debianFolder, "Packages"), path.Join(debianFolder, releaseFile), path.Join(debianFolder, archiveFile))
	}
	for _, i := range m.Images {
		out = append(out, i.File)
	}
	return out
}

// sum is one line of the checksums.
type sum struct{ hex, file string }

// formatSums writes checksums as sha256sum(1) reads them.
func formatSums(sums []sum) []byte {
	slices.SortFunc(sums, func(a, b sum) int { return strings.Compare(a.file, b.file) })
	var b bytes.Buffer
	for _, s := range sums {
		fmt.Fprintf(&b, "%s  %s\n", s.hex, s.file)
	}
	return b.Bytes()
}

// parseSums parses checksums; a file that is listed twice is an error.
func parseSums(b []byte) (map[string]string, error) {
	out := map[string]string{}
	line := 0
	for text := range strings.Lines(string(b)) {
		line++
		hex, file, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "  ")
		if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" || !clean(file) {
			return nil, fmt.Errorf("%s:%d: expected 64 hex digits, two spaces and the name of a file, found %.100q", checksumsFile, line, text)
		}
		if _, twice := out[file]; twice {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", checksumsFile, line, file)
		}
		out[file] = hex
	}
	return out, nil
}

// clean reports whether a name is a path below the folder in its shortest form.
func clean(name string) bool {
	return name != "" && name != "." && path.Clean(name) == name && !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../") &&
		!strings.ContainsAny(name, "\\\n\r\x00")
}

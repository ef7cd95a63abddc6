package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// maxProgram bounds a program that is read into memory, in bytes.
const maxProgram = 1 << 30

var errNoProgram = errors.New("expected a Linux program")

// program describes one of our programs: what the linker wrote into it, and what it was
// linked with.
func (b *bills) program(name string, content []byte) (cdx.Component, error) {
	c := cdx.Component{Type: cdx.ComponentTypeApplication, BOMRef: "program:" + name, Name: name, Version: b.version, Hashes: hashes(content)}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return c, fmt.Errorf("%w: %w", errNoProgram, err)
	}
	var all []dependency
	info, err := buildinfo.Read(bytes.NewReader(content))
	switch {
	case err == nil:
		all = append(all, dependency{kind: kindGo, name: "std", version: strings.TrimPrefix(info.GoVersion, "go")})
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			all = append(all, dependency{kind: kindGo, name: m.Path, version: m.Version})
		}
		if info.Path == "linktrial/cmd/linktrial" {
			all = append(all, b.pages...)
		}
	case len(b.drivers[name]) > 0:
		all = append(all, b.drivers[name]...)
		libraries, err := file.ImportedLibraries()
		if err != nil {
			return c, err
		}
		c.Properties = &[]cdx.Property{}
		for _, l := range libraries {
			// The machine brings them: their package is in its own bill, an image's or a bundle's.
			*c.Properties = append(*c.Properties, cdx.Property{Name: "linktrial:shared-library", Value: l})
		}
	default:
		return c, fmt.Errorf("%w in Go, or a driver in C++ that tools/supply knows: %w", errNoProgram, err)
	}
	c.Components = b.components(all)
	return c, nil
}

// nested adds a program to what it is in. References must be unique in a bill, so those of
// what is in the program begin with its name.
func nested(in *[]cdx.Component, c cdx.Component) {
	for i := range *c.Components {
		x := &(*c.Components)[i]
		x.BOMRef = c.BOMRef + "/" + x.BOMRef
	}
	*in = append(*in, c)
}

// debianPackages reads a list of packages as dpkg's status or apt's Packages has it
// (deb-control(5)). Of a status, packages that are not installed are left out.
func debianPackages(text []byte) []dependency {
	var out []dependency
	for stanza := range strings.SplitSeq(string(text), "\n\n") {
		field := map[string]string{}
		for line := range strings.Lines(stanza) {
			if name, value, ok := strings.Cut(line, ":"); ok && line[0] != ' ' && line[0] != '\t' {
				field[name] = strings.TrimSpace(value)
			}
		}
		if field["Package"] == "" || field["Version"] == "" {
			continue
		}
		if status, ok := field["Status"]; ok && !strings.HasSuffix(status, " installed") {
			continue
		}
		out = append(out, dependency{kind: "deb", name: field["Package"], version: field["Version"]})
	}
	return out
}

// ours reports whether a file of an image or bundle is one of our programs: those are at the
// top, in bin, or in the folder of their driver.
func ours(name string) bool {
	dir, base := path.Split(path.Clean("/" + name))
	dir = strings.TrimSuffix(dir, "/")
	return dir == "" || dir == "/bin" && base == "linktrial" || dir == "/drivers/"+base || dir == "/bin/drivers/"+base
}

// contents reads what an image or a bundle is made of from a tar archive; below is the
// folder of the archive that has it.
func (b *bills) contents(r io.Reader, below, packages string) (list []cdx.Component, manifest []byte, err error) {
	var debian []dependency
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		name, ok := strings.CutPrefix(h.Name, below)
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		name = strings.TrimPrefix(name, "./")
		switch {
		case name == "manifest.json":
			if manifest, err = io.ReadAll(io.LimitReader(t, maxProgram)); err != nil {
				return nil, nil, err
			}
		case name == packages:
			text, err := io.ReadAll(io.LimitReader(t, maxProgram))
			if err != nil {
				return nil, nil, err
			}
			debian = debianPackages(text)
		case h.Mode&0o111 != 0 && ours(name):
			content, err := io.ReadAll(io.LimitReader(t, maxProgram))
			if err != nil {
				return nil, nil, err
			}
			c, err := b.program(path.Base(name), content)
			if errors.Is(err, errNoProgram) {
				c = cdx.Component{Type: cdx.ComponentTypeFile, BOMRef: "file:" + name, Name: name, Hashes: hashes(content), Components: &[]cdx.Component{}}
			} else if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			nested(&list, c)
		}
	}
	return append(list, *b.components(debian)...), manifest, nil
}

// bundle describes an install bundle.
func (b *bills) bundle(file string) (cdx.Component, error) {
	c := cdx.Component{Type: cdx.ComponentTypeApplication, BOMRef: "bundle", Name: path.Base(file)}
	f, err := os.Open(file)
	if err != nil {
		return c, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return c, err
	}
	list, manifest, err := b.contents(z, "linktrial-bundle/", "debian/Packages")
	if err != nil {
		return c, err
	}
	var m struct {
		Version string
		Images  []struct{ Name, ID string }
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return c, fmt.Errorf("manifest.json: %w", err)
	}
	c.Version = m.Version
	for _, i := range m.Images {
		// What is in an image, its own bill says.
		list = append(list, cdx.Component{Type: cdx.ComponentTypeContainer, BOMRef: "image:" + i.Name, Name: i.Name, Version: i.ID})
	}
	c.Components = &list
	return c, nil
}

// image describes a container image that docker has.
func (b *bills) image(ctx context.Context, name string) (cdx.Component, error) {
	c := cdx.Component{Type: cdx.ComponentTypeContainer, BOMRef: "image", Name: name}
	id, err := output(ctx, "", "docker", "image", "inspect", "--format", "{{.Id}}", name)
	if err != nil {
		return c, err
	}
	c.Version = strings.TrimSpace(string(id))
	container, err := output(ctx, "", "docker", "create", name, "none")
	if err != nil {
		return c, err
	}
	at := strings.TrimSpace(string(container))
	defer func() { _, _ = output(context.WithoutCancel(ctx), "", "docker", "rm", at) }()
	cmd := exec.CommandContext(ctx, "docker", "export", at)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	if err := cmd.Start(); err != nil {
		return c, err
	}
	list, _, err := b.contents(out, "", "var/lib/dpkg/status")
	if err != nil {
		_ = cmd.Process.Kill()
		return c, errors.Join(err, cmd.Wait())
	}
	_, _ = io.Copy(io.Discard, out) // padding behind the archive's end
	if err := cmd.Wait(); err != nil {
		return c, fmt.Errorf("docker export: %w: %s", err, failure.String())
	}
	c.Components = &list
	return c, nil
}

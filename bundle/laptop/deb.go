package laptop

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// scripts are those that dpkg runs (Debian's policy, chapter 6).
//
//go:embed scripts
var scripts embed.FS

const description = `plans, runs, measures and reports field trials of transport protocols over radios
One package for a laptop without internet: the program with its pages, the protocol
drivers, a PostgreSQL that the orchestrator alone uses, a typesetter for reports, plans,
radio profiles and documents. Its services are off until they are started.`

// deb writes the package for Debian.
func (t tree) deb(path string, p Package, architecture string, modified time.Time, scrap string) error {
	info := &nfpm.Info{
		Name: "linktrial", Arch: architecture, Platform: "linux", Version: p.Version, VersionSchema: "none",
		Section: "net", Priority: "optional", Maintainer: "Linktrial", Description: description, License: "Apache-2.0",
		DisableGlobbing: true, MTime: modified,
	}
	// useradd is in passwd, which every Debian has.
	info.Depends = []string{"libc6 (>= " + p.Libc + ")", "passwd"}
	info.Recommends = []string{"python3"} // sets reports as PDF; all else works without
	info.Deb.Compression = "gzip"
	for _, name := range t.names() {
		info.Contents = append(info.Contents, &files.Content{
			Source: t[name].from, Destination: "/usr/" + name, Type: files.TypeFile,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: t[name].mode, MTime: modified},
		})
	}
	for name, at := range map[string]*string{"postinst": &info.Scripts.PostInstall, "prerm": &info.Scripts.PreRemove, "postrm": &info.Scripts.PostRemove} {
		text, err := scripts.ReadFile("scripts/" + name)
		if err != nil {
			return err
		}
		*at = filepath.Join(scrap, name)
		if err := os.WriteFile(*at, text, 0o755); err != nil {
			return err
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := deb.Default.Package(info, f); err != nil {
		return fmt.Errorf("write the .deb: %w", err)
	}
	return f.Sync()
}

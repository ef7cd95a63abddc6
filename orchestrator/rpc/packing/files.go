package packing

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/driverfolder"
	"linktrial/internal/signature"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/shelf"
)

// uses are what the sheets of a campaign name.
type uses struct{ protocols, radios, topologies []string }

func addTo(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func (u *uses) add(s *runsheet.Sheet) {
	u.radios, u.topologies = addTo(u.radios, s.Cell.Radio), addTo(u.topologies, s.Cell.Topology)
	if s.Topology.Second != nil {
		u.radios = addTo(u.radios, s.Topology.Second.Radio)
	}
	for i := range s.Treatments {
		t := &s.Treatments[i]
		u.protocols = addTo(u.protocols, t.Protocol)
		for k := range t.Via {
			u.protocols = addTo(u.protocols, t.Via[k].Protocol)
		}
	}
}

// addFile packs a file of the disk.
func (g *gathering) addFile(name, title, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return g.bag.Add(name, title, func(to io.Writer) error {
		_, err := io.Copy(to, f)
		return err
	})
}

// catalog packs the manifests of drivers, radio profiles and topologies that the sheets name.
func (g *gathering) catalog() error {
	for _, p := range g.uses.protocols {
		name := path.Join(evidence.Drivers, p, driverfolder.Manifest)
		dir := g.cfg.Catalog.DriverDir(p)
		err := fs.ErrNotExist
		if dir != "" {
			err = g.addFile(name, "The manifest of the driver of "+p, filepath.Join(dir, driverfolder.Manifest))
		}
		if errors.Is(err, fs.ErrNotExist) {
			g.miss("the manifest of the driver of %s: this orchestrator does not have the driver", p)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	for _, k := range []struct {
		folder, what string
		names        []string
		source       func(string) (catalog.Source, error)
	}{
		{"radio-profiles", "radio profile", g.uses.radios, g.cfg.Catalog.ProfileSource},
		{"topologies", "topology", g.uses.topologies, g.cfg.Catalog.TopologySource},
	} {
		for _, name := range k.names {
			src, err := k.source(name)
			if err != nil {
				g.miss("the %s %s: this orchestrator does not have it any more; the run sheets have what of it was run", k.what, name)
				continue
			}
			if err := g.bag.AddBytes(path.Join(evidence.Catalog, k.folder, name+".yaml"), "The "+k.what+" "+name+", as the orchestrator has it", src.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// trust packs the keys that others need to check signatures.
func (g *gathering) trust() error {
	var keys []signature.PublicKey
	var endorsed []signature.Endorsed
	for _, e := range g.cfg.Keys.Keys() {
		keys = append(keys, e.Key)
		if e.By != "" {
			endorsed = append(endorsed, e)
		}
	}
	text := signature.FormatKeys("Keys that signed this orchestrator's run sheets; the last one signed this evidence.", keys...)
	if err := g.bag.AddBytes(evidence.SigningKeys, "The keys that signed run sheets", text); err != nil {
		return err
	}
	if len(endorsed) > 0 {
		if err := g.bag.AddBytes(evidence.EndorsedKeys, "What each of these keys signed of the next one", signature.FormatEndorsed(endorsed)); err != nil {
			return err
		}
	}
	cert := g.cfg.Authority()
	if cert == nil {
		return nil
	}
	return g.bag.AddBytes(evidence.Authority, "The authority that signed the nodes' certificates", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// results packs every file that can be exported of the campaign, and the report.
func (g *gathering) results(ctx context.Context) error {
	there, err := g.cfg.Results.ListFormats(ctx, connect.NewRequest(&linktrialv1.ListFormatsRequest{Ids: []string{g.campaign}}))
	if err != nil {
		return err
	}
	dir, err := g.shelf.Scrap("results")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	formats := slices.DeleteFunc(there.Msg.Formats, func(f *linktrialv1.Format) bool { return f.OnScreen })
	return shelf.Export(ctx, g.cfg.Results, g.campaign, dir, formats, func(e shelf.Exported, done float64) error {
		g.progress.Tell(done)
		if e.Err != nil {
			g.miss("the file %s: %s", e.Format.FileName, g.explain(ctx, "export of "+e.Name+" of campaign "+g.campaign, e.Err))
			return nil
		}
		at := filepath.Join(dir, e.File)
		defer func() { _ = os.Remove(at) }() // else with the folder
		g.bundle.Evidence.Exports = append(g.bundle.Evidence.Exports, evidence.Export{File: e.File, Format: e.Name})
		return g.addFile(path.Join(evidence.Results, e.File), e.Format.Title, at)
	})
}

// explain is an error as the list of what is missing has it.
func (g *gathering) explain(ctx context.Context, what string, err error) string {
	var coded *connect.Error
	if errors.As(reply.Told(ctx, g.cfg.Logger, what, err), &coded) {
		return coded.Message()
	}
	return fmt.Sprintf("%s failed", what)
}

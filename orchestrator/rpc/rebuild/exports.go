package rebuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/rpc/results"
	"linktrial/orchestrator/store"
)

// exports makes files again, by the code that made them.
type exports struct {
	bag      Bag
	index    *evidence.Evidence
	service  *results.Service
	dir      string
	lacksRun string // a run whose samples were deleted; empty: none were
}

func newExports(b Bag, index *evidence.Evidence, st *store.Store, all *catalog.Catalog, log *slog.Logger, dir string) *exports {
	e := &exports{bag: b, index: index, service: results.New(results.Config{Store: st, Catalog: all, Logger: log}), dir: dir}
	for i := range index.Runs {
		for k := range index.Runs[i].Nodes {
			if index.Runs[i].Nodes[k].SamplesDeleted {
				e.lacksRun = index.Runs[i].ID
			}
		}
	}
	return e
}

// again makes one file again and holds it against the bag's.
func (e *exports) again(ctx context.Context, x *evidence.Export) (evidence.RebuiltFile, error) {
	out := evidence.RebuiltFile{File: x.File}
	name := path.Join(evidence.Results, x.File)
	if !has(e.bag, name) {
		out.NotMade = "the bag does not have it"
		return out, nil
	}
	made := filepath.Join(e.dir, "made-again")
	err := e.export(ctx, x, made)
	defer func() { _ = os.Remove(made) }() // else with the folder
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case connect.CodeOf(err) == connect.CodeFailedPrecondition: // Typst is not there
		out.NotMade = message(err)
		return out, nil
	case err != nil && connect.CodeOf(err) == connect.CodeUnavailable, err != nil && connect.CodeOf(err) == connect.CodeUnknown:
		return out, fmt.Errorf("%s: %w", x.File, err)
	case err != nil:
		out.Differs = "it cannot be made from the journals: " + message(err)
		return out, nil
	}
	out.Same, out.Differs, err = e.hold(name, made)
	if err != nil {
		out.Same, out.Differs = false, "the bag's file cannot be read: "+err.Error()
	}
	f, _, _ := strings.Cut(x.Format, ":")
	if format := render.Find(f); !out.Same && e.lacksRun != "" && format != nil && ofSamples(format) {
		of := "is made of"
		if format.Samples {
			of = "draws"
		}
		out.Differs, out.NotMade = "", "it "+of+" samples, and those of run "+e.lacksRun+" were deleted before the bag was packed"
	}
	return out, nil
}

// ofSamples reports whether a format is made of samples, or draws some.
func ofSamples(f *render.Format) bool {
	return f.Source == render.FromSamples || f.Samples || strings.HasPrefix(f.Name, "samples-")
}

// message is an error's text for people.
func message(err error) string {
	if coded := (*connect.Error)(nil); errors.As(err, &coded) {
		return coded.Message()
	}
	return err.Error()
}

// export writes a file.
func (e *exports) export(ctx context.Context, x *evidence.Export, at string) (err error) {
	out, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	of := x.Run
	if of == "" {
		of = e.index.Campaign
	}
	return e.service.Export(ctx, &linktrialv1.ResultsRequest{RunId: of, Format: x.Format}, func(m *linktrialv1.ResultsResponse) error {
		_, err := out.Write(m.Content)
		return err
	})
}

// hold compares the bag's file with the one that was made again. The error is of the bag's.
func (e *exports) hold(name, made string) (same bool, differs string, err error) {
	of, again := &tally{}, &tally{}
	if err := e.both(name, made, func(bag, file io.Reader) error {
		same, err = equal(io.TeeReader(bag, of), io.TeeReader(file, again))
		return err
	}); err != nil || same {
		return same, "", err
	}
	if path.Ext(name) == ".json" {
		if err := e.both(name, made, func(bag, file io.Reader) error {
			differs = differsInJSON(bag, file)
			return nil
		}); err != nil || differs != "" {
			return false, differs, err
		}
	}
	if f := render.OfFile(path.Base(name)); f != nil && !f.Text() {
		return false, fmt.Sprintf("the bag has %v, and from the journals follow %v", of, again), nil
	}
	err = e.both(name, made, func(bag, file io.Reader) (err error) {
		differs, err = differsInLine(bag, file)
		return err
	})
	return false, differs, err
}

// both opens the bag's file and the other one.
func (e *exports) both(name, made string, f func(bag, file io.Reader) error) error {
	b, err := e.bag.Open(name)
	if err != nil {
		return err
	}
	defer b.Close()
	file, err := os.Open(made)
	if err != nil {
		return err
	}
	defer file.Close()
	return f(b, file)
}

// equal reads both to their ends.
func equal(a, b io.Reader) (bool, error) {
	same := true
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		same = same && bytes.Equal(x[:n], y[:m])
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if errA != nil && errB != nil {
			return same, nil
		}
	}
}

// tally is the size and the digest of what is written into it.
type tally struct {
	bytes int64
	all   interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func (t *tally) Write(p []byte) (int, error) {
	if t.all == nil {
		t.all = sha256.New()
	}
	t.bytes += int64(len(p))
	return t.all.Write(p)
}

func (t *tally) String() string {
	if t.all == nil {
		return "0 bytes"
	}
	return fmt.Sprintf("%d bytes with the SHA-256 %.16s…", t.bytes, hex.EncodeToString(t.all.Sum(nil)))
}

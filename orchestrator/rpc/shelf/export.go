package shelf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// Results is what is asked of ResultService.
type Results interface {
	ListFormats(context.Context, *connect.Request[linktrialv1.ListFormatsRequest]) (*connect.Response[linktrialv1.ListFormatsResponse], error)
	Export(ctx context.Context, m *linktrialv1.ResultsRequest, send func(*linktrialv1.ResultsResponse) error) error
}

// Exported is one file of results, or why there is none.
type Exported struct {
	Format *linktrialv1.Format
	Name   string // of the format, with the number of a part: svg:2
	File   string // its name in the folder
	Err    error  // nil: the file is there
}

// Export writes files of a campaign into a folder, a drawing of many panels as several, and
// calls each with one after the other. A file that there need not be is passed over. The
// error is that of each, or of a context that has ended.
func Export(ctx context.Context, from Results, campaign, dir string, formats []*linktrialv1.Format, each func(Exported, float64) error) error {
	for i, f := range formats {
		for part, parts := 1, 1; part <= parts; part++ {
			x := Exported{Format: f, Name: f.Name}
			if part > 1 {
				x.Name = fmt.Sprintf("%s:%d", f.Name, part)
			}
			x.File, parts, x.Err = exportFile(ctx, from, campaign, x.Name, dir)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case x.Err != nil && f.MayBeMissing && connect.CodeOf(x.Err) == connect.CodeNotFound:
				continue
			}
			if err := each(x, float64(i+1)/float64(len(formats))); err != nil {
				return err
			}
		}
	}
	return nil
}

// exportFile writes one file, and returns its name and of how many parts it is one.
func exportFile(ctx context.Context, from Results, campaign, format, dir string) (name string, parts int, err error) {
	var out *os.File
	defer func() {
		if out != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	err = from.Export(ctx, &linktrialv1.ResultsRequest{RunId: campaign, Format: format}, func(m *linktrialv1.ResultsResponse) (err error) {
		if out == nil {
			if m.FileName == "" { // only how much is read
				return nil
			}
			name, parts = filepath.Base(m.FileName), int(m.Parts)
			if out, err = os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
				return err
			}
		}
		_, err = out.Write(m.Content)
		return err
	})
	if err == nil && out == nil {
		err = errors.New("there was no file")
	}
	return name, parts, err
}

package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/client"
)

// File of an image.
type File struct {
	Path string // in the image, without the leading slash
	Mode int64
	Data []byte
}

// Import makes an image of nothing but the given files.
func (e *Engine) Import(ctx context.Context, ref string, changes []string, files ...File) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.Path, Mode: f.Mode, Size: int64(len(f.Data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.Data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	out, err := e.Client.ImageImport(ctx, client.ImageImportSource{Source: &b, SourceName: "-"}, ref, client.ImageImportOptions{Changes: changes})
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	defer out.Close()
	if _, err := io.Copy(io.Discard, out); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	return nil
}

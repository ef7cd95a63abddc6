package bundle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// saveImages writes images into scrap/images.
func saveImages(ctx context.Context, names []string, scrap string) ([]Image, error) {
	if len(names) == 0 {
		return nil, nil
	}
	dir := filepath.Join(scrap, imagesFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	var out []Image
	for n, name := range names {
		id, err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", name).Output()
		if err != nil {
			return nil, fmt.Errorf("image %s: docker does not have it, or does not run: %w", name, err)
		}
		file := fmt.Sprintf("%03d.tar", n+1)
		if err := command(ctx, "docker", "save", "--output", filepath.Join(dir, file), name); err != nil {
			return nil, fmt.Errorf("image %s: %w", name, err)
		}
		out = append(out, Image{Name: name, ID: strings.TrimSpace(string(id)), File: path.Join(imagesFolder, file)})
	}
	return out, nil
}

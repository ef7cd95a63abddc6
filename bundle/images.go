package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
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
		id, err := imageID(ctx, name)
		if err != nil {
			return nil, err
		}
		file := fmt.Sprintf("%03d.tar", n+1)
		if err := command(ctx, "docker", "save", "--output", filepath.Join(dir, file), name); err != nil {
			return nil, fmt.Errorf("image %s: %w", name, err)
		}
		out = append(out, Image{Name: name, ID: id, File: path.Join(imagesFolder, file)})
	}
	return out, nil
}

// imageID asks the engine for the identity of an image: the digest of its configuration,
// which names the digests of its layers.
func imageID(ctx context.Context, name string) (string, error) {
	id, err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", "--", name).Output()
	if err == nil {
		return strings.TrimSpace(string(id)), nil
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	return "", fmt.Errorf("image %s: docker does not have it, or does not run: %w", name, err)
}

// digestPrefix is what the identity of an image begins with.
const digestPrefix = "sha256:"

// SignImages writes a list of images with their identities, as the engine has them, and
// the list's signature beside it. An image that reaches another machine in whatever way
// (a registry, docker save) is then held against the list there.
func (k *Key) SignImages(ctx context.Context, names []string, list string) (signature string, err error) {
	sums := make([]sum, 0, len(names))
	for _, name := range names {
		id, err := imageID(ctx, name)
		if err != nil {
			return "", err
		}
		digest, ok := strings.CutPrefix(id, digestPrefix)
		switch {
		case !ok:
			return "", fmt.Errorf("image %s: identity %q, expected %s…", name, id, digestPrefix)
		case slices.ContainsFunc(sums, func(s sum) bool { return s.file == name }):
			return "", fmt.Errorf("image %s is named twice", name)
		}
		sums = append(sums, sum{digest, name})
	}
	if err := atomicfile.Write(list, formatSums(sums), 0o644); err != nil {
		return "", err
	}
	return k.Sign(list)
}

// VerifyImages returns the images of a list where the key has signed it, and the engine's
// images of these names are those of the list.
func (k PublicKey) VerifyImages(ctx context.Context, list string) ([]Image, error) {
	if err := k.verifyFile(list); err != nil {
		return nil, err
	}
	text, err := inputfile.Read(list, maxChecksums)
	if err != nil {
		return nil, err
	}
	want, err := parseSums(text) // its errors name the bundle's own list
	if err != nil {
		return nil, fmt.Errorf("%s is no list of images: %w", list, err)
	}
	var out []Image
	for _, name := range sortedKeys(want) {
		id, err := imageID(ctx, name)
		if err != nil {
			return nil, err
		}
		if id != digestPrefix+want[name] {
			return nil, fmt.Errorf("image %s is %s on this machine, and %s%s was signed", name, id, digestPrefix, want[name])
		}
		out = append(out, Image{Name: name, ID: id})
	}
	return out, nil
}

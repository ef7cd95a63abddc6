package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// build is the gateway in the driver's folder.
type build struct {
	path    string
	version string // as it prints it
	digest  string // SHA-256
	standIn bool
}

// gatewayName is the program's name in the driver's folder. It lies there and not
// at a path of the plan's or the node's choice: the digest of a driver, which a
// run sheet names and a node's owner approves, is that of its folder.
const gatewayName = "gateway"

// standInMark is in what a stand-in prints as its version. The driver takes one
// only where it was built for its own tests (build tag standin).
const standInMark = "stand-in, not SCPS"

// versionPatience is how long the gateway may take to print its version.
const versionPatience = 5 * time.Second

// findBuild looks at the gateway in the folder of this program.
func findBuild(ctx context.Context) (*build, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &build{path: filepath.Join(filepath.Dir(self), gatewayName)}
	f, err := os.Open(b.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, harness.Unsupported("no build of the SCPS reference implementation, expected its gateway as %s (docs/scps.md)", b.path)
	}
	if err != nil {
		return nil, harness.Unsupported("the gateway of the SCPS reference implementation: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, harness.Unsupported("the gateway of the SCPS reference implementation: %w", err)
	}
	b.digest = hex.EncodeToString(sum.Sum(nil))
	if err := b.askVersion(ctx); err != nil {
		return nil, err
	}
	b.standIn = strings.Contains(b.version, standInMark)
	if b.standIn && !standInAllowed {
		return nil, harness.Unsupported("%s is the stand-in of Linktrial's own tests and not SCPS: put a build of the SCPS reference implementation there (docs/scps.md)", b.path)
	}
	return b, nil
}

// askVersion runs the gateway with -V. The reference implementation prints one
// line and ends with exit code 1.
func (b *build) askVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.path, "-V")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return harness.Unsupported("%s -V, which must print the version of the SCPS reference implementation: %w", b.path, errors.Join(err, ctx.Err()))
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte{'\n'})
	b.version = strings.ToValidUTF8(string(line[:min(len(line), 80)]), "?")
	if b.version == "" {
		return harness.Unsupported("%s -V printed nothing, expected the version of the SCPS reference implementation", b.path)
	}
	return nil
}

func (b *build) info() *contract.Info {
	i := &contract.Info{Implementation: "SCPS reference implementation, gateway " + b.version, Detail: map[string]string{
		"gateway_sha256": b.digest,
		"encapsulation":  "UDP, 28 bytes a packet (48 over IPv6)",
		"ends":           "TCP to the gateway of each node; no metrics of SCPS-TP in samples",
	}}
	if b.standIn {
		i.Implementation = standInMark + ": packets pass as they are"
	}
	return i
}

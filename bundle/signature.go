package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"

	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
)

// SignatureSuffix is what a file's signature is called beside it, as minisign(1) does.
const SignatureSuffix = ".minisig"

// maxKey bounds a file with a key or a signature, in bytes.
const maxKey = 64 << 10

// Key is a private key of who makes bundles.
type Key struct{ private minisign.PrivateKey }

// PublicKey verifies what the private one has signed.
type PublicKey struct{ public minisign.PublicKey }

// String is the key in one line, as minisign takes it: RW…
func (k PublicKey) String() string { return k.public.String() }

// ID names the key in signatures, as minisign shows it.
func (k PublicKey) ID() string { return fmt.Sprintf("%016X", k.public.ID()) }

// NewKey makes a key, and returns it as the two files that minisign(1) uses. The private
// one is not encrypted.
func NewKey() (private, public []byte, err error) {
	p, k, err := minisign.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	if private, err = k.MarshalText(); err != nil {
		return nil, nil, err
	}
	public, err = p.MarshalText()
	return append(private, '\n'), append(public, '\n'), err
}

// ReadKey reads a private key, also of minisign -G. Where it is encrypted, passphrase is
// called.
func ReadKey(path string, passphrase func() (string, error)) (*Key, error) {
	text, err := inputfile.Read(path, maxKey)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	var k Key
	if minisign.IsEncrypted(text) {
		var phrase string
		if phrase, err = passphrase(); err != nil {
			return nil, err
		}
		if k.private, err = minisign.DecryptKey(phrase, text); err != nil {
			return nil, fmt.Errorf("private key %s: the passphrase is wrong, or the file is damaged", path)
		}
		return &k, nil
	}
	if err := k.private.UnmarshalText(text); err != nil {
		return nil, fmt.Errorf("private key %s: expected one of 'linktrial install-bundle key' or of minisign -G: %w", path, err)
	}
	return &k, nil
}

// Public is the key that verifies what this one has signed.
func (k *Key) Public() PublicKey {
	p, _ := k.private.Public().(minisign.PublicKey)
	return PublicKey{p}
}

// ParsePublicKey reads a public key: the line, or the file's text around it.
func ParsePublicKey(text string) (PublicKey, error) {
	var k PublicKey
	if err := k.public.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return k, fmt.Errorf("public key %.60q, expected a line such as RWQ… of 'linktrial install-bundle key'", strings.TrimSpace(text))
	}
	return k, nil
}

// Sign writes the signature of a file beside it. Of a folder, it first writes the checksums
// of all of its files, and signs these.
func (k *Key) Sign(path string) (signature string, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if st.IsDir() {
		sums, err := sumsBelow(path)
		if err != nil {
			return "", err
		}
		path = filepath.Join(path, checksumsFile)
		if err := atomicfile.Write(path, formatSums(sums), 0o644); err != nil {
			return "", err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := minisign.NewReader(f)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	signed := r.SignWithComments(k.private, "file:"+filepath.Base(path), "signature of "+filepath.Base(path)+" by key "+k.Public().ID())
	return path + SignatureSuffix, atomicfile.Write(path+SignatureSuffix, append(signed, '\n'), 0o644)
}

// Verify returns nil where the key has signed the file, or the folder with all of its
// files and no other ones.
func (k PublicKey) Verify(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return k.verifyFile(path)
	}
	list := filepath.Join(path, checksumsFile)
	if err := k.verifyFile(list); err != nil {
		return err
	}
	text, err := inputfile.Read(list, maxChecksums)
	if err != nil {
		return err
	}
	want, err := parseSums(text)
	if err != nil {
		return err
	}
	got, err := sumsBelow(path)
	if err != nil {
		return err
	}
	for _, s := range got {
		switch hex, ok := want[s.file]; {
		case !ok:
			return fmt.Errorf("%s: %s is not among the signed files", path, s.file)
		case hex != s.hex:
			return fmt.Errorf("%s: %s is not the file that was signed", path, s.file)
		}
		delete(want, s.file)
	}
	for _, name := range sortedKeys(want) {
		return fmt.Errorf("%s: %s is missing", path, name)
	}
	return nil
}

func (k PublicKey) verifyFile(path string) error {
	text, err := inputfile.Read(path+SignatureSuffix, maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not signed: there is no %s", path, filepath.Base(path)+SignatureSuffix)
	}
	if err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return fmt.Errorf("%s is no signature of minisign: %w", path+SignatureSuffix, err)
	}
	if s.KeyID != k.public.ID() {
		return fmt.Errorf("%s is signed by key %016X, expected key %s", path, s.KeyID, k.ID())
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := minisign.NewReader(f)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !r.Verify(k.public, text) {
		return fmt.Errorf("%s does not match its signature by key %s: it was changed after it was signed", path, k.ID())
	}
	return nil
}

// sumsBelow returns the checksums of all files below a folder but those of the signature.
func sumsBelow(dir string) ([]sum, error) {
	var out []sum
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if name == checksumsFile || name == checksumsFile+SignatureSuffix {
			return nil
		}
		if !e.Type().IsRegular() || !clean(name) {
			return fmt.Errorf("%s is no file that can be signed", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, sum{hex.EncodeToString(h.Sum(nil)), name})
		return nil
	})
	slices.SortFunc(out, func(a, b sum) int { return strings.Compare(a.file, b.file) })
	return out, err
}

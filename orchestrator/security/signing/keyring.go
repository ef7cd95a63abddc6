package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"linktrial/internal/atomicfile"
	"linktrial/internal/filelock"
	"linktrial/internal/signature"
	"linktrial/internal/sshsig"
)

// Names in the folder of the key ring.
const (
	ringFile = "signing-key.json"
	lockFile = "lock"
	ringDir  = "signing"
	// PublicFile has the public keys, as agents take them with --trust.
	PublicFile = "trusted-keys"
)

// Dir is the folder of the key ring in a data folder.
func Dir(data string) string { return filepath.Join(data, ringDir) }

// Keyring is the orchestrator's signing key and those before it. Any number of
// goroutines may use it.
type Keyring struct {
	dir string // empty: kept in memory alone

	mu      sync.Mutex
	private ed25519.PrivateKey
	keys    []signature.Endorsed // oldest first; the last one is of private
	made    []time.Time
}

// ringDocument is the key ring as a file. Of former keys only the public half
// stays: nothing more can be signed with them.
type ringDocument struct {
	Format int       `json:"format"`
	Seed   []byte    `json:"private_seed"` // RFC 8032's 32-byte private key
	Keys   []ringKey `json:"keys"`
}

type ringKey struct {
	Public      string    `json:"public"`
	Made        time.Time `json:"made"`
	EndorsedBy  string    `json:"endorsed_by,omitempty"`
	Endorsement []byte    `json:"endorsement,omitempty"`
}

// Ephemeral is a key ring that ends with the process, for what no other process
// will verify.
func Ephemeral() (*Keyring, error) {
	k := &Keyring{}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	k.private, k.keys, k.made = private, []signature.Endorsed{{Key: signature.PublicOf(private)}}, []time.Time{time.Now().UTC()}
	return k, nil
}

// Open reads the key ring of a folder, and makes folder and key where there are
// none yet. The file of public keys is written anew each time.
func Open(dir string) (*Keyring, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	release, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	k, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if k, err = Ephemeral(); err == nil {
			k.dir = dir
			err = k.save()
		}
	}
	if err != nil {
		return nil, err
	}
	return k, k.publish()
}

// Existing reads the key ring of a folder, and changes nothing there.
func Existing(dir string) (*Keyring, error) {
	k, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no signing key in %s: start the orchestrator of that data folder once, or name its data folder with --data", dir)
	}
	return k, err
}

// SignBackup signs a backup's manifest.
func (k *Keyring) SignBackup(manifest []byte) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return signature.SignBackup(k.private, manifest)
}

// SignEvidence signs what a bag of evidence has as ssh-keygen does, so that others check it
// without Linktrial. It returns the key that it was signed with.
func (k *Keyring) SignEvidence(content []byte) (armoured string, by signature.PublicKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	armoured, err = sshsig.Sign(k.private, sshsig.Evidence, content)
	return armoured, signature.PublicOf(k.private), err
}

// SignAuditHead signs a head of the audit log.
func (k *Keyring) SignAuditHead(head []byte) signature.Signature {
	k.mu.Lock()
	defer k.mu.Unlock()
	return signature.SignAuditHead(k.private, head)
}

// Fingerprint is that of the public key that signs now.
func (k *Keyring) Fingerprint() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return signature.PublicOf(k.private).Fingerprint()
}

// lock keeps two processes from making a key at once.
func lock(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	if err := filelock.Lock(f, filelock.Exclusive); err != nil {
		f.Close()
		return nil, fmt.Errorf("signing key: lock %s: %w", dir, err)
	}
	return func() { filelock.Release(f) }, nil
}

func read(dir string) (*Keyring, error) {
	path := filepath.Join(dir, ringFile)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("signing key %s is open to others (mode %04o, expected 0600): whoever could read it can sign; 'chmod 600' it, and 'linktrial signing rotate' if that may have happened", path, mode)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	k, err := parseRing(b)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", path, err)
	}
	k.dir = dir
	return k, nil
}

// parseRing reads the file and checks that every key but the first is endorsed
// by the one before it: agents could follow nothing else.
func parseRing(b []byte) (*Keyring, error) {
	var d ringDocument
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	switch {
	case d.Format != 1:
		return nil, fmt.Errorf("format %d, this Linktrial reads 1", d.Format)
	case len(d.Seed) != ed25519.SeedSize:
		return nil, fmt.Errorf("a private key of %d bytes, expected %d", len(d.Seed), ed25519.SeedSize)
	case len(d.Keys) == 0:
		return nil, errors.New("no public key")
	}
	k := &Keyring{private: ed25519.NewKeyFromSeed(d.Seed)}
	for i, r := range d.Keys {
		pub, err := signature.ParsePublicKey(r.Public)
		if err != nil {
			return nil, err
		}
		e := signature.Endorsed{Key: pub, By: r.EndorsedBy, Endorsement: r.Endorsement}
		if i > 0 && len(signature.NewKeys(k.keys[i-1].Key).Extend([]signature.Endorsed{e})) != 1 {
			return nil, fmt.Errorf("key %s is not endorsed by key %s before it", pub.ID(), k.keys[i-1].Key.ID())
		}
		k.keys, k.made = append(k.keys, e), append(k.made, r.Made)
	}
	if last := k.keys[len(k.keys)-1].Key; last != signature.PublicOf(k.private) {
		return nil, fmt.Errorf("the private key is not that of key %s", last.ID())
	}
	return k, nil
}

func (k *Keyring) save() error {
	d := ringDocument{Format: 1, Seed: k.private.Seed()}
	for i, e := range k.keys {
		d.Keys = append(d.Keys, ringKey{Public: e.Key.String(), Made: k.made[i], EndorsedBy: e.By, Endorsement: e.Endorsement})
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(k.dir, ringFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	return nil
}

func (k *Keyring) publish() error {
	if err := atomicfile.Write(filepath.Join(k.dir, PublicFile), k.Public(), 0o644); err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	return nil
}

// Sign signs an encoded sheet for one run.
func (k *Keyring) Sign(run string, sheet []byte) signature.Signature {
	k.mu.Lock()
	defer k.mu.Unlock()
	return signature.SignSheet(k.private, run, sheet)
}

// SignAssignment signs an encoded assignment.
func (k *Keyring) SignAssignment(encoded []byte) signature.Signature {
	k.mu.Lock()
	defer k.mu.Unlock()
	return signature.SignAssignment(k.private, encoded)
}

// Keys are all public keys, oldest first; the last one signs.
func (k *Keyring) Keys() []signature.Endorsed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys)
}

// Public is a file of the public keys for agents.
func (k *Keyring) Public() []byte {
	var pub []signature.PublicKey
	for _, e := range k.Keys() {
		pub = append(pub, e.Key)
	}
	return signature.FormatKeys("Keys that sign this orchestrator's run sheets; for 'linktrial agent --trust FILE'.", pub...)
}

// Rotate makes a new key, endorsed by the one that signs now, and signs with it
// from here on. The old private key is gone then; its signatures stay good.
func (k *Keyring) Rotate() error {
	if k.dir != "" {
		release, err := lock(k.dir)
		if err != nil {
			return err
		}
		defer release()
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	k.mu.Lock()
	next := &Keyring{
		dir: k.dir, private: private,
		keys: append(slices.Clone(k.keys), signature.Endorse(k.private, signature.PublicOf(private))),
		made: append(slices.Clone(k.made), time.Now().UTC()),
	}
	k.mu.Unlock()
	if k.dir != "" {
		if err := next.save(); err != nil {
			return err
		}
	}
	k.mu.Lock()
	k.private, k.keys, k.made = next.private, next.keys, next.made
	k.mu.Unlock()
	if k.dir != "" {
		return k.publish()
	}
	return nil
}

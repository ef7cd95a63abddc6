// Package trust decides whether this node executes what it is sent: an assignment
// and a run sheet only when a key that the node trusts has signed them, a driver only
// when that sheet names its digest.
//
// Comes in: files of trusted keys, what an orchestrator shows of its keys, run
// sheets with signatures, digests of drivers. Goes out: nil, or one sentence that
// names what is refused and the remedy.
package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"

	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
)

// Names in the state folder.
const (
	enrolledFile = "enrolled-keys"
	pinnedFile   = "pinned-key"
	endorsedFile = "endorsed-keys"
)

// Config is which keys a node trusts to begin with.
type Config struct {
	// File of trusted keys, from the person who set the node up. Those of the node's
	// enrolment are then not taken.
	File string
	// Keys are trusted besides.
	Keys []signature.PublicKey
	// Pin, where there are no others, trusts the key that signs for the first
	// orchestrator this node registers with, and no other after that.
	Pin bool
	// Dir is where the keys of the enrolment, pinned and endorsed ones are kept;
	// empty: they are forgotten.
	Dir    string
	Logger *slog.Logger
}

// Keys are the keys that a node trusts. Any number of goroutines may use them.
type Keys struct {
	cfg Config

	mu       sync.Mutex
	trusted  signature.Keys
	endorsed []signature.Endorsed // by trusted keys, kept in the state folder
	pinned   bool
	warned   bool // that the orchestrator shows none of the trusted keys
}

// ErrNoKeys reports that a node has no key to trust and may not pin one.
var ErrNoKeys = errors.New("this node trusts no key that could sign a run sheet: enrol it, or give the orchestrator's file of trusted keys with --trust (on the orchestrator, 'linktrial signing keys' prints it)")

// Open reads the keys that the node trusts.
func Open(cfg Config) (*Keys, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Keys{cfg: cfg, trusted: signature.NewKeys(cfg.Keys...)}
	switch {
	case cfg.File != "":
		if err := k.read(cfg.File); err != nil {
			return nil, err
		}
	case cfg.Dir != "":
		path := filepath.Join(cfg.Dir, enrolledFile)
		if err := k.read(path); err == nil {
			k.cfg.File = path
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(k.trusted) == 0 {
		if !cfg.Pin {
			return nil, ErrNoKeys
		}
		k.pinned = true
		if cfg.Dir != "" {
			if err := k.read(filepath.Join(cfg.Dir, pinnedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if cfg.Dir == "" {
		return k, nil
	}
	path := filepath.Join(cfg.Dir, endorsedFile)
	b, err := inputfile.Read(path, signature.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil && !errors.Is(err, inputfile.ErrRefused) {
		return nil, fmt.Errorf("endorsed keys: %w", err)
	}
	var list []signature.Endorsed
	if err == nil {
		list, err = signature.ParseEndorsed(path, b)
	}
	if err != nil {
		// The orchestrator shows them again, and they count only as trusted keys endorse them.
		to, aside := atomicfile.SetAside(path)
		if aside != nil {
			return nil, fmt.Errorf("endorsed keys: %w", aside)
		}
		cfg.Logger.Error("the file of endorsed keys cannot be read and is set aside", "file", path, "now", to, "error", err)
		return k, nil
	}
	// Only as far as they still follow from what the node trusts to begin with.
	k.endorsed = k.trusted.Extend(list)
	return k, nil
}

// Enrolled keeps in a state folder the keys that an orchestrator sent the node
// when it enrolled. They replace those of an earlier enrolment.
func Enrolled(dir string, keys []signature.PublicKey) error {
	if len(keys) == 0 {
		return errors.New("the orchestrator named no key that signs its run sheets")
	}
	if err := atomicfile.Write(filepath.Join(dir, enrolledFile), signature.FormatKeys("Keys that sign run sheets, as the orchestrator told when this node enrolled.", keys...), 0o600); err != nil {
		return fmt.Errorf("keep the orchestrator's signing keys: %w", err)
	}
	return nil
}

func (k *Keys) read(path string) error {
	b, err := inputfile.Read(path, signature.MaxFile)
	if err != nil {
		return fmt.Errorf("trusted keys: %w", err)
	}
	list, err := signature.ParseKeys(path, b)
	if err != nil {
		return fmt.Errorf("trusted keys: %w", err)
	}
	maps.Copy(k.trusted, signature.NewKeys(list...))
	return nil
}

// Learn takes over the keys that the orchestrator shows, oldest first: those
// that a trusted key endorses, or the last of them where the node pins the
// first it sees.
func (k *Keys) Learn(shown []signature.Endorsed) error {
	if len(shown) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.trusted) == 0 {
		key := shown[len(shown)-1].Key
		path := "memory"
		if k.cfg.Dir != "" {
			path = filepath.Join(k.cfg.Dir, pinnedFile)
			if err := atomicfile.Write(path, signature.FormatKeys("The first key that an orchestrator showed to this node. Remove this file to take another.", key), 0o600); err != nil {
				return fmt.Errorf("pin the orchestrator's signing key: %w", err)
			}
		}
		k.trusted[key.ID()] = key
		k.cfg.Logger.Warn("the orchestrator's signing key is trusted because it is the first one seen, and from here on no other is", "key", key.ID(), "file", path)
		return nil
	}
	now := maps.Clone(k.trusted)
	taken := now.Extend(shown)
	if len(taken) > 0 {
		endorsed := append(append([]signature.Endorsed(nil), k.endorsed...), taken...)
		if k.cfg.Dir != "" {
			if err := atomicfile.Write(filepath.Join(k.cfg.Dir, endorsedFile), signature.FormatEndorsed(endorsed), 0o600); err != nil {
				return fmt.Errorf("keep endorsed keys: %w", err)
			}
		}
		k.trusted, k.endorsed = now, endorsed
		for _, e := range taken {
			k.cfg.Logger.Info("a signing key is trusted because a trusted one endorses it", "key", e.Key.ID(), "by", e.By)
		}
	}
	if key := shown[len(shown)-1].Key; !k.warned && k.trusted[key.ID()] != key {
		k.warned = true
		k.cfg.Logger.Warn("the orchestrator signs with a key that this node does not trust; its run sheets will be refused", "key", key.ID(), "trusted", k.trusted.IDs())
	}
	return nil
}

// CheckSheet reports why a run sheet must not be executed, or nil.
func (k *Keys) CheckSheet(run string, sheet []byte, s signature.Signature) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refusal(k.trusted.VerifySheet(run, sheet, s), s)
}

// CheckAssignment reports why nothing of an encoded assignment must be used, or nil.
func (k *Keys) CheckAssignment(encoded []byte, s signature.Signature) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refusal(k.trusted.VerifyAssignment(encoded, s), s)
}

// refusal adds to err, if any, what a person can do.
func (k *Keys) refusal(err error, s signature.Signature) error {
	if err == nil {
		return nil
	}
	if _, known := k.trusted[s.KeyID]; known || s.IsZero() {
		return fmt.Errorf("refused: %w; nothing was started", err)
	}
	switch {
	case k.pinned && k.cfg.Dir != "":
		return fmt.Errorf("refused: %w; if the orchestrator was set up anew and this is meant, remove %s on the node", err, filepath.Join(k.cfg.Dir, pinnedFile))
	case k.cfg.File != "":
		return fmt.Errorf("refused: %w; if this orchestrator is the right one, put its public key into %s on the node", err, k.cfg.File)
	}
	return fmt.Errorf("refused: %w", err)
}

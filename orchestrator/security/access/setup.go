package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"linktrial/internal/atomicfile"
)

// SetupFile is the file of the data folder that holds the setup token while it
// is good for something. Who can read it may make the first admin.
const SetupFile = "setup-token"

// setup is the one-time token for the first admin. It is new with every start,
// and kept nowhere but in the file.
type setup struct {
	mu   sync.Mutex
	hash []byte // nil: none is good
	// forced: there is an admin already, and somebody with the data folder asked for a token.
	forced bool
}

func (a *Access) openSetup(ctx context.Context) error {
	admins, err := a.db.ActiveAdmins(ctx)
	if err != nil {
		return fmt.Errorf("count the admins: %w", err)
	}
	path := filepath.Join(a.cfg.DataDir, SetupFile)
	if admins > 0 && !a.cfg.Setup {
		return a.removeSetupFile() // one that a killed orchestrator left
	}
	if a.cfg.DataDir == "" {
		return errors.New("the first admin is made with a token from the data folder, and there is no data folder")
	}
	s := newSecret(setupPrefix)
	err = os.MkdirAll(a.cfg.DataDir, 0o755)
	if err == nil {
		err = atomicfile.Write(path, []byte(s.text()+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("setup token: %w", err)
	}
	a.setup.hash, a.setup.forced = s.hash(), admins > 0
	a.log.Warn("make an admin on this machine: linktrial user add NAME --role admin", "admins", admins, "setup_token_file", path)
	return nil
}

func (a *Access) removeSetupFile() error {
	return a.removeFile(SetupFile)
}

// removeFile removes a token's file from the data folder, where there is one.
func (a *Access) removeFile(name string) error {
	if a.cfg.DataDir == "" {
		return nil
	}
	err := os.Remove(filepath.Join(a.cfg.DataDir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("token of the data folder: %w", err)
	}
	return nil
}

// closeSetup ends the setup token.
func (a *Access) closeSetup() error {
	a.setup.mu.Lock()
	defer a.setup.mu.Unlock()
	if a.setup.hash == nil {
		return nil
	}
	a.setup.hash = nil
	return a.removeSetupFile()
}

// setupState reports whether a setup token is good, and whether there is an admin besides.
func (a *Access) setupState() (good, forced bool) {
	a.setup.mu.Lock()
	defer a.setup.mu.Unlock()
	return a.setup.hash != nil, a.setup.forced
}

func (a *Access) bySetup(s secret) (Principal, error) {
	a.setup.mu.Lock()
	defer a.setup.mu.Unlock()
	switch {
	case a.setup.hash == nil:
		return Principal{}, refuse(Unauthenticated, "the setup token is used up: log in as the admin it made")
	case subtle.ConstantTimeCompare(a.setup.hash, s.hash()) != 1:
		return Principal{}, refuse(Unauthenticated, "this is not the setup token of the running orchestrator: each start makes a new one, in the file %s of its data folder", SetupFile)
	}
	return Principal{Via: "setup token", setup: true}, nil
}

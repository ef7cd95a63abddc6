package access

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"linktrial/internal/atomicfile"
)

// LocalTokenFile is the file of the data folder that holds the local token while the
// orchestrator runs: whoever can read it may do on the orchestrator's machine what takes an
// admin, without a login. They could read the authority's key beside it, too.
const LocalTokenFile = "local-token"

// viaLocal is what the audit log has of a call with the local token.
const viaLocal = "root on the orchestrator's machine"

// localToken is for commands on the orchestrator's own machine. It is new with every start,
// and kept nowhere but in the file.
type localToken struct {
	mu   sync.Mutex
	hash []byte // nil: none is good
}

// openLocal makes the local token. Without a data folder there is none.
func (a *Access) openLocal() error {
	if a.cfg.DataDir == "" {
		return nil
	}
	s := newSecret(localPrefix)
	err := os.MkdirAll(a.cfg.DataDir, 0o755)
	if err == nil {
		err = atomicfile.Write(filepath.Join(a.cfg.DataDir, LocalTokenFile), []byte(s.text()+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("local token: %w", err)
	}
	a.local.hash = s.hash()
	return nil
}

// closeLocal ends the local token.
func (a *Access) closeLocal() error {
	a.local.mu.Lock()
	defer a.local.mu.Unlock()
	if a.local.hash == nil {
		return nil
	}
	a.local.hash = nil
	return a.removeFile(LocalTokenFile)
}

func (a *Access) byLocal(r *http.Request, s secret) (Principal, error) {
	a.local.mu.Lock()
	defer a.local.mu.Unlock()
	switch {
	case !fromOwnMachine(r):
		return Principal{}, refuse(Unauthenticated, "the local token is for commands on the orchestrator's own machine: log in instead")
	case a.local.hash == nil || subtle.ConstantTimeCompare(a.local.hash, s.hash()) != 1:
		return Principal{}, refuse(Unauthenticated, "this is not the local token of the running orchestrator: each start makes a new one, in the file %s of its data folder", LocalTokenFile)
	}
	return Principal{Role: Admin, Via: viaLocal, Expires: a.now().Add(sessionLife), local: true}, nil
}

// ofAccount reports whether a procedure is about the caller's own account, which a caller
// with the local token does not have.
func ofAccount(service string, need rule) bool {
	return service == "AccessService" && need.who == people && need.least == Viewer && (need.logged || need.enrols)
}

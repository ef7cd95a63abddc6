package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user PostgreSQL runs as where this process is root, which
// PostgreSQL refuses to run as. A nil owner is this process's own user.
type owner struct {
	name     string
	uid, gid uint32
}

// owners are the users that it can be, the first one that there is: of Debian's package of
// PostgreSQL, and of Linktrial's orchestrator.
var owners = []string{"postgres", "linktrial"}

// serverOwner is the owner of the database in a folder, or of the one that is to be made
// there.
func serverOwner(data string) (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var first *owner
	for _, name := range owners {
		o, err := lookUp(name)
		if err != nil {
			var unknown user.UnknownUserError
			if errors.As(err, &unknown) {
				continue
			}
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		// PostgreSQL opens a database of its own user alone, and the other one may have been
		// the only one when it was made.
		if st, err := os.Stat(data); err == nil {
			if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Uid == o.uid {
				return o, nil
			}
		}
		if first == nil {
			first = o
		}
	}
	if first == nil {
		return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor linktrial: start this as another user, install PostgreSQL (apt install postgresql), or give --database URL")
	}
	return first, nil
}

func lookUp(name string) (*owner, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &owner{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

// become makes cmd run as the owner.
func (o *owner) become(cmd *exec.Cmd) {
	if o != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.uid, Gid: o.gid}}
	}
}

// own gives a folder to the owner.
func (o *owner) own(path string) error {
	if o == nil {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	return nil
}

// checkPath says, before anything fails obscurely, which folder on the way to
// dir the owner may not enter.
func (o *owner) checkPath(dir string) error {
	at, err := o.barredFrom(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if at != "" {
		return fmt.Errorf("the private database runs as user %s, who may not enter %s: choose another data folder (--data, for example /var/lib/linktrial), or chmod o+x %s", o.name, at, at)
	}
	return nil
}

// checkPrograms says the same of the folder with PostgreSQL's programs: that of a package may
// be anywhere.
func (o *owner) checkPrograms(dir string) error {
	at, err := o.barredFrom(dir)
	if err != nil {
		return fmt.Errorf("PostgreSQL of this package: %w", err)
	}
	if at != "" {
		return fmt.Errorf("the private database runs as user %s, who may not enter %s, and its programs are in there: move the package to a folder that everybody may enter, such as /opt, or start this as another user than root", o.name, at)
	}
	return nil
}

// barredFrom returns the folder on the way to dir that the owner may not enter; empty: there
// is none.
func (o *owner) barredFrom(dir string) (string, error) {
	if o == nil {
		return "", nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		if err != nil {
			return "", err
		}
		enter := os.FileMode(0o001)
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			switch {
			case sys.Uid == o.uid:
				enter = 0o100
			case sys.Gid == o.gid:
				enter = 0o010
			}
		}
		if st.Mode().Perm()&enter == 0 {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", nil
		}
	}
}

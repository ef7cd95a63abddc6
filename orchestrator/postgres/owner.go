package postgres

import (
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

func serverOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root and there is no user postgres: install it (apt install postgresql), or give --database URL: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
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
	if o == nil {
		return nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("data folder: %w", err)
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
			return fmt.Errorf("the private database runs as user %s, who may not enter %s: choose another data folder (--data, for example /var/lib/linktrial), or chmod o+x %s", o.name, at, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

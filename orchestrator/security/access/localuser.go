package access

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// LocalUsers are the users of this machine who may change something where nobody logs in
// and this process has the rights of root: root, and who became root to start it. It is
// nil, which are all, where this process has no more rights than others.
func LocalUsers() []int {
	if os.Geteuid() != 0 {
		return nil
	}
	login, _ := os.ReadFile("/proc/self/loginuid") // kernels without audit have none
	return localUsers(os.Getenv("SUDO_UID"), strings.TrimSpace(string(login)))
}

// LocalAdmins are the users of this machine who may do what takes an admin where nobody
// logs in: root, the user of this process, who reads the keys anyway, and who became root
// to start it. Other users of the machine, drivers' among them, may not approve what
// nodes execute.
func LocalAdmins() []int {
	if users := LocalUsers(); users != nil {
		return users
	}
	return []int{0, os.Geteuid()}
}

// noLogin is the kernel's number for a process of no login session (proc_pid_loginuid(5)).
const noLogin = 1<<32 - 1

// localUsers is root, the user of sudo, and the user of the login session, which su and
// pkexec do not change either.
func localUsers(sudo, login string) []int {
	users := []int{0}
	for _, text := range []string{sudo, login} {
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n != noLogin && !slices.Contains(users, n) {
			users = append(users, n)
		}
	}
	return users
}

// refuseLocalUser reports why the user at the other end of a connection of this machine
// with itself may change nothing here, or nil.
func (a *Access) refuseLocalUser(r *http.Request) error {
	who, ok := a.localUser(r, a.cfg.LocalUsers)
	if ok {
		return nil
	}
	return refuse(NotAllowed, "the orchestrator runs as root, and the call comes from %s: only root and the user who started the orchestrator with sudo may change something here; do it as one of them, or start it with --login", who)
}

// refuseLocalAdmin reports why that user may not do what takes an admin, or nil.
func (a *Access) refuseLocalAdmin(r *http.Request) error {
	who, ok := a.localUser(r, a.cfg.LocalAdmins)
	if ok {
		return nil
	}
	return refuse(NotAllowed, "this takes an admin, nobody logs in here, and the call comes from %s: only root and the user who started the orchestrator may do it; do it as one of them, or start the orchestrator with --login", who)
}

// localUser reports whether the user at the other end of a connection of this machine with
// itself is one of these, and words who it is.
func (a *Access) localUser(r *http.Request, of []int) (who string, ok bool) {
	uid, err := userOfConn(r)
	if err != nil {
		a.log.Warn("the user of a call cannot be told", "error", err)
		return "a user of this machine who cannot be told", false
	}
	return fmt.Sprintf("user %d of this machine", uid), slices.Contains(of, uid)
}

type connKey struct{}

// connUser is whose process the other end of a connection is, once somebody has asked.
type connUser struct {
	once sync.Once
	uid  int
	err  error
}

// WithConn has the user at the other end looked up once for a connection, and not for each
// of its calls: the kernel's tables take long to read where they are large.
func WithConn(ctx context.Context) context.Context {
	return context.WithValue(ctx, connKey{}, &connUser{})
}

// userOfConn is [userOf], remembered with the connection.
func userOfConn(r *http.Request) (int, error) {
	c, ok := r.Context().Value(connKey{}).(*connUser)
	if !ok {
		return userOf(r)
	}
	c.once.Do(func() { c.uid, c.err = userOf(r) })
	return c.uid, c.err
}

// userOf is the user whose process has the other end of a request's connection, which
// is on this machine.
func userOf(r *http.Request) (int, error) {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return 0, fmt.Errorf("address of the caller: %w", err)
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("the address at which %s called is not known", remote)
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if uid, found, err := findUser(table, remote, local.AddrPort()); err != nil || found {
			return uid, err
		}
	}
	return 0, fmt.Errorf("the connection from %s is not in the kernel's tables", remote)
}

// established is the state of a connection whose socket has an owner (TCP_ESTABLISHED of
// the kernel): one that is closing is shown as root's.
const established = "01"

// findUser looks a connection up in one of the kernel's tables (proc_pid_net(5)), as
// its own end has it.
func findUser(table string, own, other netip.AddrPort) (uid int, found bool, err error) {
	f, err := os.Open(table)
	if os.IsNotExist(err) {
		return 0, false, nil // without IPv6
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the heading
	for lines.Scan() {
		// sl local_address rem_address st queues timer retransmits uid …
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[3] != established || !sameEnd(fields[1], own) || !sameEnd(fields[2], other) {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		if err != nil {
			return 0, false, fmt.Errorf("%s: %w", table, err)
		}
		return uid, true, nil
	}
	return 0, false, lines.Err()
}

// sameEnd reports whether text, "0100007F:1E14", is an address and its port. The address
// is written in words of the machine's byte order.
func sameEnd(text string, want netip.AddrPort) bool {
	address, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(address)
	n, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(b)%4 != 0 || uint16(n) != want.Port() {
		return false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return ok && a.Unmap() == want.Addr().Unmap()
}

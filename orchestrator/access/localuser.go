package access

import (
	"bufio"
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
)

// LocalUsers are the users of this machine who may have programs run with the rights
// of this process: nil, which are all, where it has no more than others; else root and
// who started it with sudo.
func LocalUsers() []int {
	if os.Geteuid() != 0 {
		return nil
	}
	users := []int{0}
	if n, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && n > 0 {
		users = append(users, n)
	}
	return users
}

// refuseLocalUser reports why the user at the other end of a connection of this machine
// with itself may not have programs run here, or nil.
func (a *Access) refuseLocalUser(r *http.Request) error {
	uid, err := userOf(r)
	if err == nil && slices.Contains(a.cfg.LocalUsers, uid) {
		return nil
	}
	who := fmt.Sprintf("user %d of this machine", uid)
	if err != nil {
		who = "a user of this machine who cannot be told"
		a.log.Warn("the user of a call cannot be told", "error", err)
	}
	return refuse(NotAllowed, "the orchestrator runs as root, and the call comes from %s: bring labs up and check drivers as root or as the user who started the orchestrator with sudo, or start it with --login", who)
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

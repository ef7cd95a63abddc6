package client

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/internal/inputfile"
	"linktrial/orchestrator/security/access"
)

// maxToken bounds a file with a token, in bytes: one has some fifty.
const maxToken = 1 << 10

// Folders returns the data folders that an orchestrator on this machine may have.
func (t Trust) Folders() (out []string) {
	for _, dir := range []string{t.Data, t.Packaged} {
		if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// localToken returns the token of an orchestrator on this machine for a call to it; empty:
// the call goes elsewhere, or this user may not read one. It goes only to whoever has a
// certificate of a trusted authority: another user's program could have the port.
func (t Trust) localToken(u *url.URL) string {
	if u.Scheme != "https" || !AtThisMachine(u) {
		return ""
	}
	for _, dir := range t.Folders() {
		b, err := inputfile.Read(filepath.Join(dir, access.LocalTokenFile), maxToken)
		if token := strings.TrimSpace(string(b)); err == nil && isToken(token) {
			return token
		}
	}
	return ""
}

// isToken reports whether a text can be the header of a call.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// AtThisMachine reports whether a URL is on the loopback or at an address of this machine,
// without asking a resolver.
func AtThisMachine(u *url.URL) bool {
	if ownMachine(u) {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	addresses, err := net.InterfaceAddrs()
	return ip != nil && err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

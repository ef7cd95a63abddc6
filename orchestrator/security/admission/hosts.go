package admission

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"connectrpc.com/connect"

	"linktrial/internal/identity"
)

// Hosts are the names under which an orchestrator answers. A page of another site can
// have its own name resolve to the orchestrator's address (DNS rebinding); for the
// browser, the orchestrator is then a part of that site, whose page may call it and
// read its answers. The name is in the request's Host, which no page can change.
//
// IP addresses are always answered: the page of an address comes from that address.
// So is localhost, which browsers do not look up (RFC 6761, section 6.3).
type Hosts struct {
	names     map[string]bool
	certified func(name string) bool
	log       *slog.Logger
	told      sometimes
}

// NewHosts returns the hosts with the names. certified reports whether the server's
// certificate has a name; nil: there is none.
func NewHosts(names []string, certified func(name string) bool, log *slog.Logger) *Hosts {
	h := &Hosts{names: map[string]bool{localhost: true}, certified: certified, log: log}
	for _, n := range names {
		if n = nameOf(n); n != "" {
			h.names[n] = true
		}
	}
	return h
}

const localhost = "localhost"

// CheckHostName returns what is wrong with a name that a person gives for [NewHosts].
func CheckHostName(name string) error {
	if name == "" || strings.ContainsAny(name, ":/*@?#[] \t") {
		return fmt.Errorf("host %q, expected a name such as trial.example, without scheme and port", name)
	}
	return nil
}

// nameOf returns the name or the address of a Host header.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// maxName is the length of the longest name in the DNS, as text (RFC 1035, section 2.3.4).
const maxName = 253

// Check returns why a request with this Host is not answered, or nil.
func (h *Hosts) Check(host string) error {
	name := nameOf(host)
	switch {
	case isAddress(name), h.names[name]:
		return nil
	case name == "":
		return errors.New("the request names no host, expected an IP address, localhost or a name of the orchestrator ('linktrial serve --allow-host NAME')")
	case h.certified != nil && h.certified(name):
		return nil
	}
	return fmt.Errorf("the request is for the host %.*q, expected an IP address, localhost or a name of the orchestrator: if this is one, start 'linktrial serve' with --allow-host NAME", maxName, name)
}

// hstsAge is for how long browsers replace http by https in URLs of the orchestrator's
// name, after each answer. They do so for all ports of the machine, so it is not
// longer than a machine is likely to keep its purpose: 30 days.
const hstsAge = "max-age=2592000"

// Handler answers requests for the orchestrator's names alone. With TLS it has
// browsers keep to it (RFC 6797), under names that are the orchestrator's own: browsers
// ignore it for addresses, and localhost is a name of other servers, too.
func (h *Hosts) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.Check(r.Host); err != nil && !byNode(r) {
			h.refuse(w, r, err)
			return
		}
		if name := nameOf(r.Host); r.TLS != nil && name != localhost && !isAddress(name) {
			w.Header().Set("Strict-Transport-Security", hstsAge)
		}
		next.ServeHTTP(w, r)
	})
}

// byNode reports whether the caller required the certificate for nodes, which have it
// at whatever name they reach the orchestrator. A browser requires that of its URL.
func byNode(r *http.Request) bool {
	return r.TLS != nil && r.TLS.ServerName == identity.OrchestratorName
}

// refuse says why a request is not answered, in the protocol in which it was made.
func (h *Hosts) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if h.told.due() {
		h.log.Warn("a request for an unknown host was refused", "error", err, "from", r.RemoteAddr, "origin", r.Header.Get("Origin"))
	}
	if r.Method == http.MethodPost && errorWriter.IsSupported(r) { // a GET is of a page
		_ = errorWriter.Write(w, r, connect.NewError(connect.CodePermissionDenied, err)) // a caller that is gone
		return
	}
	http.Error(w, err.Error(), http.StatusMisdirectedRequest)
}

package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"connectrpc.com/connect"

	"linktrial/orchestrator/security/admission"
)

// open are the patterns of the mux that are served to everybody: the pages,
// which hold nothing until they have called the API, the handbook, logins at the provider, and whether
// it lives.
var open = []string{"/", "GET /{$}", "/handbook/", "GET /healthz", "GET " + ProviderPath, "GET " + ProviderReturnPath}

// Guard wraps all that an orchestrator serves. What changes something must not come
// from a page of another origin, also where nobody logs in. Where nobody logs in though
// other machines reach the orchestrator, what takes an admin is for callers on its own
// machine; where only this machine reaches it and it runs as root, what changes something
// is for root and who started it. Where people must log in, a request passes only with what its procedure or
// page takes; the procedures of nodes pass, to be guarded by whom certificates are
// known to.
func (a *Access) Guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := &call{address: address(r), host: hostOf(r), secure: r.TLS != nil}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, call))
		service, method, isCall := procedure(r.URL.Path)
		// A page of another site cannot read our answers, but it could have a browser
		// ask, which is logged in or on a machine that reaches us. Cookies are strict
		// about the site, which has no port; this is strict about the origin, which has.
		if err := a.crossing.Check(r); err != nil {
			a.answer(w, r, refuse(NotAllowed, "the call comes from a page of another origin (%s), which may not act here for the person at that browser", cmp.Or(r.Header.Get("Origin"), "it does not say which")))
			return
		}
		switch {
		case !a.cfg.Required:
			if isCall {
				if err := a.refuseUnknown(r, ruleOf(service, method)); err != nil {
					a.answer(w, r, err)
					return
				}
			}
			if err := admission.Known(r.Context(), ""); err != nil {
				a.answer(w, r, err)
				return
			}
			mux.ServeHTTP(w, r)
		case isCall:
			a.guardCall(mux, w, r, call, service, method)
		default:
			a.guardPage(mux, w, r)
		}
	})
}

// refuseUnknown reports why a call may not do what its procedure does where nobody logs in,
// or nil. What is known of the caller is the machine and, on this one, the user.
func (a *Access) refuseUnknown(r *http.Request, need rule) error {
	admins := need.who == people && need.least == Admin
	switch {
	case admins && a.cfg.OpenToNetwork && !fromOwnMachine(r):
		return refuse(NotAllowed, "this takes an admin, and the orchestrator was started with --open and has no users: do it on the orchestrator's own machine, or start it without --open")
	case !a.cfg.OpenToNetwork && a.cfg.LocalUsers != nil && need.changes():
		return a.refuseLocalUser(r)
	case admins && a.cfg.LocalAdmins != nil:
		return a.refuseLocalAdmin(r)
	}
	return nil
}

// call is what is known of a request before it is understood.
type call struct {
	address string
	host    string // of the orchestrator, as the caller names it, without the port
	secure  bool
	entry   *entry // nil: nothing is logged
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		c = &call{} // a handler that nothing guards, in a test
	}
	return c
}

func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// fromOwnMachine reports whether a request comes from the machine that the orchestrator
// is on. A connection of the machine with itself has one of its addresses at both ends.
func fromOwnMachine(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	from := remote.Addr().Unmap()
	if from.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return local != nil && local.AddrPort().Addr().Unmap() == from
}

func (a *Access) guardPage(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	if _, pattern := mux.Handler(r); slices.Contains(open, pattern) {
		mux.ServeHTTP(w, r)
		return
	}
	p, err := a.authenticate(r)
	if err == nil && p.Role < Viewer {
		err = refuse(NotAllowed, "this takes a user")
	}
	if err == nil && p.lacksFactor {
		err = p.lacksSecond()
	}
	if err == nil {
		err = admission.Known(r.Context(), p.name())
	}
	if err != nil {
		plain(w, a.coded(r, err))
		return
	}
	// A file can take long: it ends with what it was allowed by, as a stream does.
	ctx, done := a.follow(r.Context(), p)
	defer done()
	mux.ServeHTTP(w, r.WithContext(ctx))
}

func (a *Access) guardCall(mux *http.ServeMux, w http.ResponseWriter, r *http.Request, c *call, service, method string) {
	need := ruleOf(service, method)
	if need.who == nodes {
		// Without TLS, nodes have no certificates. With it, the authority decides.
		if r.TLS == nil {
			if err := admission.Known(r.Context(), ""); err != nil {
				a.answer(w, r, err)
				return
			}
		}
		mux.ServeHTTP(w, r)
		return
	}
	p, err := a.authenticate(r)
	ctx := r.Context()
	if err == nil {
		if err := admission.Known(ctx, p.name()); err != nil {
			a.answer(w, r, err)
			return
		}
		ctx = context.WithValue(ctx, principalKey{}, p)
	}
	if need.who != everyone {
		if err != nil {
			a.answer(w, r, err)
			return
		}
		var refusal error
		switch {
		case !p.may(service, method, need):
			refusal = refuse(NotAllowed, "%s", p.lacks(need.least))
		case p.lacksFactor && !need.enrols:
			refusal = p.lacksSecond()
		}
		if refusal != nil {
			c.entry = newEntry(p, c, service, method)
			err := a.coded(r, refusal)
			c.entry.outcome, c.entry.message = outcomeOf(err)
			a.keep(ctx, c.entry)
			a.write(w, r, err)
			return
		}
	}
	if need.logged {
		c.entry = newEntry(p, c, service, method)
		if c.entry.anonymous = need.who == everyone; c.entry.anonymous {
			// Until the interceptor has the message: anybody may send what is none.
			c.entry.outcome, c.entry.message = outcomeRefused, "the request was not understood"
		}
		defer a.keep(ctx, c.entry)
	}
	mux.ServeHTTP(w, r.WithContext(ctx))
}

// may reports whether a role is enough. The setup token makes one user and does
// nothing else; the local token has no account.
func (p Principal) may(service, method string, need rule) bool {
	if p.setup {
		return service == "AccessService" && method == "AddUser"
	}
	return p.Role >= need.least && (!p.local || !ofAccount(service, need))
}

// name is what the calls of a principal are counted by.
func (p Principal) name() string {
	if p.User == "" {
		return p.Via
	}
	return "user " + p.User
}

// signature is whose word a message is, as records have it.
func (p Principal) signature() string {
	if p.local {
		return p.Via
	}
	return p.User
}

func (p Principal) lacks(least Role) string {
	switch {
	case p.setup:
		return "the setup token makes the first admin and does nothing else: log in as that one"
	case p.local:
		return "this is about the account of whoever calls, and " + viaLocal + " has none: log in first"
	case p.token != "" && !p.ofLogin:
		return p.User + "'s " + p.Via + " has the role " + p.Role.String() + ", and this takes " + article(least)
	}
	return p.User + " is " + article(p.Role) + ", and this takes " + article(least)
}

// lacksSecond refuses what takes a second factor.
func (p Principal) lacksSecond() error {
	return refuse(NotAllowed, "the role %s takes a second factor here, and %s has none: set one up on the account page, or with 'linktrial user second-factor set'", p.Role, p.User)
}

func article(r Role) string {
	if r == Admin {
		return "an admin"
	}
	return "a " + r.String()
}

var errorWriter = connect.NewErrorWriter()

// answer refuses a call in whichever protocol it was made.
func (a *Access) answer(w http.ResponseWriter, r *http.Request, err error) {
	a.write(w, r, a.coded(r, err))
}

func (a *Access) write(w http.ResponseWriter, r *http.Request, coded *connect.Error) {
	if !errorWriter.IsSupported(r) {
		plain(w, coded)
		return
	}
	challenge(w, coded)
	if err := errorWriter.Write(w, r, coded); err != nil {
		a.log.Debug("a refusal was not delivered", "error", err)
	}
}

var codes = map[Reason]connect.Code{
	Unauthenticated: connect.CodeUnauthenticated,
	NotAllowed:      connect.CodePermissionDenied,
	Invalid:         connect.CodeInvalidArgument,
	NotFound:        connect.CodeNotFound,
	Exists:          connect.CodeAlreadyExists,
	NotNow:          connect.CodeFailedPrecondition,
	TooMany:         connect.CodeResourceExhausted,
}

// Coded is the refusal as the API's protocols have it.
func (r *Refusal) Coded() *connect.Error {
	err := connect.NewError(codes[r.Reason], r.err)
	if r.RetryAfter > 0 {
		err.Meta().Set("Retry-After", fmt.Sprint(seconds(r.RetryAfter)))
	}
	return err
}

// Ended is what a call ends with whose caller has no more time for it or has ended it;
// nil while neither is so.
func Ended(ctx context.Context) *connect.Error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the caller's time for the call is over"))
	case err != nil:
		return connect.NewError(connect.CodeCanceled, errors.New("the caller has ended the call"))
	}
	return nil
}

// coded is a refusal as the API's protocols have it. An error of the orchestrator's
// own is logged, and its text is not told; one that comes from the caller's end is none.
func (a *Access) coded(r *http.Request, err error) *connect.Error {
	var refused *Refusal
	if errors.As(err, &refused) {
		return refused.Coded()
	}
	if coded := (*connect.Error)(nil); errors.As(err, &coded) {
		return coded
	}
	if ended := Ended(r.Context()); ended != nil {
		return ended
	}
	a.log.Error("could not find out who calls", "path", r.URL.Path, "error", err)
	return connect.NewError(connect.CodeUnavailable, errors.New("the database does not answer"))
}

// plain refuses what is not one of the API's protocols.
func plain(w http.ResponseWriter, err *connect.Error) {
	status := http.StatusForbidden
	switch err.Code() {
	case connect.CodeUnauthenticated:
		status = http.StatusUnauthorized
	case connect.CodeUnavailable:
		status = http.StatusServiceUnavailable
	case connect.CodeResourceExhausted:
		status = http.StatusTooManyRequests
	}
	challenge(w, err)
	http.Error(w, err.Message(), status)
}

// challenge says how to log in (RFC 9110, section 11.6.1).
func challenge(w http.ResponseWriter, err *connect.Error) {
	if err.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
}

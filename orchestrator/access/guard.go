package access

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// open are the patterns of the mux that are served to everybody: the pages,
// which hold nothing until they have called the API, and whether it lives.
var open = []string{"/", "GET /{$}", "GET /healthz"}

// Guard wraps all that an orchestrator serves. Where people must log in, a
// request passes only with what its procedure or page takes; the procedures of
// nodes pass, to be guarded by whom certificates are known to.
func (a *Access) Guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := &call{address: address(r), secure: r.TLS != nil}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, call))
		service, method, isCall := procedure(r.URL.Path)
		switch {
		case !a.cfg.Required:
			mux.ServeHTTP(w, r)
		case isCall:
			a.guardCall(mux, w, r, call, service, method)
		default:
			a.guardPage(mux, w, r)
		}
	})
}

// call is what is known of a request before it is understood.
type call struct {
	address string
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

func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (a *Access) guardPage(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	if _, pattern := mux.Handler(r); slices.Contains(open, pattern) {
		mux.ServeHTTP(w, r)
		return
	}
	p, err := a.authenticate(r)
	switch {
	case err == nil && p.Role >= Viewer:
		mux.ServeHTTP(w, r)
	case err == nil:
		http.Error(w, "this takes a user", http.StatusForbidden)
	default:
		var coded *connect.Error
		if !errors.As(err, &coded) {
			a.log.Error("could not find out who calls", "path", r.URL.Path, "error", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, coded.Message(), http.StatusUnauthorized)
	}
}

func (a *Access) guardCall(mux *http.ServeMux, w http.ResponseWriter, r *http.Request, c *call, service, method string) {
	need := ruleOf(service, method)
	if need.who == nodes {
		mux.ServeHTTP(w, r)
		return
	}
	// A page of another site cannot read our answers, but it could have a
	// logged-in browser ask. Cookies are strict about the site, which has no
	// port; this is strict about the origin, which has.
	if err := a.crossing.Check(r); err != nil {
		a.answer(w, r, refuse(connect.CodePermissionDenied, "the call comes from a page of another origin (%s), which may not speak for who is logged in here", r.Header.Get("Origin")))
		return
	}
	p, err := a.authenticate(r)
	ctx := r.Context()
	if err == nil {
		ctx = context.WithValue(ctx, principalKey{}, p)
	}
	if need.who != everyone {
		if err != nil {
			a.answer(w, r, err)
			return
		}
		if !p.may(service, method, need) {
			c.entry = newEntry(p, c, service, method)
			err := refuse(connect.CodePermissionDenied, "%s", p.lacks(need.least))
			c.entry.outcome, c.entry.message = outcomeOf(err)
			a.keep(ctx, c.entry)
			a.answer(w, r, err)
			return
		}
	}
	if need.logged {
		c.entry = newEntry(p, c, service, method)
		defer a.keep(ctx, c.entry)
	}
	if p.User != "" && streams(service, method) {
		var done func()
		ctx, done = a.follow(ctx, p)
		defer done()
	}
	mux.ServeHTTP(w, r.WithContext(ctx))
}

// may says whether a role is enough. The setup token makes one user and does
// nothing else.
func (p Principal) may(service, method string, need rule) bool {
	if p.setup {
		return service == "AccessService" && method == "AddUser"
	}
	return p.Role >= need.least
}

func (p Principal) lacks(least Role) string {
	switch {
	case p.setup:
		return "the setup token makes the first admin and does nothing else: log in as that one"
	case p.token != "" && !p.ofLogin:
		return p.User + "'s " + p.Via + " has the role " + p.Role.String() + ", and this takes " + article(least)
	}
	return p.User + " is " + article(p.Role) + ", and this takes " + article(least)
}

func article(r Role) string {
	if r == Admin {
		return "an admin"
	}
	return "a " + r.String()
}

// answer refuses a call in whichever protocol it was made.
func (a *Access) answer(w http.ResponseWriter, r *http.Request, err error) {
	var coded *connect.Error
	if !errors.As(err, &coded) {
		a.log.Error("could not find out who calls", "path", r.URL.Path, "error", err)
		coded = connect.NewError(connect.CodeUnavailable, errors.New("the database does not answer"))
	}
	if !a.errors.IsSupported(r) {
		status := http.StatusForbidden
		if coded.Code() == connect.CodeUnauthenticated {
			status = http.StatusUnauthorized
		}
		http.Error(w, coded.Message(), status)
		return
	}
	if coded.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if err := a.errors.Write(w, r, coded); err != nil {
		a.log.Debug("a refusal was not heard", "error", err)
	}
}

// streams says whether a procedure answers with a stream.
func streams(service, method string) bool {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("linktrial.v1." + service))
	if err != nil {
		return false
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return false
	}
	m := s.Methods().ByName(protoreflect.Name(method))
	return m != nil && m.IsStreamingServer()
}

package access_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/provider"
	"linktrial/orchestrator/security/provider/providertest"
)

// withProvider is a house whose people can also log in at an OpenID Connect provider.
func withProvider(t *testing.T) (*house, *providertest.Provider) {
	t.Helper()
	var p *providertest.Provider
	h := build(t, func(c *access.Config) {
		p = providertest.New(t, c.Now)
		op, err := provider.New(provider.Config{Issuer: p.URL, ClientID: p.ClientID, Secret: p.Secret, Name: "Lake login", UserClaim: "preferred_username", RoleClaim: "groups", Now: c.Now})
		require.NoError(t, err)
		c.Provider = &access.ProviderConfig{Provider: op, Roles: map[access.Role][]string{access.Viewer: {"guests"}, access.Director: {"field"}, access.Admin: {"lab-admins", "root"}}}
	})
	p.Redirects = []string{h.url + access.ProviderReturnPath}
	h.people()
	return h, p
}

func person(name, subject string, groups ...any) map[string]any {
	return map[string]any{"sub": subject, "preferred_username": name, "groups": groups}
}

// shown is a page that a browser got.
type shown struct {
	status int
	text   string
	header http.Header
}

func (h *house) get(c *caller, address string) shown {
	h.t.Helper()
	res, err := c.http.Get(address)
	require.NoError(h.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(h.t, err)
	return shown{res.StatusCode, string(b), res.Header}
}

// begin goes to the provider's login page and stops before the browser comes back: it
// returns the address that the provider sends it to.
func (h *house) beginAtProvider(c *caller) *url.URL {
	h.t.Helper()
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { c.http.CheckRedirect = nil }()
	at := h.get(c, h.url+access.ProviderPath).header.Get("Location")
	require.NotEmpty(h.t, at)
	back, err := url.Parse(h.get(c, at).header.Get("Location"))
	require.NoError(h.t, err)
	require.NotEmpty(h.t, back.Query().Get("code"))
	return back
}

func TestProviderLogin(t *testing.T) {
	h, p := withProvider(t)
	ctx := t.Context()
	p.Says(person("Olga", "s-1", "everybody", "field"))
	olga := h.as()
	page := h.get(olga, h.url+access.ProviderPath+"?back=/runs/c1%3Ftab%3Dlive")
	require.Equal(t, http.StatusOK, page.status, page.text)
	require.Contains(t, page.text, "/runs/c1?tab=live")
	require.Equal(t, "no-store", page.header.Get("Cache-Control"))
	require.Equal(t, "olga director", h.who(olga))
	who := must(olga.WhoAmI(ctx, connect.NewRequest(&linktrialv1.WhoAmIRequest{}))).Msg
	require.True(t, who.ByProvider)
	require.Equal(t, "Lake login", who.ProviderName)
	require.Equal(t, h.clock.now().Add(12*time.Hour), who.Expires.AsTime())
	again := h.as()
	h.get(again, h.url+access.ProviderPath)
	require.Equal(t, "olga director", h.who(again))

	// There is no password, and none can be set.
	_, err := h.as().try("olga", "")
	fails(t, err, connect.CodeUnauthenticated, "the name or the password is wrong")
	_, err = h.login("anna").SetUserPassword(ctx, connect.NewRequest(&linktrialv1.SetUserPasswordRequest{Name: "olga", Password: password}))
	fails(t, err, connect.CodeFailedPrecondition, "has no password here")
	_, err = begin(olga, "")
	fails(t, err, connect.CodeFailedPrecondition, "logs in at the provider")

	// The role is what the provider says at each login, the name is that of the first.
	p.Says(person("olga-married", "s-1", "root", "field"))
	h.get(again, h.url+access.ProviderPath)
	require.Equal(t, "olga admin", h.who(again))
	require.Equal(t, "olga admin", h.who(olga))
	program := h.withToken(h.token(olga, "nightly", viewer).Text)

	// Without a role nobody is logged in, and what there was ends.
	p.Says(person("olga", "s-1", "everybody"))
	page = h.get(h.as(), h.url+access.ProviderPath)
	require.Equal(t, http.StatusForbidden, page.status)
	require.Contains(t, page.text, "Lake login knows you, and what it says of you gives no role here")
	fails(t, olga.ask(), connect.CodeUnauthenticated, "the session has ended")
	fails(t, again.ask(), connect.CodeUnauthenticated, "the session has ended")
	fails(t, program.ask(), connect.CodeUnauthenticated, "was revoked")

	// As that of every session: logging out ends it, and an admin's word.
	p.Says(person("olga", "s-1", "field"))
	h.get(olga, h.url+access.ProviderPath)
	_, err = olga.Logout(ctx, connect.NewRequest(&linktrialv1.LogoutRequest{}))
	require.NoError(t, err)
	fails(t, olga.ask(), connect.CodeUnauthenticated, "log in first")
	h.get(olga, h.url+access.ProviderPath)
	anna := h.login("anna")
	_, err = anna.SetUserDisabled(ctx, connect.NewRequest(&linktrialv1.SetUserDisabledRequest{Name: "olga", Disabled: true}))
	require.NoError(t, err)
	fails(t, olga.ask(), connect.CodeUnauthenticated, "the session has ended")
	page = h.get(olga, h.url+access.ProviderPath)
	require.Contains(t, page.text, "The account of olga is disabled")
	require.Error(t, olga.ask())

	var lines []string
	for _, e := range h.audit(anna, &linktrialv1.ListAuditRequest{Action: "ProviderLogin"}).Entries {
		lines = append(lines, line(e))
	}
	require.Contains(t, lines, "olga|provider Lake login|AccessService.ProviderLogin|subject=s-1|done|")
	require.Contains(t, lines, "olga|provider Lake login|AccessService.ProviderLogin|subject=s-1|refused|the account of olga is disabled: an admin can enable it")
}

// Nobody becomes somebody else by a name at the provider.
func TestProviderNames(t *testing.T) {
	h, p := withProvider(t)
	for _, c := range []struct{ name, subject, want string }{
		{"anna", "s-9", "there is a user anna here already"},
		{"ANNA", "s-9", "there is a user anna here already"},
		{"anna smith", "s-9", "can be no name here"},
		{"", "s-9", "can be no name here"},
		{"<b>x", "s-9", "&lt;b&gt;x"},
		{strings.Repeat("x", 33), "s-9", "can be no name here"},
	} {
		p.Says(person(c.name, c.subject, "root"))
		b := h.as()
		page := h.get(b, h.url+access.ProviderPath)
		require.Equal(t, http.StatusForbidden, page.status)
		require.Contains(t, strings.ToLower(page.text), c.want)
		require.Empty(t, h.who(b))
	}
	p.Says(person("olga", "s-1", "guests"))
	h.get(h.as(), h.url+access.ProviderPath)
	p.Says(person("olga", "s-2", "root"))
	b := h.as()
	require.Contains(t, h.get(b, h.url+access.ProviderPath).text, "There is a user olga here already")
	require.Empty(t, h.who(b))
	for name, groups := range map[string]any{"text": "field", "number": 7, "nothing": nil, "object": map[string]any{"field": true}, "list": []any{1, "guests"}} {
		p.Says(map[string]any{"sub": "s-" + name, "preferred_username": "p-" + name, "groups": groups})
		b := h.as()
		h.get(b, h.url+access.ProviderPath)
		require.Equal(t, map[string]string{"text": "p-text director", "list": "p-list viewer"}[name], h.who(b), name)
	}
}

// What a wrong, false or attacked provider sends logs nobody in.
func TestProviderAttacks(t *testing.T) {
	h, p := withProvider(t)
	right := person("olga", "s-1", "root")
	other := providertest.NewKey(t)
	for name, c := range map[string]struct {
		wrong func(header, claims map[string]any)
		want  string
	}{
		"nonce of another login": {func(_, c map[string]any) { c["nonce"] = "x" }, "made for another login"},
		"no nonce":               {func(_, c map[string]any) { delete(c, "nonce") }, "made for another login"},
		"another audience":       {func(_, c map[string]any) { c["aud"] = "another-client" }, "audience"},
		"no audience":            {func(_, c map[string]any) { delete(c, "aud") }, "audience"},
		"two audiences":          {func(_, c map[string]any) { c["aud"] = []string{"linktrial", "another"} }, "another client"},
		"another party":          {func(_, c map[string]any) { c["azp"] = "another" }, "another client"},
		"another issuer":         {func(_, c map[string]any) { c["iss"] = "https://login.example" }, "different provider"},
		"expired":                {func(_, c map[string]any) { c["exp"] = h.clock.now().Add(-time.Second).Unix() }, "expired"},
		"no expiry":              {func(_, c map[string]any) { delete(c, "exp") }, "expired"},
		"nobody":                 {func(_, c map[string]any) { c["sub"] = "" }, "names nobody"},
		"alg none":               {func(h, _ map[string]any) { h["alg"] = "none" }, "refused"},
		"alg of a shared secret": {func(h, _ map[string]any) { h["alg"] = "HS256" }, "refused"},
		"another key":            {nil, "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			p.Says(right)
			p.Wrong(c.wrong)
			p.SignWith(nil)
			if c.wrong == nil {
				p.SignWith(other)
			}
			b := h.as()
			page := h.get(b, h.url+access.ProviderPath)
			require.Equal(t, http.StatusForbidden, page.status, page.text)
			require.Contains(t, page.text, c.want)
			require.Empty(t, h.who(b))
		})
	}
	p.SignWith(nil)
	p.Wrong(nil)
	p.Says(right)

	change := func(u *url.URL, key, value string) string {
		q := u.Query()
		q.Set(key, value)
		return h.url + access.ProviderReturnPath + "?" + q.Encode()
	}
	refused := func(b *caller, address, want string) {
		t.Helper()
		page := h.get(b, address)
		require.GreaterOrEqual(t, page.status, 400)
		require.Contains(t, page.text, want)
		require.Empty(t, h.who(b))
	}
	// The state of another login, none, or twice; a code of another login; another issuer.
	mine, theirs := h.as(), h.as()
	back, other2 := h.beginAtProvider(mine), h.beginAtProvider(theirs)
	refused(mine, change(back, "state", other2.Query().Get("state")), "was not begun in this browser")
	back = h.beginAtProvider(mine)
	refused(mine, change(back, "state", ""), "was not begun in this browser")
	back = h.beginAtProvider(mine)
	refused(mine, back.String()+"&state="+url.QueryEscape(back.Query().Get("state")), "was not begun in this browser")
	back = h.beginAtProvider(mine)
	refused(mine, change(back, "code", other2.Query().Get("code")), "did not take the code")
	back = h.beginAtProvider(mine)
	refused(mine, change(back, "iss", "https://login.example"), "The answer is of the issuer")
	back = h.beginAtProvider(mine)
	refused(mine, change(back, "code", ""), "without a code")
	back = h.beginAtProvider(mine)
	refused(mine, change(back, "error", "access_denied"), "logged nobody in: access_denied")

	// The whole answer in a browser that did not begin the login: somebody wants a person to
	// be logged in as another one.
	back = h.beginAtProvider(mine)
	refused(h.as(), back.String(), "was not begun in this browser")
	// A browser that sends a cookie of its own making.
	refused(h.as("Cookie", "linktrial-attempt="+base64.RawURLEncoding.EncodeToString([]byte("x"))), back.String(), "was not begun in this browser")
	// Too late.
	h.clock.step(11 * time.Minute)
	refused(mine, back.String(), "longer than ten minutes")

	// The same answer twice: with the browser's cookie, as somebody has it who copied both.
	back = h.beginAtProvider(mine)
	at, err := url.Parse(h.url)
	require.NoError(t, err)
	var cookies []string
	for _, c := range mine.http.Jar.Cookies(at) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	require.Equal(t, http.StatusOK, h.get(mine, back.String()).status)
	require.Equal(t, "olga admin", h.who(mine))
	refused(h.as("Cookie", strings.Join(cookies, "; ")), back.String(), "has come back already")
	// The provider itself takes a code once, also with the right proof.
	back = h.beginAtProvider(mine)
	used := back.Query().Get("code")
	require.Equal(t, http.StatusOK, h.get(mine, back.String()).status)
	_, err = mine.Logout(t.Context(), connect.NewRequest(&linktrialv1.LogoutRequest{}))
	require.NoError(t, err)
	back = h.beginAtProvider(mine)
	refused(mine, change(back, "code", used), "did not take the code")
}

// The browser comes back to the orchestrator's own address, and goes on to its own pages.
func TestProviderRedirects(t *testing.T) {
	h, p := withProvider(t)
	p.Says(person("olga", "s-1", "root"))
	ask := func(host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+access.ProviderPath, nil)
		require.NoError(t, err)
		req.Host = host
		res, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, res.Header.Get("Location") + string(b)
	}
	// Names are those of the orchestrator before a request comes here (admission.Hosts).
	status, text := ask("192.0.2.1:7700")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "not the one that it came to")
	status, text = ask("trial.example")
	require.Equal(t, http.StatusFound, status)
	require.Contains(t, text, "redirect_uri="+url.QueryEscape("http://trial.example"+access.ProviderReturnPath))
	require.Contains(t, text, "code_challenge_method=S256")
	require.Contains(t, text, "nonce=")
	// The provider sends nobody to an address that it does not know.
	res := h.get(h.as(), strings.SplitN(text, "<", 2)[0])
	require.Equal(t, http.StatusBadRequest, res.status)

	for _, back := range []string{"//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/login?x", "/a\nb", "/" + strings.Repeat("x", 3000)} {
		page := h.get(h.as(), h.url+access.ProviderPath+"?back="+url.QueryEscape(back))
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.text, `content="0;url=/"`, back)
		require.NotContains(t, page.text, "evil.example")
	}
}

// Without the provider, as in the field without internet, local accounts log in as ever.
func TestProviderAway(t *testing.T) {
	h, p := withProvider(t)
	p.Says(person("olga", "s-1", "root"))
	p.Away(true)
	page := h.get(h.as(), h.url+access.ProviderPath)
	require.Equal(t, http.StatusBadGateway, page.status)
	require.Contains(t, page.text, "Lake login does not answer: 503 Service Unavailable.")
	who := must(h.as().WhoAmI(t.Context(), connect.NewRequest(&linktrialv1.WhoAmIRequest{}))).Msg
	require.Equal(t, "Lake login", who.ProviderName)
	require.Equal(t, "503 Service Unavailable", who.ProviderProblem)
	require.NoError(t, h.login("vera").ask())
	p.Away(false)
	h.get(h.as(), h.url+access.ProviderPath)
	who = must(h.as().WhoAmI(t.Context(), connect.NewRequest(&linktrialv1.WhoAmIRequest{}))).Msg
	require.Empty(t, who.ProviderProblem)

	// What is shown to everybody does not name where the provider is.
	gone, err := provider.New(provider.Config{Issuer: "http://127.0.0.1:1", ClientID: "x", Name: "Lake login"})
	require.NoError(t, err)
	_, err = gone.Begin(t.Context(), h.url, "/")
	require.EqualError(t, err, "Lake login does not answer: no connection")
	require.Equal(t, "no connection", gone.Problem())

	_, err = provider.New(provider.Config{Issuer: "http://login.example", ClientID: "x"})
	require.ErrorContains(t, err, "begins with https://")
	_, err = provider.New(provider.Config{Issuer: "login", ClientID: "x"})
	require.ErrorContains(t, err, "expected a URL")
	_, err = provider.New(provider.Config{Issuer: "https://login.example"})
	require.ErrorContains(t, err, "no client id")
}

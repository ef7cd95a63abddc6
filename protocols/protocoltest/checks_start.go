package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/internal/driverdigest"
	"linktrial/protocols/contract"
)

func checkManifest(_ context.Context, s *suite) (string, error) {
	if s.target.Manifest == nil {
		m, err := readManifest(s.target.Dir)
		if err != nil {
			return "", err
		}
		s.target.Manifest = m
	}
	if err := inOwnFolder(s.target); err != nil {
		return "", err
	}
	cmd, err := resolve(s.target)
	if err != nil {
		return "", err
	}
	s.command = cmd
	if err := filesListed(s.target); err != nil {
		return "", err
	}
	defaults := map[string]any{}
	for _, o := range s.target.Manifest.Options {
		if o.Default != nil {
			defaults[o.Name] = o.Default
		}
	}
	if _, err := s.target.Manifest.CheckOptions(defaults); err != nil {
		return "", fmt.Errorf("the manifest's own defaults: %w", err)
	}
	return fmt.Sprintf("%s %s, %d options", s.target.Manifest.Name, s.target.Manifest.Version, len(s.target.Manifest.Options)), nil
}

// filesListed checks that a manifest's list of files has those that its command
// names: the script that an interpreter is started with.
func filesListed(t Target) error {
	if t.Root != "" || len(t.Manifest.Files) == 0 {
		return nil
	}
	if _, err := driverdigest.OfFolder(t.Dir); err != nil {
		return err
	}
	for _, word := range t.Manifest.Command {
		if _, err := os.Lstat(filepath.Join(t.Dir, word)); err == nil && filepath.IsLocal(word) && !driverdigest.Listed(t.Manifest.Files, word) {
			return fmt.Errorf("the manifest's command names the file %s of its folder, and its list files does not: the driver's digest would not cover it", word)
		}
	}
	return nil
}

// inOwnFolder checks the name of the driver's folder; an image has none.
func inOwnFolder(t Target) error {
	if t.Root != "" {
		return nil
	}
	dir, err := filepath.Abs(t.Dir)
	if err != nil {
		return err
	}
	if name := filepath.Base(dir); name != t.Manifest.Name {
		return fmt.Errorf("the manifest's name is %s, its folder is called %s: rename one of them, nodes look for a driver in the folder of its name", t.Manifest.Name, name)
	}
	return nil
}

func checkQuery(ctx context.Context, s *suite) (string, error) {
	p, err := s.begin(s.params(contract.RoleQuery))
	if err != nil {
		return "", err
	}
	p.name = "query"
	if err := p.wait(ctx, s.o.waits.query); err != nil {
		return "", err
	}
	switch p.code {
	case contract.ExitUnsupported:
		e := p.find(func(e *seen) bool { return e.Event.Event == contract.KindError && e.Code == contract.CodeUnsupported })
		if e == nil || e.Message == "" {
			return "", fmt.Errorf("exit code 127 without an error event that says why%s", p.tail())
		}
		s.unsupported = e.Message
		return "", skip("the driver cannot run here: %s", e.Message)
	case contract.ExitOK:
		e := p.find(kind(contract.KindReady))
		if e == nil {
			return "", errors.New("exit code 0 without a ready event")
		}
		detail := e.Info.Implementation
		s.instead = map[string]any{}
		for _, o := range s.target.Manifest.Options {
			if !o.FromNode {
				continue
			}
			there := e.Info.Choices[o.Name]
			if len(there) == 0 {
				return "", fmt.Errorf("option %s has its choices from the query, which lists none", o.Name)
			}
			if def, ok := o.Default.(string); ok && !slices.Contains(there, def) {
				s.instead[o.Name] = there[0]
				detail += fmt.Sprintf("; %s is not to be had here, the checks use %s %s", def, o.Name, there[0])
			}
		}
		return detail, nil
	}
	return "", fmt.Errorf("the query ended with %s%s%s", p.ending(), p.lastError(), p.tail())
}

// paramsOf are complete ones of a role, for what is refused before it begins.
func (s *suite) paramsOf(role contract.Role) *contract.Parameters {
	switch role {
	case contract.RoleClient:
		return s.clientParams(s.port(), 1)
	case contract.RoleRelay:
		address, _ := s.net.address(contract.RoleServer)
		return s.relayParams(contract.RoleClient, contract.Endpoint{Address: address, Port: s.port()})
	}
	return s.serverParams()
}

// refused runs a document that must be refused.
func (s *suite) refused(ctx context.Context, what string, role contract.Role, document string, codes ...contract.Code) error {
	p, err := s.start(role, []byte(document))
	if err != nil {
		return err
	}
	if _, err := s.failure(ctx, p, s.o.waits.ready, codes...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func checkBadParameters(ctx context.Context, s *suite) (string, error) {
	server := fmt.Sprintf(`"local":{"address":%q,"port":%d},"options":{},"limits":{"connect_ms":1000,"transfer_ms":1000}`, s.serverParams().Local.Address, s.port())
	client := strings.ReplaceAll(server, "local", "remote") + `,"transfer":{"id":"%s","size_bytes":%s}`
	const id = "000102030405060708090a0b0c0d0e0f"
	cases := []struct{ what, document string }{
		{"nothing", ""},
		{"half a document", `{"contract":2,"role":"query"`},
		{"not an object", `[1]`},
		{"another version", `{"contract":1,"role":"query"}`},
		{"no version", `{"role":"query"}`},
		{"an unknown role", `{"contract":2,"role":"router"}`},
		{"a role that is a number", `{"contract":2,"role":1}`},
		{"a server without an address", `{"contract":2,"role":"server","options":{},"limits":{}}`},
		{"an address with a zone", `{"contract":2,"role":"server","local":{"address":"fe80::1%lo","port":7001},"options":{},"limits":{}}`},
		{"addresses of two families", `{"contract":2,"role":"client","local":{"address":"::1"},` + strings.Replace(fmt.Sprintf(client, id, "1"), s.serverParams().Local.Address, "127.0.0.1", 1) + `}`},
		{"a port of 65536", `{"contract":2,"role":"server","local":{"address":"127.0.0.1","port":65536},"options":{},"limits":{}}`},
		{"a client without a transfer", `{"contract":2,"role":"client",` + strings.ReplaceAll(server, "local", "remote") + `}`},
		{"a transfer id in capitals", `{"contract":2,"role":"client",` + fmt.Sprintf(client, strings.ToUpper(id), "1") + `}`},
		{"a negative size", `{"contract":2,"role":"client",` + fmt.Sprintf(client, id, "-1") + `}`},
		{"a relay without a remote address", `{"contract":2,"role":"relay",` + server + `}`},
		{"a relay without a port", `{"contract":2,"role":"relay",` + server + `,"remote":{"address":"127.0.0.1"}}`},
		{"options that are a list", `{"contract":2,"role":"server",` + strings.ReplaceAll(server, `"options":{}`, `"options":[1]`) + `}`},
	}
	for _, role := range []contract.Role{contract.RoleClient, contract.RoleServer, contract.RoleRelay} {
		if s.target.Manifest.Plays(role) {
			continue
		}
		p, err := json.Marshal(s.paramsOf(role))
		if err != nil {
			return "", err
		}
		cases = append(cases, struct{ what, document string }{"role " + string(role) + ", which the manifest does not have", string(p)})
	}
	for _, c := range cases {
		if err := s.refused(ctx, c.what, contract.RoleQuery, c.document, contract.CodeBadParameters); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d documents refused", len(cases)), nil
}

func checkUnknownOption(ctx context.Context, s *suite) (string, error) {
	type bad struct {
		what  string
		name  string
		value any
	}
	cases := []bad{{"an undeclared option", "no_such_option", 1}}
	for _, o := range s.target.Manifest.Options {
		cases = append(cases, bad{"option " + o.Name + " as a list", o.Name, []int{1}})
		if o.Type == contract.TypeString {
			cases = append(cases, bad{"option " + o.Name + " as a number", o.Name, 1})
		} else {
			cases = append(cases, bad{"option " + o.Name + " as text", o.Name, "x"})
		}
		if len(o.Choices) > 0 {
			cases = append(cases, bad{"option " + o.Name + " outside its choices", o.Name, "no-such-choice"})
		}
		if o.Max != nil {
			cases = append(cases, bad{"option " + o.Name + " above its bound", o.Name, *o.Max*2 + 1})
		}
		if o.Min != nil {
			cases = append(cases, bad{"option " + o.Name + " below its bound", o.Name, *o.Min - 1})
		}
	}
	for _, role := range s.target.Manifest.AllRoles() {
		for _, c := range cases {
			p := s.paramsOf(role)
			p.Options[c.name] = c.value
			d, err := s.begin(p)
			if err != nil {
				return "", err
			}
			if _, err := s.failure(ctx, d, s.o.waits.ready, contract.CodeBadParameters); err != nil {
				return "", fmt.Errorf("%s: %w", c.what, err)
			}
		}
	}
	return fmt.Sprintf("%d values refused by every role", len(cases)), nil
}

func checkUnsupported(ctx context.Context, s *suite) (string, error) {
	if s.unsupported != "" {
		return "this node: " + s.unsupported, nil
	}
	for _, o := range s.target.Manifest.Options {
		if !o.FromNode {
			continue
		}
		for _, role := range s.target.Manifest.AllRoles() {
			p := s.paramsOf(role)
			p.Options[o.Name] = "no-such-choice"
			d, err := s.begin(p)
			if err != nil {
				return "", err
			}
			if _, err := s.failure(ctx, d, s.o.waits.ready, contract.CodeUnsupported); err != nil {
				return "", fmt.Errorf("option %s with a value that no query lists: %w", o.Name, err)
			}
		}
		return "option " + o.Name + " with a value that no query lists", nil
	}
	return "", skip("the driver runs here, and has no option whose choices depend on the node")
}

func checkPortTaken(ctx context.Context, s *suite) (string, error) {
	return "", s.portTaken(ctx, func(srv *proc, port int) error {
		_, err := s.transfer(ctx, srv, port, little())
		return err
	})
}

// portTaken starts a second server on a port, and then uses the first.
func (s *suite) portTaken(ctx context.Context, use func(srv *proc, port int) error) error {
	p := s.serverParams()
	first, err := s.serve(ctx, p)
	if err != nil {
		return err
	}
	second, err := s.begin(p)
	if err != nil {
		return err
	}
	if _, err := s.failure(ctx, second, s.o.waits.ready, contract.CodeListenFailed); err != nil {
		return fmt.Errorf("second server: %w", err)
	}
	if err := use(first, p.Local.Port); err != nil {
		return fmt.Errorf("first server, after the second failed: %w", err)
	}
	return nil
}

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"linktrial/protocols/contract"
)

// TestStop: a stop in the middle of a transfer is answered by both ends.
func TestStop(t *testing.T) {
	for _, role := range []contract.Role{contract.RoleServer, contract.RoleClient} {
		t.Run(string(role), func(t *testing.T) {
			sctx, stopServer := context.WithCancel(t.Context())
			cctx, stopClient := context.WithCancel(t.Context())
			defer stopClient()
			defer stopServer()
			l, port := open(t)
			so, sc := (&stage{listener: l}).begin(t, sctx, parameters(contract.RoleServer, port, 0, ""))
			so.await(contract.KindReady, "")
			co, cc := (&stage{}).begin(t, cctx, parameters(contract.RoleClient, port, contract.MaxSize, id(1)))
			co.await(contract.KindConnected, id(1))
			so.await(contract.KindConnected, id(1))
			want := map[contract.Role]contract.Code{contract.RoleServer: contract.CodeReset, contract.RoleClient: contract.CodeReset}
			want[role] = contract.CodeAborted
			if role == contract.RoleServer {
				stopServer()
			} else {
				stopClient()
			}
			if e := co.await(contract.KindError, id(1)); e.Code != want[contract.RoleClient] {
				t.Errorf("client: %+v", e)
			}
			if e := so.await(contract.KindError, id(1)); e.Code != want[contract.RoleServer] {
				t.Errorf("server: %+v", e)
			}
			stopServer()
			if x := exit(t, cc); x != contract.ExitFailed {
				t.Errorf("client: exit code %d", x)
			}
			if x := exit(t, sc); x != contract.ExitOK {
				t.Errorf("server: exit code %d", x)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	good, err := json.Marshal(parameters(contract.RoleServer, 7001, 0, ""))
	if err != nil {
		t.Fatal(err)
	}
	with := func(options string) string {
		return strings.Replace(string(good), `"options":null`, `"options":`+options, 1)
	}
	for _, c := range []struct {
		name, document string
		query          error
		exit           int
		code           contract.Code
	}{
		{"nothing", "", nil, 1, contract.CodeBadParameters},
		{"too much", strings.Repeat(" ", maxDocument+1), nil, 1, contract.CodeBadParameters},
		{"unknown option", with(`{"x":1}`), nil, 1, contract.CodeBadParameters},
		{"option out of range", with(`{"level":10}`), nil, 1, contract.CodeBadParameters},
		{"unsupported", string(good), Unsupported("no such thing"), 127, contract.CodeUnsupported},
		{"unsupported without a code", string(good), errors.New("no such thing"), 127, contract.CodeUnsupported},
		{"port taken", string(good), nil, 1, contract.CodeListenFailed},
	} {
		out := newOutput(t)
		x := Run([]byte(testManifest), (&stage{query: c.query}).driver(), strings.NewReader(c.document), out, io.Discard)
		if x != c.exit || len(out.events) != 1 || out.events[0].Code != c.code || out.events[0].Message == "" {
			t.Errorf("%s: exit code %d, %+v", c.name, x, out.events)
		}
	}
	out := newOutput(t)
	bounded := parameters(contract.RoleClient, 7001, 1, id(1))
	bounded.Transfer.DurationMS = 1
	doc, err := json.Marshal(bounded)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(testManifest, "features: [duration]\n", "", 1)
	if x := Run([]byte(without), (&stage{}).driver(), bytes.NewReader(doc), out, io.Discard); x != contract.ExitUnsupported || out.events[0].Code != contract.CodeUnsupported {
		t.Errorf("a duration that the manifest does not have: exit code %d, %+v", x, out.events)
	}
	out = newOutput(t)
	if x := Run([]byte("name: ["), Driver{}, strings.NewReader(""), out, io.Discard); x != 1 || out.events[0].Code != contract.CodeInternal {
		t.Errorf("a broken manifest: exit code %d, %+v", x, out.events)
	}
}

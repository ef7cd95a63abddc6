package access_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"linktrial/orchestrator/security/access"
)

// Where nobody logs in and the orchestrator runs as root, another user of the machine
// changes nothing, also not as a node, and sees what everybody sees.
func TestLocalUsers(t *testing.T) {
	for name, x := range map[string]struct {
		users   []int
		refused bool
	}{
		"not root":          {nil, false},
		"the caller's user": {[]int{4294967, os.Getuid()}, false},
		"another user":      {[]int{4294967}, true},
	} {
		for _, network := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
			t.Run(name+" "+network, func(t *testing.T) {
				a, err := access.New(t.Context(), access.Config{LocalUsers: x.users})
				require.NoError(t, err)
				mux := http.NewServeMux()
				mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
				s := httptest.NewUnstartedServer(a.Guard(mux))
				s.Listener.Close()
				if s.Listener, err = net.Listen("tcp", network); err != nil {
					t.Skip("this machine has no IPv6")
				}
				s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return access.WithConn(ctx) }
				s.Start()
				defer s.Close()
				url := s.URL
				if network == "[::]:0" { // a caller over IPv4 on a socket of both
					_, port, err := net.SplitHostPort(s.Listener.Addr().String())
					require.NoError(t, err)
					url = "http://127.0.0.1:" + port
				}
				for procedure, guarded := range map[string]bool{
					"LabService/LabUp": true, "LabService/LabDown": true, "LabService/SetControlLink": true, "CatalogService/CheckProtocol": true, "CatalogService/SaveTopology": true,
					"OperatorService/StartPlan": true, "OperatorService/AbortCampaign": true, "ControlService/ExcludeAttempt": true, "ControlService/IncludeAttempt": true, "FleetService/StartPreflight": true, "FleetService/SetRadio": true, "FleetService/ProposeRadio": false, "LibraryService/Schedule": true,
					"TrustService/ApproveDriver": true, "TrustService/RotateSigningKey": true, "AgentService/Register": true, "AgentService/Deliver": true, "OperatorService/Forgotten": true,
					"LabService/LabStatus": false, "OperatorService/CheckPlan": false, "OperatorService/ListRuns": false, "OperatorService/Watch": false, "AccessService/WhoAmI": false, "AccessService/Login": false,
				} {
					res, err := s.Client().Post(url+"/linktrial.v1."+procedure, "application/json", strings.NewReader("{}"))
					require.NoError(t, err)
					require.NoError(t, res.Body.Close())
					want := http.StatusTeapot
					if guarded && x.refused {
						want = http.StatusForbidden
					}
					require.Equal(t, want, res.StatusCode, procedure)
				}
			})
		}
	}
}

// Every procedure is either one that changes something or one that only looks.
func TestWhatChangesSomething(t *testing.T) {
	looks := 0
	everyProcedure(func(service, method string, _ protoreflect.MethodDescriptor) {
		for _, word := range []string{"Get", "List", "Check", "Explain", "Preview", "Propose", "Watch", "Results", "Summarize", "Sweep", "Series", "Links", "LabStatus", "WhoAmI", "Login", "ExportAudit",
			"BeginJoin", "FinishJoin"} { // which a code guards, and there is none without TLS
			if strings.HasPrefix(method, word) && method != "CheckProtocol" { // it runs the driver
				require.False(t, access.RuleOf(service, method).Changes, "%s.%s", service, method)
				looks++
				return
			}
		}
		require.True(t, access.RuleOf(service, method).Changes, "%s.%s", service, method)
	})
	require.Greater(t, looks, 20)
}

// Where nobody logs in, a user of the machine who neither runs the orchestrator nor is root
// may work with it and decides nothing of what nodes trust: not on the loopback of an
// orchestrator without rights, and not with --open on its own machine.
func TestLocalAdmins(t *testing.T) {
	require.Contains(t, access.LocalAdmins(), 0)
	require.Contains(t, access.LocalAdmins(), os.Geteuid(), "who runs it has its keys anyway")
	for name, x := range map[string]struct {
		admins  []int
		refused bool
	}{
		"the orchestrator's user": {[]int{4294967, os.Getuid()}, false},
		"another user":            {[]int{4294967}, true},
	} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, open %t", name, open), func(t *testing.T) {
				a, err := access.New(t.Context(), access.Config{LocalAdmins: x.admins, OpenToNetwork: open})
				require.NoError(t, err)
				mux := http.NewServeMux()
				mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
				s := httptest.NewUnstartedServer(a.Guard(mux))
				s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return access.WithConn(ctx) }
				s.Start()
				defer s.Close()
				for procedure, admins := range map[string]bool{
					"TrustService/ApproveDriver": true, "TrustService/RotateSigningKey": true, "NodeService/CreateNodeToken": true, "NodeService/RevokeNode": true, "OperatorService/Forgotten": true,
					"OperatorService/StartPlan": false, "OperatorService/ListRuns": false, "LibraryService/SavePlan": false, "AgentService/Register": false, "TrustService/ListSigningKeys": false,
				} {
					res, err := s.Client().Post(s.URL+"/linktrial.v1."+procedure, "application/json", strings.NewReader("{}"))
					require.NoError(t, err)
					text, err := io.ReadAll(res.Body)
					require.NoError(t, err)
					require.NoError(t, res.Body.Close())
					if admins && x.refused {
						require.Equal(t, http.StatusForbidden, res.StatusCode, procedure)
						require.Contains(t, string(text), fmt.Sprintf("the call comes from user %d of this machine", os.Getuid()), procedure)
					} else {
						require.Equal(t, http.StatusTeapot, res.StatusCode, procedure)
					}
				}
			})
		}
	}
}

func TestUsersWhoStartedAsRoot(t *testing.T) {
	for name, x := range map[string]struct {
		sudo, login string
		want        []int
	}{
		"by root or a service": {"", "4294967295", []int{0}},
		"without audit":        {"", "", []int{0}},
		"sudo":                 {"1000", "1000", []int{0, 1000}},
		"su":                   {"", "1000", []int{0, 1000}},
		"sudo in a container":  {"1000", "4294967295", []int{0, 1000}},
		"sudo of root":         {"0", "0", []int{0}},
		"sudo within su":       {"1001", "1000", []int{0, 1001, 1000}},
		"no number":            {"anna", "-1", []int{0}},
	} {
		require.Equal(t, x.want, access.LocalUsersOf(x.sudo, x.login), name)
	}
}

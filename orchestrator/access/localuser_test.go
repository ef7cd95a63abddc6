package access_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/access"
)

// Where nobody logs in and the orchestrator runs as root, another user of the machine
// has no lab brought up and no driver checked, which would run as root; all else is as
// for everybody.
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
				s.Start()
				defer s.Close()
				url := s.URL
				if network == "[::]:0" { // a caller over IPv4 on a socket of both
					_, port, err := net.SplitHostPort(s.Listener.Addr().String())
					require.NoError(t, err)
					url = "http://127.0.0.1:" + port
				}
				for procedure, guarded := range map[string]bool{"LabService/LabUp": true, "LabService/LabDown": true, "LabService/SetControlLink": true, "CatalogService/CheckProtocol": true, "LabService/LabStatus": false, "OperatorService/StartPlan": false} {
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

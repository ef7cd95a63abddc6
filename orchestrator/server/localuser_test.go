package server_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/orchestrator/store/storetest"
)

// An orchestrator of root without logins lets another user of the machine look, and change
// nothing, neither as a person nor as a node; root goes on as ever.
func TestOtherUsersOfTheMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: calls as another user")
	}
	s := startOn(t, storetest.URL(t))
	t.Cleanup(func() { stop(t, s) })
	const other = 65534
	// A socket belongs to the user that its thread has for files.
	as := func(uid int) *http.Client {
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			runtime.LockOSThread() // what is changed is the thread's
			if err := unix.Setfsuid(uid); err != nil {
				return nil, err
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err := unix.Setfsuid(0); err != nil {
				return nil, err
			}
			runtime.UnlockOSThread()
			return conn, err
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	for uid, refused := range map[int]bool{0: false, other: true} {
		operator, agent := linktrialv1connect.NewOperatorServiceClient(as(uid), "http://"+s.Addr()), linktrialv1connect.NewAgentServiceClient(as(uid), "http://"+s.Addr())
		trust := linktrialv1connect.NewTrustServiceClient(as(uid), "http://"+s.Addr())
		if _, err := operator.ListRuns(t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{})); err != nil {
			t.Errorf("user %d looks at runs: %v", uid, err)
		}
		for what, call := range map[string]func() error{
			"StartPlan": func() error {
				_, err := operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "p.yaml", Text: []byte("name: p\n")}))
				return err
			},
			"RotateSigningKey": func() error {
				_, err := trust.RotateSigningKey(t.Context(), connect.NewRequest(&linktrialv1.RotateSigningKeyRequest{}))
				return err
			},
			"Register": func() error {
				_, err := agent.Register(t.Context(), connect.NewRequest(&linktrialv1.RegisterRequest{Name: "client"}))
				return err
			},
		} {
			err := call()
			if got := connect.CodeOf(err) == connect.CodePermissionDenied; err != nil && got != refused || err == nil && refused {
				t.Errorf("%s by user %d: %v", what, uid, err)
			}
		}
	}
}

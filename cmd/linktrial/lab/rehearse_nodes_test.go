package lab

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/radio"
	"linktrial/lab/netns"
)

// withoutDatabase is an orchestrator whose database does not answer.
type withoutDatabase struct {
	linktrialv1connect.OperatorServiceClient
	calls int
}

func (w *withoutDatabase) ListNodes(context.Context, *connect.Request[linktrialv1.ListNodesRequest]) (*connect.Response[linktrialv1.ListNodesResponse], error) {
	w.calls++
	return nil, connect.NewError(connect.CodeUnavailable, errors.New("the database does not answer"))
}

// A rehearsal that waits for its nodes while the database does not answer asked about 45
// times a second.
func TestWaitingForNodesIsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &withoutDatabase{}
		r := &rehearsal{client: c, lab: &netns.Lab{State: netns.State{Nodes: []netns.NodeState{{Role: radio.RoleClient}}}}}
		waiting := terminal.NewWaiting(io.Discard)
		require.ErrorContains(t, r.waitForNodes(t.Context(), waiting), "agent client does not connect")
		waiting.Stop()
		require.LessOrEqual(t, c.calls, 130, "in a minute")
	})
}

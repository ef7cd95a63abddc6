package machines

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
)

// An assignment names the node and the key of the certificate that it called with, so
// that another machine refuses it; a node that renews its certificate accepts what
// arrives on connections from before as well as after.
func TestAssignmentsNameTheMachine(t *testing.T) {
	o := serve(t, nil)
	_, id := enrolled(t, o, "client")
	_, other := enrolled(t, o, "server")
	polled := func(c linktrialv1connect.AgentServiceClient) *linktrialv1.Assignment {
		t.Helper()
		req := poll("client", 0, 0)
		req.Msg.Challenge = []byte("of this call")
		res, err := c.Poll(t.Context(), req)
		require.NoError(t, err)
		require.Len(t, res.Msg.Assignments, 1, "an answer without work says so")
		s := res.Msg.Assignments[0]
		as := new(linktrialv1.Assignment)
		require.NoError(t, proto.Unmarshal(s.Assignment, as))
		require.Equal(t, "client", as.Node)
		require.Equal(t, "of this call", string(as.Challenge))
		require.EqualValues(t, 1, as.Total)
		require.Empty(t, as.RunId)
		require.Greater(t, as.ExpiresUnixMs, as.IssuedUnixMs)
		require.Len(t, s.Signature, 64)
		return as
	}
	before := caller(t, o, id)
	_, err := before.Register(t.Context(), registration("client"))
	require.NoError(t, err)
	first := polled(before)
	require.True(t, id.HasKey(first.NodeKey))
	require.False(t, other.HasKey(first.NodeKey), "another machine has another key")
	require.False(t, id.HasKey(nil))

	s, err := session.New(session.Config{URL: o.URL(), Name: "client", Version: "v-agent", Identity: id, Incarnation: "one"})
	require.NoError(t, err)
	defer s.Close()
	o.clock.move(21 * day)
	require.NoError(t, s.Renew(t.Context()))
	require.True(t, id.HasKey(polled(before).NodeKey), "the connection shows the certificate that it began with")
	after := polled(caller(t, o, id))
	require.True(t, id.HasKey(after.NodeKey))
	require.NotEqual(t, first.NodeKey, after.NodeKey)
	_, again := enrolled(t, o, "client") // another machine, under the same name
	require.False(t, again.HasKey(after.NodeKey))
}

package server_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/radio"
	"linktrial/orchestrator/liveness/livenesstest"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// A node whose cable is pulled stops counting as connected long before its poll
// would end. When the cable is back, the same connection tells it to poll again.
func TestPulledCable(t *testing.T) {
	t.Parallel()
	cable := livenesstest.New(t)
	url, cat := storetest.URL(t), testCatalog(t)
	var s *server.Server
	require.NoError(t, cable.Here(func() (err error) {
		s, err = server.Start(t.Context(), server.Config{Listen: livenesstest.Address + ":0", Open: true, DatabaseURL: url, Catalog: cat, Version: "test"})
		return err
	}))
	t.Cleanup(func() { stop(t, s) })
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	over := func(side func(func() error) error) *clients {
		h := &http.Client{Transport: &http.Transport{Protocols: &p, DialContext: func(_ context.Context, network, address string) (c net.Conn, err error) {
			err = side(func() (err error) { c, err = net.DialTimeout(network, address, 10*time.Second); return err })
			return c, err
		}}}
		t.Cleanup(h.CloseIdleConnections)
		base := "http://" + s.Addr()
		return &clients{linktrialv1connect.NewAgentServiceClient(h, base, connect.WithGRPC()), linktrialv1connect.NewOperatorServiceClient(h, base, connect.WithGRPC()), h, base}
	}
	people, node := over(cable.Here), over(cable.There)
	require.NoError(t, newPlayer(node, radio.RoleRelay).register(t.Context()))
	first, err := node.agent.Poll(t.Context(), connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "relay", Incarnation: "first"}))
	require.NoError(t, err)
	polled := make(chan error, 1)
	go func() {
		_, err := node.agent.Poll(t.Context(), connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "relay", Incarnation: "first", Revision: first.Msg.Revision, WaitMs: 30_000}))
		polled <- err
	}()
	connected := func() bool {
		res, err := people.operator.ListNodes(t.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		require.NoError(t, err)
		require.Len(t, res.Msg.Nodes, 1)
		return res.Msg.Nodes[0].Connected
	}
	time.Sleep(4 * time.Second) // without an open poll a node does not count as connected for so long
	require.True(t, connected())
	cable.Pull(true)
	began := time.Now()
	require.Eventually(t, func() bool { return !connected() }, 60*time.Second, 50*time.Millisecond)
	t.Logf("not connected after %s", time.Since(began).Round(time.Millisecond))
	cable.Pull(false)
	err = <-polled
	require.Equal(t, connect.CodeAborted, connect.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "nothing arrived from the node for 8s, so its poll ended: poll again")
}

package laptop

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/installation"
)

// lists answers with one node that has a radio which a person set up.
type lists struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
}

func (lists) ListNodes(context.Context, *connect.Request[linktrialv1.ListNodesRequest]) (*connect.Response[linktrialv1.ListNodesResponse], error) {
	return connect.NewResponse(&linktrialv1.ListNodesResponse{Nodes: []*linktrialv1.Node{
		{Name: "alpha", Role: "server", RadioAddress: "10.77.0.3", Connected: true, Radios: &linktrialv1.RadioState{Radios: []*linktrialv1.NodeRadio{{Interface: "eth1"}}}},
		{Name: "beta", Role: "client", Connected: true},
	}}), nil
}

// A laptop that is started again is what a person has made it meanwhile, unless its own
// settings name a radio.
func TestStartedAgainWithRadio(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(lists{}))
	s := httptest.NewServer(mux)
	defer s.Close()
	c := &calls{base: s.URL, operator: linktrialv1connect.NewOperatorServiceClient(s.Client(), s.URL)}
	for _, x := range []struct {
		of   installation.AgentSettings
		says string
	}{
		{installation.AgentSettings{Name: "alpha", Role: "client"}, "alpha, server, unnamed radio at eth1 with 10.77.0.3"},
		{installation.AgentSettings{Name: "alpha", Role: "client", Device: "eth2", RadioAddress: "10.9.0.1"}, "alpha, client, unnamed radio at eth2 with 10.9.0.1"},
		{installation.AgentSettings{Name: "beta", Role: "client"}, "beta, client, no radio set up"},
	} {
		a, err := c.withSetUp(t.Context(), x.of)
		if err != nil || describe(a) != x.says {
			t.Errorf("%s, %v, expected %s", describe(a), err, x.says)
		}
	}
}

package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
)

func withRealRadio(x *nodes.Registration) { x.Emulated, x.RadioAddress, x.Role = false, "", "" }

// carries has a node poll once it is told of an order, and report it as done.
func (r *rig) carries(x nodes.Registration) {
	go func() {
		revision := int64(0)
		for r.t.Context().Err() == nil {
			var err error
			if revision, _, err = r.engine.Nodes.Poll(r.t.Context(), x.Name, x.Incarnation, revision, 1, time.Second); err != nil {
				return
			}
			if o := r.Ordered(x.Name); o != nil {
				r.SetInterfaces(x.Name, nil, &linktrialv1.RadioState{OrderId: o.Id, Done: true, Text: "eth1 has it", Radios: []*linktrialv1.NodeRadio{o.Radio}})
			}
		}
	}()
}

func TestOrderRadio(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet.Config{})
	order := func(node string) (*linktrialv1.RadioState, error) {
		return r.OrderRadio(t.Context(), node, &linktrialv1.RadioOrder{Radio: &linktrialv1.NodeRadio{Interface: "eth1", Address: "10.77.0.1/24", Role: "client"}})
	}
	_, err := order("client")
	require.ErrorIs(t, err, fleet.ErrNotFound)
	x := r.register("client", withRealRadio)
	_, err = order("client")
	require.ErrorIs(t, err, fleet.ErrNotReady)
	require.ErrorContains(t, err, "client has not told of its interfaces (its agent is of version 1.2)")

	r.SetInterfaces("client", &linktrialv1.InterfaceList{Interfaces: []*linktrialv1.NodeInterface{{Name: "eth1"}}}, &linktrialv1.RadioState{})
	r.carries(x)
	s, err := order("client")
	require.NoError(t, err)
	require.Equal(t, "eth1 has it", s.Text)
	require.Nil(t, r.Ordered("client"), "it is over")
	all, radios := r.Interfaces("client")
	require.Equal(t, "eth1", all.Interfaces[0].Name)
	require.Equal(t, "10.77.0.1/24", radios.Radios[0].Address)

	_, err = r.OrderRadio(t.Context(), "client", &linktrialv1.RadioOrder{Radio: &linktrialv1.NodeRadio{Interface: "eth1", Profile: "nobody's"}})
	require.ErrorIs(t, err, fleet.ErrBad)
	r.SetInterfaces("client", nil, &linktrialv1.RadioState{Fixed: "this agent was started with --device eth1"})
	_, err = order("client")
	require.ErrorContains(t, err, "this agent was started with --device eth1: the radio stays as it is")
	r.register("server")
	r.SetInterfaces("server", nil, &linktrialv1.RadioState{})
	_, err = order("server")
	require.ErrorContains(t, err, "a node of a lab")
}

// While one order is under way another one is refused, and one whose caller has gone ends.
func TestOneOrderAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet.Config{})
	r.register("client", withRealRadio)
	r.SetInterfaces("client", nil, &linktrialv1.RadioState{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := r.OrderRadio(ctx, "client", &linktrialv1.RadioOrder{Remove: true})
		first <- err
	}()
	require.Eventually(t, func() bool { return r.Ordered("client") != nil }, 10*time.Second, time.Millisecond)
	_, err := r.OrderRadio(t.Context(), "client", &linktrialv1.RadioOrder{Remove: true})
	require.ErrorIs(t, err, fleet.ErrBusy)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	require.Nil(t, r.Ordered("client"))
}

func TestInterfacesWithinBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet.Config{})
	one := &linktrialv1.NodeInterface{Name: "eth1", Addresses: make([]string, 100), Neighbours: make([]string, 100), Points: make([]*linktrialv1.InterfacePoint, 100)}
	all := &linktrialv1.InterfaceList{}
	for range 100 {
		all.Interfaces = append(all.Interfaces, one)
	}
	r.SetInterfaces("client", all, &linktrialv1.RadioState{Radios: make([]*linktrialv1.NodeRadio, 100)})
	kept, radios := r.Interfaces("client")
	require.Len(t, kept.Interfaces, 32)
	require.Len(t, kept.Interfaces[31].Addresses, 16)
	require.Len(t, kept.Interfaces[31].Neighbours, 16)
	require.Len(t, kept.Interfaces[31].Points, 16)
	require.Len(t, radios.Radios, 4)
}

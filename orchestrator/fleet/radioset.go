package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
)

// orderLimit is how long a node may take to set up a radio and to be connected again: it
// waits up to 4 s for a carrier, and asks for other machines with the address.
const orderLimit = 30 * time.Second

// Bounds of what a node reports of its interfaces, above what an agent sends.
const (
	maxInterfaces = 32
	maxListed     = 16 // texts in a list of one interface
	maxRadios     = 4
)

// ErrNotReady says that a node's radio cannot be set up now; the error's text says why.
var ErrNotReady = errors.New("the radio stays as it is")

// order is one to a node that is under way.
type order struct {
	*linktrialv1.RadioOrder
	answered chan *linktrialv1.RadioState // holds one
}

// SetInterfaces stores what a node reported of its interfaces and radios; nil: nothing new.
func (f *Fleet) SetInterfaces(node string, all *linktrialv1.InterfaceList, radios *linktrialv1.RadioState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all != nil {
		f.interfaces[node] = cleanInterfaces(all)
	}
	if radios == nil {
		return
	}
	c := proto.CloneOf(radios)
	c.Radios = c.Radios[:min(len(c.Radios), maxRadios)]
	c.Text, c.Fixed = clean(c.Text), clean(c.Fixed)
	f.radios[node] = c
	if o := f.orders[node]; o != nil && o.Id == c.OrderId {
		select {
		case o.answered <- c:
		default: // it was answered before
		}
	}
}

func cleanInterfaces(all *linktrialv1.InterfaceList) *linktrialv1.InterfaceList {
	c := proto.CloneOf(all)
	c.Interfaces = c.Interfaces[:min(len(c.Interfaces), maxInterfaces)]
	for _, i := range c.Interfaces {
		i.Addresses, i.Neighbours = i.Addresses[:min(len(i.Addresses), maxListed)], i.Neighbours[:min(len(i.Neighbours), maxListed)]
		i.Points = i.Points[:min(len(i.Points), maxListed)]
	}
	return c
}

// Interfaces are a node's interfaces and radios as it reported them last; nil: it did not
// since the orchestrator was started.
func (f *Fleet) Interfaces(node string) (*linktrialv1.InterfaceList, *linktrialv1.RadioState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.interfaces[node], f.radios[node]
}

// Ordered is the order that a node is to carry out; nil: none.
func (f *Fleet) Ordered(node string) *linktrialv1.RadioOrder {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.orders[node]; o != nil {
		return o.RadioOrder
	}
	return nil
}

// ProposeRadio proposes a radio for a node, see [Propose].
func (f *Fleet) ProposeRadio(node, role, iface string) (*linktrialv1.NodeRadio, error) {
	list := f.cfg.Nodes.List()
	if !slices.ContainsFunc(list, func(n nodes.Node) bool { return n.Name == node }) {
		return nil, fmt.Errorf("node %q: %w", node, ErrNotFound)
	}
	var all []NodeRadios
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range list {
		if !n.Connected && n.Name != node || n.Emulated || n.Virtual {
			continue
		}
		all = append(all, NodeRadios{Name: n.Name, Role: n.Role, RadioAddress: n.RadioAddress, Interfaces: f.interfaces[n.Name].GetInterfaces(), Radios: f.radios[n.Name].GetRadios()})
	}
	return Propose(all, node, role, iface), nil
}

// OrderRadio has a node set up a radio, or give one back, and returns what the node says of
// it when it is connected as it is then.
func (f *Fleet) OrderRadio(ctx context.Context, node string, o *linktrialv1.RadioOrder) (*linktrialv1.RadioState, error) {
	if r := o.Radio; !o.Remove && r.GetProfile() != "" && f.cfg.Catalog.Profile(r.Profile) == nil {
		return nil, fmt.Errorf("radio %q %w: there is no profile of that name; leave it empty where the radio has none", r.Profile, ErrBad)
	}
	o.Id = strings.ToLower(rand.Text())
	mine := &order{o, make(chan *linktrialv1.RadioState, 1)}
	if err := f.beginOrder(node, mine); err != nil {
		return nil, err
	}
	f.cfg.Nodes.SetPendingWork(node, o.Id)
	defer func() {
		f.mu.Lock()
		delete(f.orders, node)
		f.mu.Unlock()
		f.cfg.Nodes.SetPendingWork(node, "")
	}()
	end := time.NewTimer(orderLimit)
	defer end.Stop()
	select {
	case s := <-mine.answered:
		return s, nil
	case <-end.C:
		return nil, fmt.Errorf("%s has not answered within %s: %w, or it is tried still; look at the node's interfaces again", node, orderLimit, ErrNotReady)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// beginOrder notes an order, unless the node cannot carry it out now.
func (f *Fleet) beginOrder(node string, o *order) error {
	list := f.cfg.Nodes.List()
	at := slices.IndexFunc(list, func(n nodes.Node) bool { return n.Name == node })
	if at < 0 {
		return fmt.Errorf("node %q: %w", node, ErrNotFound)
	}
	n := &list[at]
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.radios[node]
	switch {
	case f.stopped:
		return nodes.ErrStopping
	case !n.Connected:
		return fmt.Errorf("%s is not connected: %w", node, ErrNotReady)
	case n.Emulated || n.Virtual:
		return fmt.Errorf("%s is a node of a lab, which has its radios from there: %w", node, ErrNotReady)
	case n.Run != "":
		return fmt.Errorf("%s takes part in run %s: %w; wait for its end", node, n.Run, ErrBusy)
	case f.active != nil && slices.ContainsFunc(f.active.nodes, func(p nodes.Node) bool { return p.Name == node }):
		return fmt.Errorf("%s takes part in preflight %s: %w; wait for its end", node, f.active.id, ErrBusy)
	case f.orders[node] != nil:
		return fmt.Errorf("a radio is being set up on %s: %w; wait for its end", node, ErrBusy)
	case state == nil:
		return fmt.Errorf("%s has not told of its interfaces (its agent is of version %s): %w; install this orchestrator's version there", node, n.Version, ErrNotReady)
	case state.Fixed != "":
		return fmt.Errorf("%s: %w", state.Fixed, ErrNotReady)
	}
	f.orders[node] = o
	return nil
}

package radio

import (
	"fmt"
	"slices"
	"time"
)

// Network is an emulated radio network, resolved from a profile and a
// topology: everything the emulator needs, and nothing else. It is part of a
// run sheet and of its hash.
type Network struct {
	MTUBytes           int           `json:"mtu_bytes"`
	Medium             Medium        `json:"medium"`
	Turnaround         time.Duration `json:"turnaround_ns,omitempty"`
	FrameOverheadBytes int           `json:"frame_overhead_bytes,omitempty"`
	Queue              Queue         `json:"queue"`
	Framing            *Framing      `json:"framing,omitempty"`
	FEC                *FEC          `json:"fec,omitempty"`
	ARQ                *ARQ          `json:"arq,omitempty"`
	Reordering         *Reordering   `json:"reordering,omitempty"`
	Duplication        *Duplication  `json:"duplication,omitempty"`
	Access             *Access       `json:"access,omitempty"` // of a shared medium
	Nodes              []Node        `json:"nodes"`
	Links              []Link        `json:"links"`
	// Second is the network of the nodes' second radios, with the same nodes at other
	// addresses; nil where they have one.
	Second *Network `json:"second_radio,omitempty"`
}

// SecondDevice is the interface of a node's second radio where it is emulated.
const SecondDevice = "radio1"

// AddressOf is the address of a node's interface, or "", also of a nil network.
func (n *Network) AddressOf(role Role) string {
	if n != nil {
		for _, v := range n.Nodes {
			if v.Role == role {
				return v.Address
			}
		}
	}
	return ""
}

// Node is one radio of the network and the address of its interface.
type Node struct {
	Role    Role   `json:"role"`
	Address string `json:"address"` // IPv4 on the radio network, "10.77.0.1"
}

// Link is a pair of radios within range of each other. Both directions have the same
// values and error processes of their own.
type Link struct {
	A                 Role          `json:"a"`
	B                 Role          `json:"b"`
	RateBitsPerSecond float64       `json:"rate_bits_per_second"`
	Delay             time.Duration `json:"delay_ns"` // propagation and processing
	Channel           Channel       `json:"channel"`
	// Back is the error process of the direction from B to A where its values
	// differ; nil: those of Channel. Whether the client's side is A or B is the
	// topology's choice; Resolve has put the profile's reverse channel on the
	// directions that lead towards the client.
	Back *Channel `json:"back_channel,omitempty"`
}

// Toward is the error process of one direction of the link.
func (l *Link) Toward(to Role) *Channel {
	if to == l.A && l.Back != nil {
		return l.Back
	}
	return &l.Channel
}

// PrefixBits is the length of the radio network's prefix.
const PrefixBits = 24

// Addresses are the radio addresses of the emulated networks, by role.
var Addresses = map[Role]string{RoleClient: "10.77.0.1", RoleRelay: "10.77.0.2", RoleServer: "10.77.0.3"}

// SecondAddresses are those of second radios.
var SecondAddresses = map[Role]string{RoleClient: "10.78.0.1", RoleRelay: "10.78.0.2", RoleServer: "10.78.0.3"}

const lightSpeed = 299_792_458.0 // m/s

// Resolve applies a profile to a topology, and to its second radio the profile of that:
// rates, channels and delays of every link, with movements turned into traces and bit
// error rates into those that the FEC leaves.
func Resolve(p *Profile, t *Topology) (*Network, error) {
	n, err := resolve(p, t, Addresses)
	if err != nil || t.Second == nil {
		return n, err
	}
	if t.Second.Profile == nil {
		return nil, fmt.Errorf("topology %s: the profile of its second radio, %s, is not known", t.Name, t.Second.Radio)
	}
	if n.Second, err = resolve(t.Second.Profile, t, SecondAddresses); err != nil {
		return nil, fmt.Errorf("second radio: %w", err)
	}
	return n, nil
}

func resolve(p *Profile, t *Topology, addresses map[Role]string) (*Network, error) {
	e := p.Emulation
	if e == nil {
		return nil, fmt.Errorf("radio %s cannot be emulated: its profile has no emulation section", p.Name)
	}
	n := &Network{
		MTUBytes: e.MTUBytes, Medium: e.Medium, Turnaround: e.Turnaround,
		FrameOverheadBytes: e.FrameOverheadBytes, Queue: e.Queue,
		Framing: e.Framing, FEC: e.FEC, ARQ: e.ARQ, Access: e.Access,
		Reordering: e.Reordering, Duplication: e.Duplication,
	}
	for _, s := range t.Stations {
		n.Nodes = append(n.Nodes, Node{Role: s.Role, Address: addresses[s.Role]})
	}
	if e.Access != nil && e.Access.TDMA != nil {
		for _, s := range t.Stations {
			if !slices.Contains(e.Access.TDMA.Owners, s.Role) {
				return nil, fmt.Errorf("radio %s gives the %s of topology %s no TDMA slot", p.Name, s.Role, t.Name)
			}
		}
	}
	hops := t.hopsTo(RoleClient)
	site := e.Sites[t.Name]
	for _, path := range t.Links {
		l := Link{A: path.A, B: path.B, RateBitsPerSecond: e.RateBitsPerSecond}
		l.Delay = e.ProcessingDelay + time.Duration(path.DistanceMetres/lightSpeed*1e9)
		forward, reverse := &e.Channel, e.Reverse
		if path.A == RoleClient || path.B == RoleClient {
			if site.RateBitsPerSecond > 0 {
				l.RateBitsPerSecond = site.RateBitsPerSecond
			}
			if site.Channel != nil {
				forward = site.Channel
			}
			if site.Reverse != nil {
				reverse = site.Reverse
			}
		}
		var err error
		if l.Channel, err = resolveChannel(forward, e.FEC, t, path); err != nil {
			return nil, fmt.Errorf("radio %s at %s: %w", p.Name, t.Name, err)
		}
		if reverse != nil {
			back, err := resolveChannel(reverse, e.FEC, t, path)
			if err != nil {
				return nil, fmt.Errorf("radio %s at %s: %w", p.Name, t.Name, err)
			}
			if hops[path.A] > hops[path.B] { // A is on the server's side
				l.Channel, back = back, l.Channel
			}
			l.Back = &back
		}
		n.Links = append(n.Links, l)
	}
	return n, nil
}

// hopsTo is how many hops lead from each role to the given one.
func (t *Topology) hopsTo(to Role) map[Role]int {
	n := Network{Links: make([]Link, len(t.Links))}
	for i, l := range t.Links {
		n.Links[i] = Link{A: l.A, B: l.B}
	}
	out := map[Role]int{}
	for _, s := range t.Stations {
		out[s.Role] = len(n.Route(s.Role, to))
	}
	return out
}

func resolveChannel(c *Channel, fec *FEC, t *Topology, path Path) (Channel, error) {
	out := *c
	out.Parts = slices.Clone(c.Parts)
	follow := func(c *Channel) error {
		if c.Model != ChannelMobility {
			return nil
		}
		trace, err := c.Mobility.follow(t.Station(path.A), t.Station(path.B))
		if err != nil {
			return err
		}
		*c = Channel{Model: ChannelTrace, Trace: trace}
		return nil
	}
	if err := follow(&out); err != nil {
		return out, err
	}
	for i := range out.Parts {
		if err := follow(&out.Parts[i]); err != nil {
			return out, err
		}
	}
	if fec != nil && fec.Code == FECConvolutional {
		err := out.bits(func(h *HiddenMarkov) (*HiddenMarkov, error) { return h.WithBER(fec.ResidualBER) })
		if err != nil {
			return out, fmt.Errorf("bit error rate after the code: %w", err)
		}
	}
	return out, nil
}

// Route is the roles a packet passes from one node to another, both included,
// by the fewest hops; nil when there is none.
func (n *Network) Route(from, to Role) []Role {
	prev := map[Role]Role{from: from}
	for queue := []Role{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, l := range n.Links {
			for _, d := range [2][2]Role{{l.A, l.B}, {l.B, l.A}} {
				if _, seen := prev[d[1]]; d[0] == at && !seen {
					prev[d[1]] = at
					queue = append(queue, d[1])
				}
			}
		}
	}
	if _, ok := prev[to]; !ok {
		return nil
	}
	route := []Role{to}
	for at := to; at != from; {
		at = prev[at]
		route = append(route, at)
	}
	slices.Reverse(route)
	return route
}

// RoundTrip is the time for a packet of the given size there and an empty one
// of 40 bytes back without queueing, turnarounds or retransmissions of the link.
func (n *Network) RoundTrip(from, to Role, packetBytes int) time.Duration {
	var sum time.Duration
	route := n.Route(from, to)
	for i := 1; i < len(route); i++ {
		for _, l := range n.Links {
			if l.A == route[i] && l.B == route[i-1] || l.B == route[i] && l.A == route[i-1] {
				bits := float64(n.onAir(packetBytes)+n.onAir(40)) * 8
				sum += 2*l.Delay + time.Duration(bits/n.UserRate(&l)*1e9)
			}
		}
	}
	return sum
}

// onAir is a packet's size with the frames around it, before the FEC.
func (n *Network) onAir(packetBytes int) int {
	if n.Framing != nil {
		_, bytes := n.Framing.Frames(packetBytes)
		return bytes
	}
	return packetBytes + n.FrameOverheadBytes
}

// UserRate is the rate at which a link carries frames, in bit/s: its rate on
// the channel times the code rate of the FEC.
func (n *Network) UserRate(l *Link) float64 {
	if n.FEC != nil {
		return l.RateBitsPerSecond * n.FEC.CodeRate
	}
	return l.RateBitsPerSecond
}

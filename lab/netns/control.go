package netns

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/radio"
)

// SetControlLink cuts or restores the control link of one node of a lab, at
// the control bridge: the node only sees that nothing answers any more.
func SetControlLink(s *State, role radio.Role, up bool) error {
	for i, n := range s.Nodes {
		if n.Role != role {
			continue
		}
		h, err := netns.GetFromName(s.Control)
		if err != nil {
			return fmt.Errorf("control namespace: %w", err)
		}
		defer h.Close()
		c, err := netlink.NewHandleAt(h)
		if err != nil {
			return err
		}
		defer c.Close()
		link, err := c.LinkByName(fmt.Sprintf("node%d", i))
		if err != nil {
			return err
		}
		if up {
			return c.LinkSetUp(link)
		}
		return c.LinkSetDown(link)
	}
	return fmt.Errorf("the lab has no node %s", role)
}

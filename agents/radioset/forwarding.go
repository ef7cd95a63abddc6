package radioset

import (
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Of IFLA_AF_SPEC (linux/if_link.h, linux/ip.h): the settings of an interface for IPv4, and
// which of them is net.ipv4.conf.INTERFACE.forwarding.
const (
	inetConf        = 1 // IFLA_INET_CONF
	devconfForwards = 1 // IPV4_DEVCONF_FORWARDING
)

// setForwarding has the kernel pass on packets of IPv4 that arrive at an interface, or not.
// Unlike the file of /proc/sys, netlink takes it from an agent whose unit protects the
// settings of the kernel.
func setForwarding(l netlink.Link, on bool) error {
	value := map[bool]uint32{true: 1}[on]
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(l.Attrs().Index)
	req.AddData(msg)
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	spec.AddRtAttr(unix.AF_INET, nil).AddRtAttr(inetConf, nil).AddRtAttr(devconfForwards, nl.Uint32Attr(value))
	req.AddData(spec)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

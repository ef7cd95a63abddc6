package link

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrNoTUN is that of a machine where no link can be made.
var ErrNoTUN = errors.New("this machine has no /dev/net/tun: load it with 'modprobe tun'")

// openTUN makes the radio of this namespace: a TUN device with addresses and
// routes to the other end. Without offloads, so that what is read are packets as
// they would be on a wire, with their checksums.
func openTUN(addresses, far []string) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return -1, ErrNoTUN
	}
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(Device)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		err = fmt.Errorf("make a TUN device: %w", err)
	} else {
		err = configureTUN(addresses, far)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func configureTUN(addresses, far []string) error {
	// No link-local address, with which the kernel would send packets of its own.
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+Device+"/addr_gen_mode", []byte("1"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("prepare %s: %w", Device, err)
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := h.LinkByName(Device)
	if err != nil {
		return fmt.Errorf("interface %s: %w", Device, err)
	}
	source := map[bool]net.IP{} // of packets to either family
	for _, a := range addresses {
		ip := net.ParseIP(a)
		is4 := ip.To4() != nil
		if source[is4] == nil {
			source[is4] = ip
		}
		// Without looking for another owner of the address, which takes a second.
		if err := h.AddrAdd(dev, &netlink.Addr{IPNet: host(a), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	if err := h.LinkSetUp(dev); err != nil {
		return err
	}
	for _, a := range far {
		to := host(a)
		route := &netlink.Route{Dst: to, LinkIndex: dev.Attrs().Index, Src: source[to.IP.To4() != nil]}
		if err := h.RouteAdd(route); err != nil {
			return fmt.Errorf("route to %s: %w", a, err)
		}
	}
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}

// host is the network of one address alone.
func host(ip string) *net.IPNet {
	if ip4 := net.ParseIP(ip).To4(); ip4 != nil {
		return &net.IPNet{IP: ip4, Mask: net.CIDRMask(32, 32)}
	}
	return &net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(128, 128)}
}

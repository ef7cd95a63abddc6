// Command standin takes the place of the SCPS reference implementation's gateway in
// the tests of the driver scps. It is no SCPS: the kernel forwards the packets of
// TCP connections as they are. What it has in common with the gateway is how it is
// started: -V prints a version, and without it the file rfile in the working folder
// names two interfaces and three TUN devices that it makes.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// version says what this is; the driver looks for it.
const version = "stand-in, not SCPS"

// commonTable is the routing table through which the gateway takes its packets.
const commonTable = 202

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-V" {
		fmt.Println(version)
		os.Exit(1) // as the gateway does
	}
	if err := run(); err != nil {
		fmt.Println("FATAL ERROR:", err)
		os.Exit(1)
	}
}

func run() error {
	parameters, err := read("rfile")
	if err != nil {
		return err
	}
	for _, name := range []string{"AIF_NAME", "BIF_NAME"} {
		if _, err := net.InterfaceByName(parameters[name]); err != nil {
			return fmt.Errorf("%s is %q: %w", name, parameters[name], err)
		}
	}
	var last netlink.Link
	for _, name := range []string{"AIF_TUN_NAME", "BIF_TUN_NAME", "C_TUN_NAME"} {
		t := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: parameters[name]}, Mode: netlink.TUNTAP_MODE_TUN, NonPersist: true, Queues: 1}
		if err := netlink.LinkAdd(t); err != nil {
			return fmt.Errorf("%s %q: %w", name, parameters[name], err)
		}
		if err := netlink.LinkSetUp(t); err != nil {
			return err
		}
		last = t
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: last.Attrs().Index, Table: commonTable, Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM, os.Interrupt)
	<-stop
	return nil
}

// read reads lines of a name and a value.
func read(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		switch fields := strings.Fields(line); len(fields) {
		case 0:
		case 2:
			out[fields[0]] = fields[1]
		default:
			return nil, errors.New("rfile: expected a name and a value in each line")
		}
	}
	return out, nil
}

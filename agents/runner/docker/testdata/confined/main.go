// A driver that writes to its log what a container lets it do.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/contract"
)

// leftArgument makes this program a process that a driver leaves behind.
const leftArgument = "left"

func main() {
	if len(os.Args) > 1 && os.Args[1] == leftArgument {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Hour)
		return
	}
	doc, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(contract.ExitFailed)
	}
	p, err := contract.ParseParameters(doc)
	if err != nil {
		os.Exit(contract.ExitFailed)
	}
	report()
	act(p)
}

// report logs the rights and limits of this process.
func report() {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		for _, name := range []string{"CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Uid", "Gid", "Groups", "Seccomp"} {
			if strings.HasPrefix(line, name+":") {
				fmt.Fprintln(os.Stderr, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	fmt.Fprintln(os.Stderr, "write:", os.WriteFile("/mark", nil, 0o644))
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		fmt.Fprintln(os.Stderr, "interface:", i.Name)
	}
	fmt.Fprintln(os.Stderr, "limit memory:", setting("memory.max", "memory/memory.limit_in_bytes"))
	fmt.Fprintln(os.Stderr, "limit cpu:", setting("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
	fmt.Fprintln(os.Stderr, "limit processes:", setting("pids.max", "pids/pids.max"))
}

// act does what the option "do" asks for.
func act(p *contract.Parameters) {
	do, _ := p.Options["do"].(string)
	do, rest, _ := strings.Cut(do, " ")
	switch do {
	case "reach":
		addresses := strings.Fields(rest)
		answers := make([]string, len(addresses))
		var all sync.WaitGroup
		for i, address := range addresses {
			all.Go(func() { answers[i] = reach(address) })
		}
		all.Wait()
		for i, address := range addresses {
			fmt.Fprintf(os.Stderr, "%s: %s\n", address, answers[i])
		}
	case "sockets":
		sockets()
	case "accept":
		accept(rest)
	case "leave":
		if err := leave(rest); err != nil {
			fmt.Fprintln(os.Stderr, "leave:", err)
			os.Exit(contract.ExitFailed)
		}
	}
	json.NewEncoder(os.Stdout).Encode(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "confined"}})
	switch do {
	case "eat":
		debug.SetGCPercent(-1)
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			all = append(all, b)
			fmt.Fprintln(io.Discard, len(all))
		}
	case "sleep":
		time.Sleep(time.Hour) // whatever the signal
	case "leave":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
	}
}

// leave starts a daemon: in a session of its own, with no environment, deaf to the
// signals that end a service.
func leave(mark string) error {
	child := exec.Command("/proc/self/exe", leftArgument, mark)
	child.Env, child.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	return child.Start()
}

// setting is of this container's control group, of the second or the first version.
func setting(second string, first ...string) string {
	if b, err := os.ReadFile("/sys/fs/cgroup/" + second); err == nil {
		return strings.TrimSpace(string(b))
	}
	var all []string
	for _, name := range first {
		b, err := os.ReadFile("/sys/fs/cgroup/" + name)
		if err != nil {
			return err.Error()
		}
		all = append(all, strings.TrimSpace(string(b)))
	}
	return strings.Join(all, " ")
}

// reach tries NETWORK/ADDRESS; what answers sends "here".
func reach(address string) string {
	network, address, _ := strings.Cut(address, "/")
	address, from, _ := strings.Cut(address, "/from/")
	c, err := dialFrom(network, from, address)
	if err != nil {
		return "not reached"
	}
	defer c.Close()
	if _, err := c.Write([]byte("?")); err != nil {
		return "not reached"
	}
	if err := c.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err.Error()
	}
	b := make([]byte, 16)
	n, err := c.Read(b)
	if err != nil {
		return "not reached"
	}
	return string(b[:n])
}

// dialFrom connects from a port, where one is named.
func dialFrom(network, from, to string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	d.SetMultipathTCP(network == "mptcp")
	network = strings.TrimPrefix(network, "mp")
	port, err := strconv.Atoi(from)
	switch {
	case from == "":
	case err != nil:
		return nil, err
	case network == "udp":
		d.LocalAddr = &net.UDPAddr{Port: port}
	default:
		d.LocalAddr = &net.TCPAddr{Port: port}
	}
	return d.Dial(network, to)
}

// accept logs which addresses connect, for some seconds.
func accept(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "listen:", err)
		return
	}
	defer l.Close()
	time.AfterFunc(3*time.Second, func() { l.Close() })
	came := map[string]bool{}
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed
		}
		from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		c.Close()
		if !came[from] {
			came[from] = true
			fmt.Fprintf(os.Stderr, "accepted: %s\n", from)
		}
	}
}

// sockets tries to make one of each kind.
func sockets() {
	for _, s := range []struct {
		name                string
		domain, kind, proto int
	}{
		{"IPv4", syscall.AF_INET, syscall.SOCK_STREAM, 0},
		{"IPv6", syscall.AF_INET6, syscall.SOCK_DGRAM, 0},
		{"routes", syscall.AF_NETLINK, syscall.SOCK_RAW, syscall.NETLINK_ROUTE},
		{"generic netlink", syscall.AF_NETLINK, syscall.SOCK_RAW, syscall.NETLINK_GENERIC},
		{"multipath IPv4", syscall.AF_INET, syscall.SOCK_STREAM, 262},
		{"multipath IPv6", syscall.AF_INET6, syscall.SOCK_STREAM, 262},
		{"netfilter", syscall.AF_NETLINK, syscall.SOCK_RAW, syscall.NETLINK_NETFILTER},
		{"packet", syscall.AF_PACKET, syscall.SOCK_RAW, 0},
		{"unix", syscall.AF_UNIX, syscall.SOCK_STREAM, 0},
		{"vsock", 40, syscall.SOCK_STREAM, 0},
	} {
		fd, err := syscall.Socket(s.domain, s.kind, s.proto)
		switch {
		case err == nil:
			syscall.Close(fd)
			fmt.Fprintf(os.Stderr, "socket %s: made\n", s.name)
		case errors.Is(err, syscall.EPERM):
			fmt.Fprintf(os.Stderr, "socket %s: refused\n", s.name)
		default:
			fmt.Fprintf(os.Stderr, "socket %s: %v\n", s.name, err)
		}
	}
}

// A small driver for the agents' tests: the contract's transfer over TCP, and
// every way to break the contract that the executor must survive.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/protocols/contract"
)

var out sync.Mutex

// clockRate is how fast the driver's clock runs, of real time.
var clockRate = 1.0

// since is the time that has passed by the driver's clock.
func since(t time.Time) time.Duration { return time.Duration(clockRate * float64(time.Since(t))) }

// shift is what the driver reports as connecting of what was transferring, at most all of
// either; negative: the other way round.
var shift time.Duration

// shifted are the times that the driver reports.
func shifted(connect, transfer time.Duration) (connectNS, elapsedNS int64) {
	s := max(-connect, min(shift, transfer))
	return max(1, int64(connect+s)), max(1, int64(transfer-s))
}

func say(e contract.Event) {
	out.Lock()
	defer out.Unlock()
	json.NewEncoder(os.Stdout).Encode(e)
}

// input is standard input: the document, and then the payload.
var input = bufio.NewReader(os.Stdin)

// hand hands payload over.
func hand(transfer string, b []byte) {
	line, _ := json.Marshal(contract.Event{Event: contract.KindPayload, Transfer: transfer, Bytes: len(b)})
	out.Lock()
	defer out.Unlock()
	os.Stdout.Write(append(append(line, '\n'), b...))
}

func fail(transfer string, code contract.Code, err error) {
	say(contract.Event{Event: contract.KindError, Transfer: transfer, Code: code, Message: err.Error()})
}

func main() {
	doc, err := input.ReadBytes('\n')
	if err != nil {
		os.Exit(contract.ExitFailed)
	}
	p, err := contract.ParseParameters(doc)
	if err != nil {
		fail("", contract.CodeBadParameters, err)
		os.Exit(contract.ExitFailed)
	}
	fault, _ := p.Options["fault"].(string)
	pace, _ := p.Options["pace"].(float64)
	if c, ok := p.Options["clock"].(float64); ok && c > 0 {
		clockRate = c
	}
	ms, _ := p.Options["shift"].(float64)
	shift = time.Duration(ms * float64(time.Millisecond))
	fmt.Fprintln(os.Stderr, "driver starts as", p.Role, "with fault", fault)
	ready := func() {
		say(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "test over tcp"}})
	}
	if fault == "log" && p.LogFolder == "" {
		fail(p.Transfer.ID, contract.CodeUnsupported, fmt.Errorf("there is no log_folder"))
		os.Exit(contract.ExitUnsupported)
	}
	switch p.Role {
	case contract.RoleQuery:
		ready()
	case contract.RoleServer:
		server(p, fault, ready)
	case contract.RoleRelay:
		relay(p, fault, ready)
	case contract.RoleClient:
		before(fault)
		ready()
		client(p, fault, time.Duration(pace*float64(time.Millisecond)))
	}
}

// writeLog leaves a log of a transfer, where it is asked for one.
func writeLog(p *contract.Parameters, transfer, fault string) {
	if fault != "log" {
		return
	}
	if err := os.WriteFile(p.LogFile(transfer, "log"), []byte(p.Role+"\n"), 0o644); err != nil {
		fail(transfer, contract.CodeInternal, err)
		os.Exit(contract.ExitFailed)
	}
}

// before are the faults of a client that never gets to connect.
func before(fault string) {
	switch fault {
	case "garbage":
		fmt.Println("Segmentation fault (core not dumped)")
		time.Sleep(time.Hour)
	case "long-line":
		fmt.Println(strings.Repeat("x", contract.MaxLine+10))
		time.Sleep(time.Hour)
	case "flood":
		line := []byte(`{"event":"ready","info":{"implementation":"flood"}}` + "\n")
		for {
			if _, err := os.Stdout.Write(line); err != nil {
				time.Sleep(time.Hour)
			}
		}
	case "log-flood":
		b := []byte(strings.Repeat("log ", 16<<10))
		for {
			os.Stderr.Write(b)
		}
	case "exit":
		os.Exit(3)
	case "unsupported":
		fail("", contract.CodeUnsupported, fmt.Errorf("this kernel has no such thing"))
		os.Exit(contract.ExitUnsupported)
	case "hang":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	}
}

func client(p *contract.Parameters, fault string, pace time.Duration) {
	id := p.Transfer.ID
	writeLog(p, id, fault)
	began := time.Now()
	c, err := net.DialTimeout("tcp", net.JoinHostPort(p.Remote.Address, strconv.Itoa(p.Remote.Port)), time.Duration(p.Limits.ConnectMS)*time.Millisecond)
	if err != nil {
		fail(id, contract.CodeConnectRefused, err)
		os.Exit(contract.ExitFailed)
	}
	one := make([]byte, 1)
	if _, err := io.ReadFull(c, one); err != nil {
		fail(id, contract.CodeReset, err)
		os.Exit(contract.ExitFailed)
	}
	connect := since(began)
	connectNS, _ := shifted(connect, time.Hour)
	say(contract.Event{Event: contract.KindConnected, Transfer: id, ConnectNS: connectNS})
	tid, _ := contract.ParseTransferID(id)
	c.Write(contract.Header{ID: tid, SizeBytes: uint64(p.Transfer.SizeBytes)}.Append(nil))
	start := time.Now()
	sample := func(sent int64) {
		say(contract.Event{Event: contract.KindSample, Transfer: id, Sample: &contract.Sample{ElapsedNS: int64(since(start)), SentBytes: sent}})
	}
	if fault == "unsent" {
		say(contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{
			SizeBytes: p.Transfer.SizeBytes, ElapsedNS: int64(since(start)), ConnectNS: int64(connect),
		}})
		return
	}
	ack := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(c, one)
		ack <- err
	}()
	until, _ := p.Options["hold"].(string)
	b := make([]byte, 4096)
	for sent := int64(0); sent < p.Transfer.SizeBytes; {
		n := min(int64(len(b)), p.Transfer.SizeBytes-sent)
		if _, err := io.ReadFull(input, b[:n]); err != nil {
			fail(id, contract.CodeInternal, err)
			os.Exit(contract.ExitFailed)
		}
		if _, err := c.Write(b[:n]); err != nil {
			fail(id, contract.CodeReset, err)
			os.Exit(contract.ExitFailed)
		}
		sent += n
		if fault == "backwards" {
			sample(p.Transfer.SizeBytes - sent)
		} else {
			sample(sent)
		}
		failInTransfer(fault)
		hold(id, until, ack)
		time.Sleep(pace)
	}
	if err := <-ack; err != nil || one[0] != contract.ByteAccepted {
		fail(id, contract.CodeReset, fmt.Errorf("no acknowledgement: %v %q", err, one))
		os.Exit(contract.ExitFailed)
	}
	size := p.Transfer.SizeBytes
	if fault == "wrong-size" {
		size++
	}
	connectNS, elapsedNS := shifted(connect, since(start))
	say(contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{
		SizeBytes: size, ElapsedNS: elapsedNS, ConnectNS: connectNS, Final: final(id, fault, size, start),
	}})
	switch fault {
	case "child", "daemon":
		leave(fault)
	case "late-exit":
		time.Sleep(time.Hour)
	case "exit-after":
		os.Exit(9)
	}
}

// final is the last sample: none, or one that says that nothing was sent again.
func final(transfer, fault string, size int64, start time.Time) *contract.Sample {
	if fault != "nothing-again" {
		return nil
	}
	none := int64(0)
	s := &contract.Sample{ElapsedNS: int64(since(start)), SentBytes: size, Retransmits: &none}
	say(contract.Event{Event: contract.KindSample, Transfer: transfer, Sample: s})
	return s
}

// leave starts a process that goes on when this one has ended: in the driver's
// process group, or as a daemon in a session of its own and with an environment
// of its own.
func leave(kind string) {
	child := exec.Command("sleep", "3600")
	if kind == "daemon" {
		child.Env, child.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	}
	child.Start()
}

// hold waits in the middle of a transfer until there is a file of this name, and fails
// where the connection breaks before; no name: it does not wait.
func hold(transfer, until string, ack <-chan error) {
	for until != "" {
		if _, err := os.Stat(until); err == nil {
			return
		}
		select {
		case err := <-ack:
			fail(transfer, contract.CodeReset, fmt.Errorf("the connection ended while the transfer was held: %v", err))
			os.Exit(contract.ExitFailed)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// failInTransfer misbehaves after the first bytes were sent, if asked to.
func failInTransfer(fault string) {
	switch fault {
	case "crash":
		syscall.Kill(os.Getpid(), syscall.SIGABRT)
		time.Sleep(time.Hour)
	case "killed": // as a person does, or the kernel without memory
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stuck":
		time.Sleep(time.Hour)
	case "stuck-deaf":
		signal.Ignore(syscall.SIGTERM)
		// A child that holds the output open must not delay the run.
		child := exec.Command("sleep", "3600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.Start()
		time.Sleep(time.Hour)
	}
}

// relay carries the bytes of every connection onward over one of its own, both
// ways, and ends both where one of them fails.
func relay(p *contract.Parameters, fault string, ready func()) {
	if fault == "no-relay" {
		fail("", contract.CodeUnsupported, fmt.Errorf("no relay here"))
		os.Exit(contract.ExitUnsupported)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(p.Local.Address, strconv.Itoa(p.Local.Port)))
	if err != nil {
		fail("", contract.CodeListenFailed, err)
		os.Exit(contract.ExitFailed)
	}
	ready()
	for {
		near, err := l.Accept()
		if err != nil {
			os.Exit(contract.ExitFailed)
		}
		go func() {
			far, err := net.Dial("tcp", net.JoinHostPort(p.Remote.Address, strconv.Itoa(p.Remote.Port)))
			if err != nil {
				near.Close()
				return
			}
			go carry(near, far)
			if fault == "relay-dies" {
				io.CopyN(far, near, 10_000)
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			carry(far, near)
		}()
	}
}

func carry(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return
	}
	to.(*net.TCPConn).CloseWrite()
}

func server(p *contract.Parameters, fault string, ready func()) {
	switch fault {
	case "no-listener":
		fail("", contract.CodeUnsupported, fmt.Errorf("no server here"))
		os.Exit(contract.ExitUnsupported)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(p.Local.Address, strconv.Itoa(p.Local.Port)))
	if err != nil {
		fail("", contract.CodeListenFailed, err)
		os.Exit(contract.ExitFailed)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		if fault == "server-daemon" {
			leave("daemon")
		}
		os.Exit(contract.ExitOK)
	}()
	ready()
	if fault == "slows" {
		go slow(p)
	}
	if fault == "jam" {
		go jam(p)
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go serve(p, c, fault)
	}
}

// slow changes the node's network for those that follow: at once, and three times while
// packets of others pass the radio.
func slow(p *contract.Parameters) {
	for last, left := int64(-1<<20), 4; left > 0; time.Sleep(50 * time.Millisecond) {
		now := received(p.Device)
		if now-last < 100_000 {
			continue
		}
		if l, err := netlink.LinkByName(p.Device); err == nil {
			if err := netlink.LinkSetTxQLen(l, 3); err != nil {
				fmt.Fprintln(os.Stderr, "nothing is slower:", err)
			}
		}
		last, left = now, left-1
	}
}

// jam sends from the listener's port while packets of others pass the radio.
func jam(p *contract.Parameters) {
	from, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(p.Local.Address, strconv.Itoa(p.Local.Port)))
	if err != nil {
		return
	}
	// The client's address, in the network of a lab.
	to := &net.UDPAddr{IP: net.IPv4(from.IP.To4()[0], from.IP.To4()[1], from.IP.To4()[2], 1), Port: 9}
	c, err := net.DialUDP("udp4", from, to)
	if err != nil {
		return
	}
	for last := received(p.Device); ; time.Sleep(50 * time.Millisecond) {
		now := received(p.Device)
		if now-last > 1000 {
			for range 2 {
				c.Write(make([]byte, 1000))
			}
		}
		last = now
	}
}

// received is how many bytes an interface has received.
func received(device string) int64 {
	b, _ := os.ReadFile("/proc/net/dev")
	for line := range strings.Lines(string(b)) {
		if name, counts, found := strings.Cut(strings.TrimSpace(line), ":"); found && name == device {
			n, _ := strconv.ParseInt(strings.Fields(counts)[0], 10, 64)
			return n
		}
	}
	return 0
}

func serve(p *contract.Parameters, c net.Conn, fault string) {
	defer c.Close()
	c.Write([]byte{contract.ByteReady})
	hb := make([]byte, contract.HeaderSize)
	if _, err := io.ReadFull(c, hb); err != nil {
		fail("", contract.CodeReset, err)
		return
	}
	h, err := contract.ParseHeader(hb)
	if err != nil {
		fail("", contract.CodeProtocolViolation, err)
		return
	}
	id := h.ID.String()
	writeLog(p, id, fault)
	say(contract.Event{Event: contract.KindConnected, Transfer: id})
	switch fault {
	case "server-dies":
		os.Exit(4)
	case "server-crashes":
		panic("the server's own fault")
	}
	start := time.Now()
	b := make([]byte, 4096)
	for at := uint64(0); at < h.SizeBytes; {
		n, err := c.Read(b[:min(uint64(len(b)), h.SizeBytes-at)])
		if err != nil {
			fail(id, contract.CodeReset, err)
			return
		}
		hand(id, b[:n])
		at += uint64(n)
		counted := int64(at)
		if fault == "ahead" { // for a greater share of what several flows carry
			counted = int64(min(at+at/2, h.SizeBytes))
		}
		if fault == "backwards" && at > h.SizeBytes/2 {
			counted = int64(h.SizeBytes/2) / 2
		}
		say(contract.Event{Event: contract.KindSample, Transfer: id, Sample: &contract.Sample{ElapsedNS: int64(since(start)), SentBytes: counted}})
	}
	c.Write([]byte{contract.ByteAccepted})
	if fault == "corrupted" {
		fail(id, contract.CodeCorrupted, fmt.Errorf("wrong byte after 7"))
		return
	}
	say(contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{
		SizeBytes: int64(h.SizeBytes), ElapsedNS: int64(since(start)),
	}})
}

package haul_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linktrial/protocols/haul"
)

// roleVariable makes a process of the test's binary one end of a connection.
const roleVariable = "HAUL_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "server":
		err = serverProcess(os.Args[1])
	case "client":
		err = clientProcess(os.Args[1], os.Args[2])
	default:
		goleak.VerifyTestMain(m)
		return
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}

// Messages of the processes.
const (
	echoSize   = 5000 // bytes
	echoAtOnce = 16   // sent and not back yet
	echoEnough = 5    // show that a connection works
)

// serverProcess sends back every message. To a line on its standard input it
// answers with the bytes that it uses and the connections that it has.
func serverProcess(local string) error {
	l, err := haul.Listen(netip.MustParseAddrPort(local), haul.Options{DeadAfter: time.Second})
	if err != nil {
		return err
	}
	fmt.Println("listening")
	var conns atomic.Int64
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			fmt.Println("memory", m.HeapAlloc, conns.Load())
		}
		os.Exit(0) // the test has ended
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		conns.Add(1)
		go func() {
			defer conns.Add(-1)
			for ctx := context.Background(); ; {
				m, err := c.Receive(ctx)
				if err == nil {
					err = c.Send(ctx, m)
				}
				if err != nil {
					c.Abort("the echo has failed")
					return
				}
			}
		}()
	}
}

// clientProcess sends messages that only it can know, several at once, and
// expects each to come back once and in order.
func clientProcess(local, remote string) error {
	ctx := context.Background()
	c, err := haul.Dial(ctx, netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote), haul.Options{})
	if err != nil {
		return err
	}
	fmt.Println("connected", c.Stats().Hellos)
	secret := make([]byte, echoSize)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	message := func(i uint64) []byte { return binary.BigEndian.AppendUint64(bytes.Clone(secret), i) }
	back := make(chan bool, echoAtOnce)
	go func() {
		for i := uint64(0); c.Send(ctx, haul.Message{Data: message(i)}) == nil; i++ {
			back <- true
		}
	}()
	for i := uint64(0); ; i++ {
		m, err := c.Receive(ctx)
		if err != nil {
			return err
		}
		if !bytes.Equal(m.Data, message(i)) {
			return errors.New("message " + strconv.FormatUint(i, 10) + " is not what was sent")
		}
		<-back
		if i == echoEnough {
			fmt.Println("echoed")
		}
	}
}

// process is a process of this binary.
type process struct {
	t     *testing.T
	role  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func start(t *testing.T, role string, arguments ...string) *process {
	t.Helper()
	p := &process{t: t, role: role, cmd: exec.Command(os.Args[0], arguments...), lines: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	for line := range p.lines {
		p.check(line)
	}
	_ = p.cmd.Wait()
}

func (p *process) check(line string) {
	if strings.HasPrefix(line, "failed:") || strings.Contains(line, "panic") {
		p.t.Errorf("%s: %s", p.role, line)
	}
}

// expect waits for a line that begins with a word, and returns what follows.
func (p *process) expect(word string) string {
	p.t.Helper()
	late := time.After(3 * time.Minute) // on a machine that is busy with other things
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%s ended before it said %q", p.role, word)
			}
			p.check(line)
			if rest, ok := strings.CutPrefix(line, word); ok {
				return strings.TrimSpace(rest)
			}
		case <-late:
			p.t.Fatalf("%s did not say %q", p.role, word)
		}
	}
}

// memory is how many bytes and connections a server has.
func (p *process) memory() (heap, conns int) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "memory\n"); err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Sscan(p.expect("memory"), &heap, &conns); err != nil {
		p.t.Fatal(err)
	}
	return heap, conns
}

// oldNetwork passes on packets between a client and a server that keep their
// addresses, and among them packets of any time before: copies in either
// direction, and such that it has kept since then.
type oldNetwork struct {
	mu      sync.Mutex
	rnd     *mrand.Rand
	sockets [2]*net.UDPConn // towards the client, towards the server
	ends    [2]netip.AddrPort
	past    [][]byte
	kept    [2][][]byte // that have not been passed on yet
	old     int         // earlier packets that were passed on
}

func newOldNetwork(t *testing.T, client, server netip.AddrPort) *oldNetwork {
	n := &oldNetwork{rnd: mrand.New(mrand.NewPCG(1, 2)), ends: [2]netip.AddrPort{client, server}}
	for i := range n.sockets {
		n.sockets[i] = socket(t)
	}
	var group sync.WaitGroup
	for i := range n.sockets {
		group.Go(func() {
			b := make([]byte, 65536)
			for {
				k, _, err := n.sockets[i].ReadFromUDPAddrPort(b)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil { // else nobody listens there just now
					n.pass(1-i, bytes.Clone(b[:k]))
				}
			}
		})
	}
	t.Cleanup(func() {
		for _, s := range n.sockets {
			_ = s.Close()
		}
		group.Wait()
	})
	return n
}

func (n *oldNetwork) send(to int, p []byte) {
	_, _ = n.sockets[to].WriteToUDPAddrPort(p, n.ends[to])
}

func (n *oldNetwork) pass(to int, p []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rnd.IntN(4) == 0 && len(n.past) > 0 {
		n.send(n.rnd.IntN(2), n.past[n.rnd.IntN(len(n.past))])
		n.old++
	}
	if len(n.past) < 5000 {
		n.past = append(n.past, p)
	} else {
		n.past[n.rnd.IntN(len(n.past))] = p
	}
	if n.rnd.IntN(50) == 0 {
		n.kept[to] = append(n.kept[to], p)
		return
	}
	n.send(to, p)
}

// release passes on what has been kept.
func (n *oldNetwork) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for to := range n.kept {
		for _, p := range n.kept[to] {
			n.send(to, p)
			n.old++
		}
		n.kept[to] = nil
	}
}

// freeAddress is an address that nobody uses now.
func freeAddress(t *testing.T) netip.AddrPort {
	s := socket(t)
	defer func() { _ = s.Close() }()
	return addressOf(s)
}

// TestBothEndsKilled holds that after SIGKILL of both ends at any moment, and a
// start on the same addresses at once, the next connection works at once,
// although packets of those before still come.
func TestBothEndsKilled(t *testing.T) {
	const rounds = 24
	at, to := freeAddress(t), freeAddress(t)
	n := newOldNetwork(t, at, to)
	rnd := mrand.New(mrand.NewPCG(3, 4))
	mostHellos := 0
	for i := range rounds {
		server := start(t, "server", to.String())
		server.expect("listening")
		n.release()
		client := start(t, "client", at.String(), addressOf(n.sockets[0]).String())
		if i%3 == 0 {
			time.Sleep(time.Duration(rnd.IntN(int(100 * time.Millisecond)))) // in the handshake, too
		} else {
			hellos, err := strconv.Atoi(client.expect("connected"))
			if err != nil {
				t.Fatal(err)
			}
			mostHellos = max(mostHellos, hellos)
			client.expect("echoed")
			time.Sleep(time.Duration(rnd.IntN(int(50 * time.Millisecond))))
		}
		first, second := client, server
		if rnd.IntN(2) == 0 {
			first, second = server, client
		}
		first.kill()
		second.kill()
		if t.Failed() {
			return
		}
	}
	n.mu.Lock()
	old := n.old
	n.mu.Unlock()
	if old < 100 {
		t.Errorf("%d earlier packets were passed on: this test tests nothing", old)
	}
	// At 120 ms and growing pauses: a second on a busy machine.
	if mostHellos > 6 {
		t.Errorf("a connection needed %d hellos", mostHellos)
	}
	t.Logf("%d earlier packets; at most %d hellos", old, mostHellos)
}

// TestClientsKilled holds that a server whose clients die in the middle of
// transfers, and begin anew from the same address, uses no more and more memory.
func TestClientsKilled(t *testing.T) {
	const rounds = 30
	at, to := freeAddress(t), freeAddress(t)
	n := newOldNetwork(t, at, to)
	server := start(t, "server", to.String())
	server.expect("listening")
	empty, _ := server.memory()
	most := 0
	for range rounds {
		client := start(t, "client", at.String(), addressOf(n.sockets[0]).String())
		client.expect("echoed")
		client.kill()
		heap, _ := server.memory()
		most = max(most, heap)
	}
	// The server's options end a connection a second after its client's death;
	// earlier hellos make connections that nobody uses, which last longer.
	heap, conns := math.MaxInt, 0
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit) && heap > empty+4<<20; time.Sleep(200 * time.Millisecond) {
		heap, conns = server.memory()
	}
	t.Logf("%d bytes before, at most %d, then %d with %d connections", empty, most, heap, conns)
	if heap > empty+4<<20 || conns > rounds {
		t.Errorf("after the deaths of %d clients the server uses %d bytes (before: %d) and has %d connections", rounds, heap, empty, conns)
	}
}

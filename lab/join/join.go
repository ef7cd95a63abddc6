// Package join gives emulated radios to nodes whose network namespaces the
// emulator did not make and cannot name, such as those of a container engine.
// Each node sends the emulator a descriptor of its network namespace over a Unix
// socket, and keeps the connection open for as long as it wants the radio; the
// emulator puts radio0 into the namespace.
//
//	node → {"role": "client"}, with the descriptor
//	emulator → {"up": true} once every node has joined, or {"refused": "why"}
//
// Comes in: a radio network. Goes out: running radios.
package join

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/tun"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
)

type message struct {
	Role    radio.Role `json:"role,omitempty"`
	Up      bool       `json:"up,omitempty"`
	Refused string     `json:"refused,omitempty"`
}

// maxMessage bounds a message, in bytes.
const maxMessage = 4 << 10

func parseMessage(b []byte) (m message, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return message{}, err
	}
	return m, nil
}

// helloLimit is how long a new connection may take to send its role.
const helloLimit = 10 * time.Second

// Config of [Serve].
type Config struct {
	Socket string // that nodes connect to
	Radios tun.Config
	Logger *slog.Logger
}

// member is a node that has joined.
type member struct {
	role      radio.Role
	conn      *net.UnixConn
	namespace *os.File
}

func (m *member) close() {
	_ = m.conn.Close()
	_ = m.namespace.Close()
}

func (m *member) send(a message) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = m.conn.Write(append(b, '\n'))
	return err
}

// Serve runs the radios of cfg.Radios.Network while all its nodes have joined,
// until ctx ends (nil) or a radio fails. When a node leaves, the radios are down
// until it has joined again.
func Serve(ctx context.Context, cfg Config) error {
	// An emulator that was killed leaves its socket.
	if err := os.Remove(cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("socket for nodes: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("socket for nodes: %w", err)
	}
	s := &server{cfg: cfg, members: map[radio.Role]*member{}, joined: make(chan *member), left: make(chan *member)}
	ctx, cancel := context.WithCancel(ctx)
	s.running.Go(func() { s.accept(ctx, l) })
	err = s.run(ctx)
	cancel()
	_ = l.Close() // accept ends with it
	for _, m := range s.members {
		m.close()
	}
	s.running.Wait()
	return err
}

type server struct {
	cfg     Config
	members map[radio.Role]*member // of run alone
	joined  chan *member
	left    chan *member
	running sync.WaitGroup
}

func (s *server) accept(ctx context.Context, l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return // closed
		}
		s.running.Go(func() { s.handshake(ctx, c) })
	}
}

// handshake reads which node connects, adds it to the members, and waits until it
// leaves.
func (s *server) handshake(ctx context.Context, c *net.UnixConn) {
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
	m, err := s.readHello(c)
	if err != nil && ctx.Err() != nil {
		_ = c.Close() // it will join the next emulator
		return
	}
	if err != nil {
		s.cfg.Logger.Warn("a node was refused", "error", err)
		if b, jerr := json.Marshal(message{Refused: err.Error()}); jerr == nil {
			_, _ = c.Write(append(b, '\n')) // the other end may have closed
		}
		_ = c.Close()
		return
	}
	select {
	case s.joined <- m:
	case <-ctx.Done():
		m.close()
		return
	}
	_, _ = io.Copy(io.Discard, c) // up to its end
	select {
	case s.left <- m:
	case <-ctx.Done():
	}
}

func (s *server) readHello(c *net.UnixConn) (*member, error) {
	if err := c.SetReadDeadline(time.Now().Add(helloLimit)); err != nil {
		return nil, err
	}
	b, space := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*8))
	n, spaceN, _, _, err := c.ReadMsgUnix(b, space)
	if err != nil {
		return nil, fmt.Errorf("greeting: %w", err)
	}
	files, err := descriptors(space[:spaceN])
	if err != nil {
		return nil, fmt.Errorf("greeting: %w", err)
	}
	keep := false
	defer func() {
		for _, f := range files {
			if !keep {
				_ = f.Close()
			}
		}
	}()
	hello, err := parseMessage(b[:n])
	if err != nil {
		return nil, fmt.Errorf("greeting %.60q: %w", b[:n], err)
	}
	known := false
	for _, node := range s.cfg.Radios.Network.Nodes {
		known = known || node.Role == hello.Role
	}
	switch {
	case !known:
		return nil, fmt.Errorf("the radio network has no node %q", hello.Role)
	case len(files) != 1:
		return nil, fmt.Errorf("node %s sent %d descriptors, expected that of its network namespace", hello.Role, len(files))
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(files[0].Fd()), &fs); err != nil || fs.Type != unix.NSFS_MAGIC {
		return nil, fmt.Errorf("node %s sent a descriptor that is not one of a namespace", hello.Role)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	keep = true
	return &member{role: hello.Role, conn: c, namespace: files[0]}, nil
}

func descriptors(space []byte) ([]*os.File, error) {
	list, err := syscall.ParseSocketControlMessage(space)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range list {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "namespace"))
		}
	}
	return files, nil
}

// run starts and stops the radios as nodes join and leave.
func (s *server) run(ctx context.Context) error {
	var up *tun.Emulator
	stop := func() error {
		if up == nil {
			return nil
		}
		e := up
		up = nil
		return e.Stop()
	}
	defer func() { _ = stop() }() // ctx has ended: an error changes nothing
	for {
		var failed <-chan struct{}
		if up != nil {
			failed = up.Done()
		}
		select {
		case <-ctx.Done():
			return stop()
		case <-failed:
			return fmt.Errorf("emulated radios ended: %w", errors.Join(stop(), errors.New("nodes must join again")))
		case m := <-s.left:
			if s.members[m.role] != m { // another one has taken its place
				m.close()
				continue
			}
			s.cfg.Logger.Info("node has left", "role", string(m.role))
			delete(s.members, m.role)
			err := stop()
			m.close()
			if err != nil {
				return err
			}
		case m := <-s.joined:
			s.cfg.Logger.Info("node has joined", "role", string(m.role))
			if err := stop(); err != nil {
				return err
			}
			if old := s.members[m.role]; old != nil {
				_ = old.conn.Close() // its handshake then ends and closes the rest
			}
			s.members[m.role] = m
			if len(s.members) < len(s.cfg.Radios.Network.Nodes) {
				continue
			}
			var err error
			if up, err = s.start(); err != nil {
				return err
			}
			for _, m := range s.members {
				if err := m.send(message{Up: true}); err != nil {
					s.cfg.Logger.Warn("node could not be notified that its radio is up", "role", string(m.role), "error", err)
				}
			}
		}
	}
}

func (s *server) start() (*tun.Emulator, error) {
	cfg := s.cfg.Radios
	cfg.Nodes, cfg.Logger = nil, s.cfg.Logger
	for _, n := range cfg.Network.Nodes {
		cfg.Nodes = append(cfg.Nodes, tun.NodeConfig{
			Role: n.Role, Address: n.Address,
			NetNS: "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(s.members[n.Role].namespace.Fd())),
		})
	}
	return tun.Start(cfg)
}

// refusedError reports that the emulator refused, so that trying again is of no use.
type refusedError struct{ reason string }

func (e *refusedError) Error() string {
	return "the emulated radio network refused this node: " + e.reason
}

// Node gives the caller's network namespace a radio of the emulator at a socket
// until ctx ends: where the emulator ends, it joins the next one. up is called
// once, when the radio is up for the first time. Node returns an error only where
// trying again is of no use.
func Node(ctx context.Context, socket string, role radio.Role, up func(), log *slog.Logger) error {
	once := sync.OnceFunc(up)
	told := ""
	for {
		err := connect(ctx, socket, role, once)
		var refused *refusedError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused):
			return err
		}
		if text := err.Error(); text != told {
			log.Info("waiting for the emulated radio", "reason", text)
			told = text
		}
		if !backoff.Sleep(ctx, 200*time.Millisecond) {
			return nil
		}
	}
}

// connect joins once. It returns when the connection has ended, never with nil.
func connect(ctx context.Context, socket string, role radio.Role, up func()) error {
	ns, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return err
	}
	defer ns.Close()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a %T, expected a Unix socket", c)
	}
	b, err := json.Marshal(message{Role: role})
	if err != nil {
		return err
	}
	if _, _, err := u.WriteMsgUnix(b, syscall.UnixRights(int(ns.Fd())), nil); err != nil {
		return err
	}
	return follow(u, up)
}

// follow reads the emulator's messages, one a line, to their end.
func follow(from io.Reader, up func()) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		m, err := parseMessage(lines.Bytes())
		if err != nil {
			return fmt.Errorf("message of the emulator: %w", err)
		}
		if m.Refused != "" {
			return &refusedError{m.Refused}
		}
		if m.Up {
			up()
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("message of the emulator: %w", err)
	}
	return errors.New("the emulator has closed the connection")
}

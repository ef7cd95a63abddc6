package bpf

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it registers congestion controls in the kernel")
	}
}

// TestNames: the kernel's names fit into its 15 characters and are all different.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Names() {
		k := KernelName(n)
		if len(k) > 15 || seen[k] || !IsKernelName(k) {
			t.Errorf("%s is %q in the kernel", n, k)
		}
		seen[k] = true
	}
	if Has("cubic") || KernelName("cubic") != "" {
		t.Error("cubic is brought along")
	}
}

// TestTransfer: every one of them carries a transfer.
func TestTransfer(t *testing.T) {
	needRoot(t)
	t.Cleanup(func() {
		if err := Release(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			if err := Probe(name); err != nil {
				t.Fatal(err)
			}
			lc := net.ListenConfig{}
			lc.SetMultipathTCP(false)
			l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
				cerr := c.Control(func(fd uintptr) {
					if err = Set(int(fd), name); err == nil {
						err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, 300_000)
					}
				})
				if cerr != nil {
					return cerr
				}
				return err
			}}
			d.SetMultipathTCP(false)
			c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			sent := make([]byte, 4<<20)
			_, _ = rand.Read(sent)
			go func() {
				_, _ = c.Write(sent)
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("%d bytes arrived of %d, or others: %v", len(got), len(sent), err)
			}
			raw, err := c.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var used string
			if err := raw.Control(func(fd uintptr) {
				used, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			}); err != nil {
				t.Fatal(err)
			}
			if used != KernelName(name) {
				t.Errorf("the connection has %q, expected %q", used, KernelName(name))
			}
		})
	}
}

package socket

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Info reads TCP_INFO and how many bytes of it this kernel knows.
func Info(raw syscall.RawConn) (t unix.TCPInfo, n int, err error) {
	size := uint32(unsafe.Sizeof(t))
	cerr := raw.Control(func(fd uintptr) {
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
			uintptr(unsafe.Pointer(&t)), uintptr(unsafe.Pointer(&size)), 0)
		if e != 0 {
			err = e
		}
	})
	if cerr != nil {
		err = cerr
	}
	return t, int(size), err
}

// redialPause keeps a kernel that gives up at once (no SYN retries) from being asked in a loop.
const redialPause = 100 * time.Millisecond

// Redial calls once until it succeeds, or fails otherwise than because the
// kernel gave the connection up (net.ipv4.tcp_syn_retries), or ctx ends: the
// limit is ctx's alone.
func Redial[C any](ctx context.Context, once func() (C, error)) (C, error) {
	for {
		c, err := once()
		if !errors.Is(err, syscall.ETIMEDOUT) || ctx.Err() != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
			return c, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(redialPause):
		}
	}
}

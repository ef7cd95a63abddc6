// Package arrival tells when the kernel got the datagrams of a socket
// (SO_TIMESTAMPNS, socket(7)). Times are of day, since 1970.
package arrival

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enable has the kernel put the time of arrival beside each datagram of a socket. Where it
// is the first such socket of the machine, the kernel begins a moment later; a datagram of
// before has the time at which it is read (net_enable_timestamp and __sock_recv_timestamp
// of Linux).
func Enable(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("times of arrival (SO_TIMESTAMPNS): %w", err)
	}
	return nil
}

// Of is the time in the control messages of a datagram; false where there is none.
func Of(control []byte) (time.Duration, bool, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false, fmt.Errorf("time of arrival: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ts := (*unix.Timespec)(unsafe.Pointer(unsafe.SliceData(m.Data)))
			return time.Duration(ts.Nano()), true, nil
		}
	}
	return 0, false, nil
}

// Receive reads n datagrams of a blocking socket that has [Enable] and returns when
// each arrived; it gives up after wait without one.
func Receive(fd, n int, wait time.Duration) (out []time.Duration, err error) {
	tv := unix.NsecToTimeval(int64(wait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	b, control := make([]byte, 2048), make([]byte, 128)
	for len(out) < n {
		_, length, _, _, err := unix.Recvmsg(fd, b, control, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return out, nil
		case err != nil:
			return out, fmt.Errorf("receive: %w", err)
		}
		at, there, err := Of(control[:length])
		if err != nil {
			return out, err
		}
		if there {
			out = append(out, at)
		}
	}
	return out, nil
}

// Now is the time of day by the clock that arrivals have.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }

package netif

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/backoff"
)

// groups are the kernel's notices (rtnetlink(7)) of what a radio's interface depends on.
var groups = []int{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
}

// againAfter is the pause before notices are asked for again.
const againAfter = time.Second

// Follow calls changed after each of the kernel's notices of changes of interfaces,
// addresses, queueing disciplines, routes and rules in this network namespace, several at
// once for one call, until ctx ends. It calls it once when it has begun. While the kernel
// gives no notices, it calls it once a second.
func Follow(ctx context.Context, log *slog.Logger, changed func()) {
	for told := false; ; {
		notices, err := subscribe()
		if err == nil {
			told = false
			err = followOnce(ctx, notices, changed)
		}
		if ctx.Err() != nil {
			return
		}
		if !told {
			log.Warn("the kernel's notices of changes of the network cannot be read; they are asked for again", "error", err)
			told = true
		}
		changed() // as far as it can be seen without
		if !backoff.Sleep(ctx, againAfter) {
			return
		}
	}
}

// followOnce returns when ctx ends, or with an error. It closes what it reads.
func followOnce(ctx context.Context, notices *os.File, changed func()) error {
	defer func() { _ = notices.Close() }() // nothing was written
	defer context.AfterFunc(ctx, func() { _ = notices.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := notices.SyscallConn()
	if err != nil {
		return err
	}
	changed() // what happened before
	text := make([]byte, 64<<10)
	for {
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			_, _, failed = unix.Recvfrom(int(fd), text, unix.MSG_DONTWAIT)
			for again := failed; again == nil; { // all that are there are one change
				_, _, again = unix.Recvfrom(int(fd), text, unix.MSG_DONTWAIT)
			}
			return !errors.Is(failed, unix.EAGAIN)
		})
		if errors.Is(failed, unix.ENOBUFS) { // there were more than the socket holds
			failed = nil
		}
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		changed()
	}
}

func subscribe() (notices *os.File, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	for _, g := range groups {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g))
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return nil, fmt.Errorf("notices of the kernel: %w", err)
	}
	return os.NewFile(uintptr(fd), "notices of the kernel"), nil
}

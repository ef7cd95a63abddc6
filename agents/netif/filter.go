package netif

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"linktrial/agents/radioonly"
)

// subscribeFilter opens a socket with the kernel's notices of changes of the packet filter
// (nf_tables) in this thread's network namespace; nil: this kernel has none.
func subscribeFilter() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	err = errors.Join(unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
		unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.NFNLGRP_NFTABLES))
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return nil, fmt.Errorf("notices of the packet filter: %w", err)
	}
	return os.NewFile(uintptr(fd), "notices of the packet filter"), nil
}

// followFilter calls changed for each change of the packet filter that another process
// has made, until ctx ends. Rules that drop one protocol for a time leave no other trace
// at either end. It closes the socket; nil: there is nothing to follow.
func followFilter(ctx context.Context, notices *os.File, log *slog.Logger, changed func(what string)) {
	if notices == nil {
		return
	}
	defer func() { _ = notices.Close() }() // nothing was written
	defer context.AfterFunc(ctx, func() { _ = notices.SetReadDeadline(time.Unix(1, 0)) })()
	text := make([]byte, 64<<10)
	var g generation
	for {
		n, err := notices.Read(text)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS): // there were more than the socket holds
			g = generation{other: true} // what of this one was lost is not known
			changed(someChange)
		case err != nil:
			log.Warn("changes of the packet filter are not noticed any more", "error", err)
			return
		default:
			for _, what := range g.changes(text[:n], agents(initialProcesses())) {
				changed(what)
			}
		}
	}
}

// someChange is a change of which no more is known.
const someChange = "the packet filter of this node was changed"

// author says who changed the filter, by the thread and its name. The kernel numbers
// threads as in the machine's own namespace of processes, whoever reads the notice.
type author struct {
	self    func(thread int) bool
	program func(thread int, name string) bool
}

// initialProcesses reports whether this process sees the machine's own process numbers:
// the kernel's first namespace of processes has this number (PROC_PID_INIT_INO).
var initialProcesses = sync.OnceValue(func() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link == "pid:[4026531836]"
})

// agents tells this process and others of its program from strangers. initial: a notice has
// the numbers of this process's own namespace; otherwise, in a container, the same number is
// another thread here.
func agents(initial bool) author {
	if !initial {
		return author{func(int) bool { return false }, sameName}
	}
	return author{ownThread, sameProgram}
}

// ownThread reports whether this process has a thread.
func ownThread(id int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", id))
	return err == nil
}

// sameProgram reports whether a thread is of a process that runs this program: there may
// be several agents on a node.
func sameProgram(thread int, _ string) bool {
	own, err1 := os.Stat("/proc/self/exe")
	theirs, err2 := os.Stat(fmt.Sprintf("/proc/%d/exe", thread))
	return err1 == nil && err2 == nil && os.SameFile(own, theirs)
}

// sameName reports whether a thread has the name of this process's first one.
func sameName(_ int, name string) bool {
	own, err := os.ReadFile("/proc/self/comm")
	return err == nil && strings.TrimSpace(string(own)) == name
}

// newGeneration is the message that ends each change of the packet filter.
const newGeneration = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWGEN

// generation is one change of the packet filter, of which the kernel tells in several
// messages: what is new or gone, and at the end who did it.
type generation struct {
	other bool // more than tables of agents is concerned
}

// tableOf is the table that a message concerns; its attribute has the same number in
// messages of tables, chains, rules, sets and objects (NFTA_TABLE_NAME and others).
func tableOf(attributes []syscall.NetlinkRouteAttr) string {
	for _, a := range attributes {
		if a.Attr.Type == unix.NFTA_TABLE_NAME {
			return unix.ByteSliceToString(a.Value)
		}
	}
	return ""
}

// changes says which changes of the packet filter messages of the kernel tell, but for
// those by which agents of this node keep their drivers to the radios: their own, and
// those of another agent where it changes the table of its drivers alone.
func (g *generation) changes(messages []byte, by author) (out []string) {
	all, err := syscall.ParseNetlinkMessage(messages)
	if err != nil {
		g.other = true
		return []string{someChange}
	}
	for _, m := range all {
		if len(m.Data) < nl.SizeofNfgenmsg {
			continue
		}
		attributes, err := nl.ParseRouteAttr(m.Data[nl.SizeofNfgenmsg:])
		if m.Header.Type != newGeneration {
			g.other = g.other || err != nil || !strings.HasPrefix(tableOf(attributes), radioonly.TablePrefix)
			continue
		}
		if err != nil {
			continue
		}
		thread, name := 0, ""
		for _, a := range attributes {
			switch a.Attr.Type {
			case unix.NFTA_GEN_PROC_PID:
				if len(a.Value) == 4 {
					thread = int(binary.BigEndian.Uint32(a.Value))
				}
			case unix.NFTA_GEN_PROC_NAME:
				name = unix.ByteSliceToString(a.Value)
			}
		}
		foreign := g.other || !by.program(thread, name)
		*g = generation{}
		if foreign && !by.self(thread) {
			out = append(out, fmt.Sprintf("%s (by %.20q, thread %d): change it before a run", someChange, name, thread))
		}
	}
	return out
}

// happened notes what was wrong for a moment.
func (w *Watch) happened(what string) {
	w.mu.Lock()
	w.fault, w.until = what, time.Now()
	w.mu.Unlock()
	w.changed.Notify()
}

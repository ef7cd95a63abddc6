// Package radiomark marks network interfaces on which an agent set up a radio, for the other
// programs of the same machine. The mark is in the interface's alias (IFLA_IFALIAS), so that
// it is there exactly as long as the kernel's interface, whichever program is started again,
// and other network namespaces and machines do not have it.
package radiomark

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// mark ends the alias of an interface that is a radio; what people gave it stays before.
const mark = "[radio of Linktrial]"

// maxAlias is the longest alias that the kernel takes, in bytes (IFALIASZ, with its end).
const maxAlias = 255

// Set marks an interface, or takes the mark off; its own alias stays. It changes nothing
// that is so already.
func Set(l netlink.Link, radio bool) error {
	alias := l.Attrs().Alias
	own, marked := strings.CutSuffix(alias, mark)
	if marked == radio {
		return nil
	}
	want := strings.TrimSuffix(own, " ")
	if radio {
		want = strings.TrimPrefix(alias+" "+mark, " ")
	}
	if len(want) > maxAlias {
		return fmt.Errorf("%s has an alias of %d bytes, expected at most %d, to be marked as a radio: shorten it ('ip link set %[1]s alias TEXT')", l.Attrs().Name, len(alias), maxAlias-len(mark)-1)
	}
	return netlink.LinkSetAlias(l, want)
}

// On reports whether an interface is marked. One that cannot be read is: whoever asks wants
// to send nothing over a radio. One that has gone is not.
func On(i net.Interface) bool {
	l, err := netlink.LinkByIndex(i.Index)
	if err == nil {
		return strings.HasSuffix(l.Attrs().Alias, mark)
	}
	var gone netlink.LinkNotFoundError
	return !errors.As(err, &gone) && !errors.Is(err, unix.ENODEV)
}

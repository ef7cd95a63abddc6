package mptcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Commands, attributes and flags of <linux/mptcp_pm.h>.
const (
	family  = "mptcp_pm"
	version = 1

	commandAddAddress    = 1
	commandDeleteAddress = 2
	commandGetAddress    = 3
	commandSetLimits     = 5
	commandGetLimits     = 6

	attributeAddress  = 1 // nested
	attributeAccepted = 2 // u32: ADD_ADDRs that a connection accepts
	attributeSubflows = 3 // u32: subflows of a connection beside the first

	addressFamily = 1
	addressID     = 2
	address4      = 3
	address6      = 4
	addressPort   = 5
	addressFlags  = 6
	addressDevice = 7

	// FlagSignal announces the endpoint to the other end.
	flagSignal = 1 << 0
	// flagImplicit marks an endpoint that the kernel has made itself, for a subflow
	// whose local address had none.
	flagImplicit = 1 << 4
)

// endpoint is an address as the path manager has it.
type endpoint struct {
	id      uint8
	address netip.Addr
	port    uint16 // 0: that of the connection
	flags   uint32
	device  int32 // index of the interface; 0: any
}

// limits bound what connections of the namespace do.
type limits struct {
	accepted uint32 // announced addresses that a connection connects to
	subflows uint32 // of a connection beside its first
}

// attribute encodes the endpoint for a request.
func (e *endpoint) attribute() *nl.RtAttr {
	a := nl.NewRtAttr(attributeAddress|unix.NLA_F_NESTED, nil)
	if e.address.Is4() {
		a.AddRtAttr(addressFamily, u16(unix.AF_INET))
		a.AddRtAttr(address4, e.address.AsSlice())
	} else {
		a.AddRtAttr(addressFamily, u16(unix.AF_INET6))
		a.AddRtAttr(address6, e.address.AsSlice())
	}
	a.AddRtAttr(addressID, []byte{e.id})
	if e.port != 0 {
		a.AddRtAttr(addressPort, u16(e.port))
	}
	if e.flags != 0 {
		a.AddRtAttr(addressFlags, u32(e.flags))
	}
	if e.device != 0 {
		a.AddRtAttr(addressDevice, u32(uint32(e.device)))
	}
	return a
}

func u16(n uint16) []byte { return binary.NativeEndian.AppendUint16(nil, n) }
func u32(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// errShort reports an attribute that has fewer bytes than its type.
var errShort = errors.New("an attribute is too short")

// genericHeader is the size of struct genlmsghdr, which precedes the attributes.
const genericHeader = 4

// parseEndpoint reads one answer to commandGetAddress.
func parseEndpoint(b []byte) (endpoint, error) {
	var e endpoint
	err := attributes(b, func(kind uint16, value []byte) error {
		if kind != attributeAddress {
			return nil
		}
		list, err := nl.ParseRouteAttr(value)
		if err != nil {
			return err
		}
		for _, a := range list {
			if err := e.set(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !e.address.IsValid() {
		err = errors.New("an endpoint has no address")
	}
	return e, err
}

func (e *endpoint) set(kind uint16, v []byte) error {
	size := map[uint16]int{addressID: 1, address4: 4, address6: 16, addressPort: 2, addressFlags: 4, addressDevice: 4}[kind]
	if len(v) < size {
		return errShort
	}
	switch kind {
	case addressID:
		e.id = v[0]
	case address4, address6:
		e.address, _ = netip.AddrFromSlice(v[:size])
	case addressPort:
		e.port = binary.NativeEndian.Uint16(v)
	case addressFlags:
		e.flags = binary.NativeEndian.Uint32(v)
	case addressDevice:
		e.device = int32(binary.NativeEndian.Uint32(v))
	}
	return nil
}

// parseLimits reads the answer to commandGetLimits.
func parseLimits(b []byte) (limits, error) {
	var l limits
	err := attributes(b, func(kind uint16, value []byte) error {
		if kind != attributeAccepted && kind != attributeSubflows {
			return nil
		}
		if len(value) < 4 {
			return errShort
		}
		if n := binary.NativeEndian.Uint32(value); kind == attributeAccepted {
			l.accepted = n
		} else {
			l.subflows = n
		}
		return nil
	})
	return l, err
}

// attributes calls each for every attribute of a generic netlink message.
func attributes(b []byte, each func(kind uint16, value []byte) error) error {
	if len(b) < genericHeader {
		return fmt.Errorf("a message of %d bytes, expected at least %d", len(b), genericHeader)
	}
	list, err := nl.ParseRouteAttr(b[genericHeader:])
	if err != nil {
		return err
	}
	for _, a := range list {
		if err := each(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value); err != nil {
			return err
		}
	}
	return nil
}

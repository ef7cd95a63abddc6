package nodes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/identity"
	"linktrial/internal/quota"
	"linktrial/internal/radio"
)

// Driver is a protocol driver as it is on a node.
type Driver struct {
	Name           string            `json:"name"`
	Version        string            `json:"version"`
	Implementation string            `json:"implementation"`
	SHA256         string            `json:"sha256"`
	Digest         string            `json:"digest,omitempty"`      // as run sheets name it
	Unsupported    string            `json:"unsupported,omitempty"` // why the node cannot run it; empty: it can
	Choices        map[string]string `json:"choices,omitempty"`     // comma-separated, by option
	Remarks        map[string]string `json:"remarks,omitempty"`     // "option=value": where it comes from, or why it cannot be had
}

// Registration is what an agent reports of itself when it registers.
type Registration struct {
	Name, Role, Version, Host, Kernel string
	Radio                             string // profile attached; empty where the radio is emulated, or real and not named
	Emulated                          bool   // a lab vouches for it
	Lab                               string // identity of that lab's key
	LabProblem                        string // why none does for a node that was started for a lab
	Virtual                           bool   // of the virtual-time lab
	RadioAddress                      string
	DiskFreeBytes                     int64
	Drivers                           []Driver
	// Incarnation is the identity of this start of the agent: that of its state folder, a
	// slash, and that of the start. Older agents do not tell the first two.
	Incarnation string
}

// WithoutRadio reports whether nobody has set a radio up on the node: it is connected, and
// takes part in no run.
func (r *Registration) WithoutRadio() bool {
	return !r.Emulated && !r.Virtual && r.LabProblem == "" && r.Radio == "" && r.RadioAddress == ""
}

// otherFolder reports whether two incarnations are of different state folders, as far as
// they tell.
func otherFolder(before, now string) bool {
	one, _, told := strings.Cut(before, "/")
	two, _, tells := strings.Cut(now, "/")
	return told && tells && one != two
}

// Errors that agents' calls are answered with.
var (
	ErrUnknownNode = errors.New("node is not registered")
	ErrNameTaken   = errors.New("another agent of that name is connected")
	ErrOtherFolder = errors.New("that run's journal is in another state folder")
	ErrBadNode     = errors.New("registration is not valid")
	ErrStopping    = errors.New("the orchestrator is stopping")
)

// maxDrivers bounds the drivers of one node, far above what comes with the program.
const maxDrivers = 200

func (r *Registration) check() error {
	if err := identity.CheckName(r.Name); err != nil {
		return fmt.Errorf("%w: %w", err, ErrBadNode)
	}
	switch {
	case !slices.Contains(radio.Roles, radio.Role(r.Role)) && (r.Role != "" || !r.WithoutRadio()): // it may get its role with the radio
		return fmt.Errorf("role %q, expected client, relay or server: %w", r.Role, ErrBadNode)
	case r.Incarnation == "":
		return fmt.Errorf("no incarnation: %w", ErrBadNode)
	case r.DiskFreeBytes < 0:
		return fmt.Errorf("%d bytes free: %w", r.DiskFreeBytes, ErrBadNode)
	case r.Emulated && r.Radio != "":
		return fmt.Errorf("an emulated radio, and a real one (%s): %w", r.Radio, ErrBadNode)
	case r.Virtual && !r.Emulated:
		return fmt.Errorf("a node of the virtual-time lab for which its lab does not vouch (%s): %w", r.LabProblem, ErrBadNode)
	case len(r.Drivers) > maxDrivers:
		return quota.Exceeded(quota.Drivers, fmt.Errorf("%d drivers, at most %d are taken: %w", len(r.Drivers), maxDrivers, ErrBadNode))
	}
	return nil
}

package contract

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"linktrial/internal/unit"
)

// Manifest is a driver's driver.yaml: what it is called, how it is started,
// which options it takes and what it needs.
type Manifest struct {
	Name     string `json:"name"`    // as plans name the protocol
	Title    string `json:"title"`   // as tables name it: "TCP"
	Summary  string `json:"summary"` // one sentence
	Version  string `json:"version"`
	Contract int    `json:"contract"`
	// Kind is what the driver carries; [KindTransfers] where the manifest has none.
	Kind    DriverKind `json:"kind"`
	Command []string   `json:"command"`         // the program, relative to the manifest's folder where it has a slash
	Image   string     `json:"image,omitempty"` // the container image, for runners that use images
	// Files are the files and folders of the driver's folder that its digest
	// covers, with the manifest; empty: all.
	Files []string `json:"files,omitempty"`

	// Roles that the driver has besides [RoleQuery]; empty: client and server.
	Roles   []Role   `json:"roles,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Features of the contract that a driver need not have, and this one has.
	Features []Feature `json:"features,omitempty"`
	// Capabilities the program needs, as "CAP_NET_ADMIN".
	Capabilities []string `json:"capabilities,omitempty"`
	// Resources bound the driver where it runs as a container.
	Resources Resources `json:"resources,omitzero"`
	// Kernel says what it needs of the kernel, for people.
	Kernel string `json:"kernel,omitempty"`
	// External is what the driver needs and Linktrial does not ship: who wants the
	// protocol brings it. A node without it is in order.
	External string `json:"external,omitempty"`
	// Network is "tcp", "udp" or "sctp": what a packet capture of it will show.
	Network string `json:"network"`
}

// Resources are what a container of the driver may use; 0 is the runner's own bound.
type Resources struct {
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
	CPUs        float64 `json:"cpus,omitempty"` // processors' worth of time
	Processes   int64   `json:"processes,omitempty"`
}

// Feature is a part of the contract that a driver may lack. Closed list.
type Feature string

// FeatureDuration: client and server carry open payloads, so that a time can
// bound a transfer ([Transfer.DurationMS]).
const FeatureDuration Feature = "duration"

// FeatureDSCP: every role marks its packets with [Parameters.DSCP].
const FeatureDSCP Feature = "dscp"

// FeatureFromServer: the server of a driver of probes sends the packets where the
// client asks for them ([Transfer.FromServer]).
const FeatureFromServer Feature = "from-server"

// Plays reports whether the driver has a role; every driver has [RoleQuery].
func (m *Manifest) Plays(r Role) bool {
	return r == RoleQuery || slices.Contains(m.AllRoles(), r)
}

// AllRoles lists the roles that the driver has besides [RoleQuery].
func (m *Manifest) AllRoles() []Role {
	if len(m.Roles) == 0 {
		return []Role{RoleClient, RoleServer}
	}
	return m.Roles
}

// Has reports whether the driver has a feature.
func (m *Manifest) Has(f Feature) bool { return slices.Contains(m.Features, f) }

// Lacks is a feature that a driver needs for these parameters and does not have:
// it would ignore the field that it does not know.
func (m *Manifest) Lacks(p *Parameters) (f Feature, lacks bool) {
	switch {
	case p.Transfer.DurationMS > 0 && m.Kind != KindProbe && !m.Has(FeatureDuration):
		return FeatureDuration, true
	case p.DSCP != 0 && !m.Has(FeatureDSCP):
		return FeatureDSCP, true
	case p.Transfer.FromServer && !m.Has(FeatureFromServer):
		return FeatureFromServer, true
	}
	return "", false
}

// OptionType is the type of an option's value.
type OptionType string

// The types an option can have. Sizes and durations are written in plans with
// a unit ("256 KiB", "200ms") and reach the driver as a number of bytes or
// milliseconds.
const (
	TypeString   OptionType = "string"
	TypeInt      OptionType = "int"
	TypeNumber   OptionType = "number"
	TypeBool     OptionType = "bool"
	TypeSize     OptionType = "size"
	TypeDuration OptionType = "duration"
)

// Option is one declared option.
type Option struct {
	Name    string     `json:"name"`
	Type    OptionType `json:"type"`
	Default any        `json:"default,omitempty"` // absent: the protocol's own default, which the driver does not receive
	Help    string     `json:"help"`
	// Choices is the closed list of values of a string option. Empty: any, or
	// where FromNode is set, what the node's query reports.
	Choices  []string `json:"choices,omitempty"`
	FromNode bool     `json:"from_node,omitempty"`
	Min      *float64 `json:"min,omitempty"` // in the unit the driver sees
	Max      *float64 `json:"max,omitempty"`
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// ValidName reports whether a protocol may have this name: at most 32 lower-case
// letters, digits and hyphens, a letter first.
func ValidName(protocol string) bool { return nameForm.MatchString(protocol) }

func (o *Option) rangeText() string {
	show := func(f float64) string {
		switch o.Type {
		case TypeSize:
			return unit.FormatBytes(int64(f))
		case TypeDuration:
			return fmt.Sprintf("%gms", f)
		}
		return fmt.Sprintf("%g", f)
	}
	switch {
	case o.Min != nil && o.Max != nil:
		return show(*o.Min) + " to " + show(*o.Max)
	case o.Min != nil:
		return show(*o.Min) + " or more"
	default:
		return show(*o.Max) + " or less"
	}
}

// CheckOptions is the driver's side: it refuses options the manifest does not
// declare and choices or bounds not kept, and fills in defaults.
func (m *Manifest) CheckOptions(in map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, o := range m.Options {
		if o.Default != nil {
			out[o.Name] = o.Default
		}
	}
	for key, v := range in {
		i := slices.IndexFunc(m.Options, func(o Option) bool { return o.Name == key })
		if i < 0 {
			return nil, fmt.Errorf("unknown option %q", key)
		}
		c, err := m.Options[i].coerce(v)
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", key, err)
		}
		out[key] = c
	}
	return out, nil
}

// coerce brings a value decoded from JSON into the option's type.
func (o *Option) coerce(v any) (any, error) {
	var f float64
	switch x := v.(type) {
	case string:
		if o.Type != TypeString {
			return nil, fmt.Errorf("expected %s, found text %q", o.Type, x)
		}
		if len(o.Choices) > 0 && !slices.Contains(o.Choices, x) {
			return nil, fmt.Errorf("%q, there are %s", x, strings.Join(o.Choices, ", "))
		}
		return x, nil
	case bool:
		if o.Type != TypeBool {
			return nil, fmt.Errorf("expected %s, found %t", o.Type, x)
		}
		return x, nil
	case float64:
		f = x
	case int64:
		f = float64(x)
	case int:
		f = float64(x)
	default:
		return nil, fmt.Errorf("expected %s, found %v", o.Type, v)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("expected %s, found %g", o.Type, f)
	}
	if o.Min != nil && f < *o.Min || o.Max != nil && f > *o.Max {
		return nil, fmt.Errorf("expected %s, found %g", o.rangeText(), f)
	}
	switch o.Type {
	case TypeInt, TypeSize:
		// Beyond 2^53 a JSON number may not be the one that was written (RFC 8259, section 6).
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, fmt.Errorf("expected a whole number of at most 53 bits, found %g", f)
		}
		return int64(f), nil
	case TypeNumber, TypeDuration:
		return f, nil
	}
	return nil, fmt.Errorf("expected %s, found %g", o.Type, f)
}

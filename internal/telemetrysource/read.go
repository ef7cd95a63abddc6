package telemetrysource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Node is what a node offers to those that read sources.
type Node struct {
	// Env looks up a secret that a profile names; nil: those of the environment that
	// [SecretsVariable] lists.
	Env func(string) string
	// PowerSupplies and ThermalZones are the kernel's folders; empty: those of
	// [nodesensor].
	PowerSupplies, ThermalZones string
	// SerialDevices are those at which radios' consoles are; nil: those that
	// [SerialVariable] lists.
	SerialDevices []string
}

// Read asks a source once, at host where it has one, and returns what it answered within
// ctx. Values are numbers that JSON can hold.
func Read(ctx context.Context, s *Source, host string, n *Node) ([]Reading, error) {
	values, err := s.settings().read(ctx, s, host, n)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			return nil, fmt.Errorf("%s is not a number", v.Name)
		}
	}
	return values, nil
}

// reading is a value as the journal has it, scaled. JSON, which the journal is, has no
// infinities and no NaN, which radios report as text.
func (v *Value) reading(x float64) (Reading, error) {
	x *= v.Scale
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Reading{}, fmt.Errorf("expected a number, found %v", x)
	}
	return Reading{Name: v.Name, Value: x, Unit: v.Unit, Counter: v.Counter}, nil
}

// numberIn is the number that a text reads as: radios report decibels that way.
func numberIn(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, fmt.Errorf("expected a number, found the text %q", text[:min(len(text), 40)])
	}
	return x, nil
}

// hostPort is an address for people.
func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// TimeoutError reports that a source did not answer in time.
type TimeoutError struct {
	What   string
	Within time.Duration // how long it was given; the caller of [Read] knows
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s within %s", e.What, max(e.Within.Round(100*time.Millisecond), 100*time.Millisecond))
}

// describeError turns the errors of an address that does not answer into one sentence.
func describeError(protocol, place string, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers %s at %s: the address is there, the service is not", protocol, place)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Errorf("no way leads to %s for %s", place, protocol)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &TimeoutError{What: fmt.Sprintf("no answer to %s from %s", protocol, place)}
	}
	return fmt.Errorf("%s at %s: %w", protocol, place, err)
}

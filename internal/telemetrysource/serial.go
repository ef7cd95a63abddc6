package telemetrysource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.bug.st/serial"

	"linktrial/internal/yamldoc"
)

// KindSerial is the console of a radio, over a serial line: a command, and patterns in what
// it answers.
const KindSerial Kind = "serial"

// SerialVariable is the variable of the agent's environment that lists, separated by spaces
// or commas, the devices at which radios' consoles are. Profiles come from the orchestrator:
// without the list, a false one could type into any terminal of the node.
const SerialVariable = "LINKTRIAL_RADIO_SERIAL"

const (
	serialBaud     = 9600
	serialPause    = 50 * time.Millisecond // between two looks whether the time is up
	maxAnswer      = 64 << 10              // bytes of a console's answer that are read
	maxCommand     = 200                   // bytes, which a line's buffer takes at once
	maxPattern     = 256
	shownOfAnswer  = 60
	thatOfTheAgent = "serial" // the address of a source without a device
)

var deviceForm = regexp.MustCompile(`^/dev/[A-Za-z0-9][A-Za-z0-9._:/-]{0,120}$`)

var serialKind = Definition{
	Kind: KindSerial, Title: "Serial console", About: AboutRadio,
	Help: "a radio's console over a serial line (8 data bits, no parity, one stop bit): what it answers to a command",
	Keys: []Key{
		{"command", "what is typed, followed by a carriage return; empty: nothing, the console speaks by itself"},
		{"device", "such as `/dev/ttyUSB0`; unless stated, the one that the node's technician names. It must be one of those that are listed in `LINKTRIAL_RADIO_SERIAL` of the agent's environment (`radio_serial` of the inventory)"},
		{"baud", "9600 unless stated"},
		{"values", "`{name, pattern}`, the pattern a regular expression (RE2) with one group around the number, found in what the console sends; with `unit`, `scale` and `counter`"},
	},
	Place: pattern, PlaceKey: "pattern", PlaceTitle: "Pattern in the answer",
	Poll: PollBetweenTrials, Interval: radioInterval, // a command costs the radio's processor time
	Remedy:   "see that the cable is in the radio's console port, that nothing else has the device open, and that the console answers the profile's command without a login; or take the source out of the profile",
	settings: func() Settings { return &Serial{} },
}

// Serial is how a radio's console is asked.
type Serial struct {
	Device  string `json:"device,omitempty"` // empty: the one that the node's technician names
	Baud    int    `json:"baud"`             // bit/s
	Command string `json:"command,omitempty"`
}

func (c *Serial) parse(m yamldoc.Mapping, _ *Source) {
	f := m.Field("device")
	if c.Device = f.String(""); f.Present() && (!deviceForm.MatchString(c.Device) || strings.Contains(c.Device, "..")) {
		f.Problem(`expected a device such as "/dev/ttyUSB0", found %q`, c.Device)
	}
	c.Baud = int(m.Field("baud").Int(serialBaud, 50, 4_000_000))
	f = m.Field("command")
	if c.Command = f.String(""); len(c.Command) > maxCommand || strings.ContainsFunc(c.Command, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		f.Problem("expected one line of at most %d bytes, without control characters", maxCommand)
	}
}

// pattern is a regular expression with one group.
func pattern(v yamldoc.Value) string {
	s := v.String("")
	r, err := regexp.Compile(s)
	switch {
	case len(s) > maxPattern:
		v.Problem("%d bytes, expected at most %d", len(s), maxPattern)
	case err != nil:
		v.Problem("expected a regular expression, found %q: %v", s, err)
	case r.NumSubexp() != 1:
		v.Problem(`expected one group around the number, such as "SNR: *(-?[0-9.]+)", found %d in %q`, r.NumSubexp(), s)
	}
	return s
}

func (c *Serial) address() string {
	if c.Device == "" {
		return thatOfTheAgent
	}
	return c.Device
}

func (c *Serial) way(*Source) string {
	out := serialKind.Title
	if c.Device != "" {
		out += " at " + c.Device
	}
	out += fmt.Sprintf(", %d baud", c.Baud)
	if c.Command != "" {
		out += fmt.Sprintf(", command %q", c.Command)
	}
	return out
}

// deviceOf is the device at which the source's console is, of those that the technician
// lists.
func (c *Serial) deviceOf(n *Node) (string, error) {
	listed := n.SerialDevices
	if listed == nil {
		listed = words(os.Getenv(SerialVariable))
	}
	switch {
	case c.Device != "" && slices.Contains(listed, c.Device):
		return c.Device, nil
	case c.Device != "":
		return "", fmt.Errorf("the radio profile names %s, which %s of the agent's environment does not list: the node's technician lists the devices at which radios' consoles are", c.Device, SerialVariable)
	case len(listed) == 1:
		return listed[0], nil
	}
	return "", fmt.Errorf("the radio profile names no device, and %s of the agent's environment lists %d: expected one", SerialVariable, len(listed))
}

// serialTurns has, for each device, who reads it: two commands at once would get each
// other's answers.
var serialTurns sync.Map // string → chan struct{}

func (c *Serial) read(ctx context.Context, s *Source, _ string, n *Node) ([]Reading, error) {
	device, err := c.deviceOf(n)
	if err != nil {
		return nil, err
	}
	turn, _ := serialTurns.LoadOrStore(device, make(chan struct{}, 1))
	select {
	case turn.(chan struct{}) <- struct{}{}:
		defer func() { <-turn.(chan struct{}) }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s was in use by another source", device)
	}
	port, err := serial.Open(device, &serial.Mode{BaudRate: c.Baud, DataBits: 8, Parity: serial.NoParity, StopBits: serial.OneStopBit})
	if err != nil {
		return nil, describeDevice(device, err)
	}
	defer func() { _ = port.Close() }() // what was wanted of it is read
	values, err := c.ask(ctx, port, device, s.Values)
	if err != nil {
		return nil, err
	}
	return values, nil
}

// ask types the command and reads until every pattern is found.
func (c *Serial) ask(ctx context.Context, port serial.Port, device string, want []Value) ([]Reading, error) {
	if err := errors.Join(port.ResetInputBuffer(), port.SetReadTimeout(serialPause)); err != nil {
		return nil, describeDevice(device, err)
	}
	if c.Command != "" {
		if _, err := port.Write([]byte(c.Command + "\r")); err != nil {
			return nil, describeDevice(device, err)
		}
	}
	answer, part := make([]byte, 0, 1024), make([]byte, 1024)
	for {
		n, err := port.Read(part)
		if err != nil {
			return nil, describeDevice(device, err)
		}
		answer = append(answer, part[:n]...)
		values, missing, err := found(answer, want)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the console at %s: %w", device, err)
		case missing == nil:
			return values, nil
		case len(answer) > maxAnswer:
			return nil, fmt.Errorf("the console at %s sent more than %d bytes, and nothing that matches %s (%s)", device, maxAnswer, missing.Name, missing.Place)
		case ctx.Err() != nil && len(answer) == 0:
			return nil, &TimeoutError{What: "no answer from the console at " + device}
		case ctx.Err() != nil:
			return nil, &TimeoutError{What: fmt.Sprintf("nothing that matches %s (%s) from the console at %s, which sent %q", missing.Name, missing.Place, device, answer[:min(len(answer), shownOfAnswer)])}
		}
	}
}

// found takes the values from what a console has sent so far, or the first that is missing.
// A number at the end of it may be cut: it counts once something follows.
func found(answer []byte, want []Value) (out []Reading, missing *Value, err error) {
	for i := range want {
		v := &want[i]
		r, err := regexp.Compile(v.Place)
		if err != nil || r.NumSubexp() != 1 {
			return nil, nil, fmt.Errorf("%s: %q is no pattern with one group", v.Name, v.Place)
		}
		at := r.FindSubmatchIndex(answer)
		if at == nil || at[2] < 0 || at[3] == len(answer) {
			return nil, v, nil
		}
		x, err := numberIn(string(answer[at[2]:at[3]]))
		if err != nil {
			return nil, nil, fmt.Errorf("%s (%s): %w", v.Name, v.Place, err)
		}
		reading, err := v.reading(x)
		if err != nil {
			return nil, nil, fmt.Errorf("%s (%s): %w", v.Name, v.Place, err)
		}
		out = append(out, reading)
	}
	return out, nil, nil
}

// describeDevice turns the errors of a serial device into one sentence.
func describeDevice(device string, err error) error {
	var known *serial.PortError
	code := serial.PortErrorCode(-1)
	if errors.As(err, &known) {
		code = known.Code()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.EIO), code == serial.PortNotFound, code == serial.PortClosed:
		return fmt.Errorf("there is no %s, or nothing at it: is the cable connected?", device)
	case errors.Is(err, fs.ErrPermission), code == serial.PermissionDenied:
		return fmt.Errorf("this agent may not open %s: it needs the device's group (dialout), and of a unit DeviceAllow", device)
	case code == serial.PortBusy, errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("another program has %s open", device)
	case code == serial.InvalidSerialPort:
		return fmt.Errorf("%s is no serial device, or does not take the rate of the profile", device)
	}
	return fmt.Errorf("serial device %s: %w", device, err)
}

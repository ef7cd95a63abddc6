package telemetrysource

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// console is a radio's console at the other end of a pseudo-terminal: it echoes what is
// typed and answers each command by answer, in pieces. The device is returned.
func console(t *testing.T, answer func(command string) []string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	raw, err := master.SyscallConn()
	require.NoError(t, err)
	var number int
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	require.NoError(t, failed)
	device := fmt.Sprintf("/dev/pts/%d", number)
	// Held open: a master whose other end nobody has reports that it hung up.
	held, err := os.OpenFile(device, os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		lines := bufio.NewReader(master)
		for {
			command, err := lines.ReadString('\r')
			if err != nil {
				return
			}
			for _, piece := range append([]string{strings.TrimSuffix(command, "\r") + "\r\n"}, answer(strings.TrimSuffix(command, "\r"))...) {
				if _, err := io.WriteString(master, piece); err != nil {
					return
				}
			}
		}
	})
	t.Cleanup(func() { held.Close(); master.Close(); running.Wait() })
	return device
}

func consoleSource(c Serial, values ...Value) Source {
	if c.Baud == 0 {
		c.Baud = serialBaud
	}
	return Source{Name: "console", Kind: KindSerial, Settings: &c, Values: values}
}

func TestSerial(t *testing.T) {
	device := console(t, func(command string) []string {
		switch command {
		case "show rf":
			return []string{"  SNR: -1", "2.5 dB\r\n", "  TX power 20 W\r\nradio> "}
		case "show bad":
			return []string{"SNR: n/a\r\nradio> "}
		case "show cut":
			return []string{"SNR: 12"} // and nothing after it
		}
		return nil
	})
	node := Node{SerialDevices: []string{device}}
	snr := Value{Name: "snr", Place: `SNR: *(\S+)`, Unit: "dB", Scale: 1}
	power := Value{Name: "power", Place: `(?i)tx power (\d+)`, Unit: "mW", Scale: 1000}
	for _, c := range []struct {
		source Source
		want   string
	}{
		{consoleSource(Serial{Device: device, Command: "show rf"}, snr, power), "console snr=-12.5 dB power=20000 mW"},
		{consoleSource(Serial{Command: "show rf"}, power), "console power=20000 mW"},
		{consoleSource(Serial{Command: "show bad"}, snr), `snr (SNR: *(\S+)): expected a number, found the text "n/a"`},
		{consoleSource(Serial{Command: "show cut"}, snr), `nothing that matches snr (SNR: *(\S+)) from the console at ` + device + `, which sent "show cut\r\nSNR: 12"`},
		{consoleSource(Serial{}, snr), "no answer from the console at " + device},
		{consoleSource(Serial{Command: "show rf", Device: "/dev/ttyS99"}, snr), "/dev/ttyS99, which LINKTRIAL_RADIO_SERIAL of the agent's environment does not list"},
	} {
		require.Contains(t, check(t, node, c.source), c.want)
	}
	// One after the other: each of two sources at once gets the answer to its own command.
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			if got := check(t, node, consoleSource(Serial{Command: "show rf"}, snr)); got != "console snr=-12.5 dB" {
				t.Error(got)
			}
		})
	}
	both.Wait()
}

// Devices that cannot be read are told in one sentence each.
func TestSerialDevices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	none := filepath.Join(t.TempDir(), "none")
	for device, want := range map[string]string{
		none: "there is no " + none + ", or nothing at it",
		file: file + " is no serial device",
	} {
		require.Contains(t, check(t, Node{SerialDevices: []string{device}}, consoleSource(Serial{Device: device}, Value{Name: "x", Place: "(x)", Scale: 1})), want)
	}
	for _, listed := range [][]string{{}, {"/dev/ttyUSB0", "/dev/ttyUSB1"}} {
		require.Contains(t, check(t, Node{SerialDevices: listed}, consoleSource(Serial{})), fmt.Sprintf("the radio profile names no device, and LINKTRIAL_RADIO_SERIAL of the agent's environment lists %d", len(listed)))
	}
	t.Setenv(SerialVariable, none+", other")
	require.Contains(t, check(t, Node{}, consoleSource(Serial{Device: none})), "there is no "+none)
}

func TestParseSerial(t *testing.T) {
	const begin = "- {name: console, kind: serial, source: the manual, "
	sources, err := parse(begin + `device: /dev/ttyUSB0, baud: 115200, command: show rf, values: [{name: snr, pattern: 'SNR: *(-?[\d.]+)', unit: dB}]}`)
	require.NoError(t, err)
	s := sources[0]
	require.Equal(t, "/dev/ttyUSB0", s.Address())
	require.Equal(t, `Serial console at /dev/ttyUSB0, 115200 baud, command "show rf"`, s.Way())
	require.Equal(t, PollBetweenTrials, s.Poll)
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"console","kind":"serial","on":"real","source":"the manual","poll":"between-trials","interval_ns":10000000000,"device":"/dev/ttyUSB0","baud":115200,"command":"show rf","values":[{"name":"snr","pattern":"SNR: *(-?[\\d.]+)","unit":"dB","scale":1}]}`, string(b))

	sources, err = parse(begin + "values: [{name: snr, pattern: '(x)'}]}")
	require.NoError(t, err)
	require.Equal(t, "serial", sources[0].Address(), "the assignment names it, too")

	for text, want := range map[string]string{
		"device: ttyUSB0, values: [{name: a, pattern: (a)}]":            `expected a device such as "/dev/ttyUSB0"`,
		"device: /dev/../etc/passwd, values: [{name: a, pattern: (a)}]": `expected a device such as "/dev/ttyUSB0"`,
		"baud: 3, values: [{name: a, pattern: (a)}]":                    "expected",
		`command: "a\nb", values: [{name: a, pattern: (a)}]`:            "without control characters",
		"values: [{name: a, pattern: a}]":                               "expected one group around the number",
		"values: [{name: a, pattern: '(a)(b)'}]":                        "found 2 in",
		"values: [{name: a, pattern: '(a'}]":                            "expected a regular expression",
		"target: radio, values: [{name: a, pattern: (a)}]":              "a source of kind serial has none; it belongs to snmp, http and gpsd",
	} {
		_, err := parse(begin + text + "}")
		require.ErrorContains(t, err, want)
	}
}

// FuzzConsole: whatever a console sends, each value is a number or the answer is incomplete.
func FuzzConsole(f *testing.F) {
	f.Add([]byte("SNR: 12.5 dB\r\n"), `SNR: *(\S+)`)
	f.Add([]byte("SNR: 1e999\r\n"), `SNR: (.*)\r`)
	f.Add([]byte("x"), `(y)?x`)
	f.Fuzz(func(t *testing.T, answer []byte, place string) {
		values, missing, err := found(answer, []Value{{Name: "x", Place: place, Scale: 1}})
		if err == nil && missing == nil && len(values) != 1 {
			t.Errorf("%v", values)
		}
		if len(values) == 1 {
			if _, err := json.Marshal(values); err != nil {
				t.Error(err)
			}
		}
	})
}

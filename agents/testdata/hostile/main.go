// Command hostile is a driver that tries what a driver must not be able to do. Its
// options name the targets; it reports for each what came of it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// try does one thing: "read:PATH", "write:PATH", "connect:PATH", "kill:PID", "trace:PID",
// "have:CAPABILITY-NUMBER", "log:NAME", "set:SETTING", "send:ADDRESS".
func try(what, logs string) error {
	kind, target, _ := strings.Cut(what, ":")
	number, _ := strconv.Atoi(target)
	switch kind {
	case "read":
		_, err := os.ReadFile(target)
		return err
	case "list":
		_, err := os.ReadDir(target)
		return err
	case "write":
		return os.WriteFile(target, []byte("x"), 0o600)
	case "set": // a setting, to what it is
		b, err := os.ReadFile(target)
		if err == nil {
			err = os.WriteFile(target, b, 0)
		}
		return err
	case "send":
		c, err := net.Dial("udp", target)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		return err
	case "connect":
		c, err := net.Dial("unix", target)
		if err == nil {
			c.Close()
		}
		return err
	case "kill":
		return unix.Kill(number, 0)
	case "trace":
		return unix.PtraceSeize(number)
	case "have":
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		if (data[number/32].Permitted|data[number/32].Inheritable)&(1<<(number%32)) == 0 {
			return fmt.Errorf("capability %d is not held", number)
		}
	case "privileges":
		n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err == nil && n == 1 {
			return fmt.Errorf("no new privileges")
		}
		return err
	case "temporary":
		f, err := os.CreateTemp("", "")
		if err == nil {
			_, err = f.WriteString("x")
		}
		return err
	case "log":
		return os.WriteFile(logs+"/"+target, []byte("of the driver\n"), 0o600)
	default:
		return fmt.Errorf("%q is not known", kind)
	}
	return nil
}

func main() {
	var p struct {
		Options map[string][]string `json:"options"`
		Logs    string              `json:"log_folder"`
	}
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	done := map[string]string{"user": strconv.Itoa(os.Getuid()), "temporary folder": os.TempDir()}
	for _, what := range p.Options["try"] {
		done[what] = "done"
		if err := try(what, p.Logs); err != nil {
			done[what] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(done)
}

// A driver that tells on its log what a container lets it do.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"linktrial/protocols/contract"
)

func main() {
	doc, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(contract.ExitFailed)
	}
	p, err := contract.ParseParameters(doc)
	if err != nil {
		os.Exit(contract.ExitFailed)
	}
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		for _, name := range []string{"CapEff", "CapBnd", "NoNewPrivs", "Uid"} {
			if strings.HasPrefix(line, name+":") {
				fmt.Fprintln(os.Stderr, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	fmt.Fprintln(os.Stderr, "write:", os.WriteFile("/mark", nil, 0o644))
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		fmt.Fprintln(os.Stderr, "interface:", i.Name)
	}
	json.NewEncoder(os.Stdout).Encode(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "inside"}})
	switch p.Options["do"] {
	case "eat":
		debug.SetGCPercent(-1)
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			all = append(all, b)
			fmt.Fprintln(io.Discard, len(all))
		}
	case "sleep":
		time.Sleep(time.Hour) // and no care for signals
	}
}

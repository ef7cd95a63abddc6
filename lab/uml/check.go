package uml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"linktrial/internal/scratch"
)

// checkScript is the first process of a guest that is only checked. Its end
// is a panic of the kernel, which ends the guest.
const checkScript = `#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc
read before rest </proc/uptime
sleep 1000
read after rest </proc/uptime
echo "check time $before $after"
echo "check random $(od -An -N32 -tx1 /dev/urandom | tr -d '\n')"
echo "check congestion $(cat /proc/sys/net/ipv4/tcp_available_congestion_control)"
echo "check sctp $(grep -c '^SCTP ' /proc/net/protocols)"
echo "check root $( (touch "$0.written") 2>/dev/null && echo writable || echo read-only)"
echo "check done"
`

const checkLimit = 2 * time.Minute

// check boots a kernel twice and compares its output with what the lab needs.
func check(ctx context.Context, program string) error {
	first, err := checkBoot(ctx, program)
	if err != nil {
		return err
	}
	second, err := checkBoot(ctx, program)
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("two boots differ:\n%s\n%s", first, second)
	}
	return checkSaid(first)
}

func checkSaid(said string) error {
	words := map[string]string{}
	for l := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(l), "check "); ok {
			key, value, _ := strings.Cut(rest, " ")
			words[key] = strings.TrimSpace(value)
		}
	}
	if _, done := words["done"]; !done {
		return fmt.Errorf("the check did not complete: %s", lastLines(said, 5))
	}
	var before, after float64
	if _, err := fmt.Sscan(words["time"], &before, &after); err != nil || !(after-before >= 1000) { // "NaN" is a number to Sscan
		return fmt.Errorf("1000 s of sleep made the clock go from %q", words["time"])
	}
	have := strings.Fields(words["congestion"])
	for _, c := range []string{"reno", "cubic", "bbr", "westwood", "veno", "vegas", "radio", "radio_newrto"} {
		if !contains(have, c) {
			return fmt.Errorf("it has no congestion control %s, only %s", c, words["congestion"])
		}
	}
	if words["sctp"] == "0" || words["sctp"] == "" {
		return errors.New("it has no SCTP")
	}
	if words["root"] != "read-only" {
		return errors.New("the host's file system can be written to")
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func checkBoot(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	f, err := scratch.New(scratchPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Remove() }()
	dir := f.Path
	script := filepath.Join(dir, "check")
	if err := os.WriteFile(script, []byte(checkScript), 0o755); err != nil {
		return "", err
	}
	said, err := runCommand(ctx, dir, nil, nil, program, append(kernelArguments(dir, 128<<20, 1), "init="+script)...)
	if ctx.Err() != nil {
		return "", fmt.Errorf("a first boot did not end within %s: %s", checkLimit, lastLines(said, 5))
	}
	// The panic that ends the guest gives an error, and a stack of addresses.
	var kept []string
	for l := range strings.Lines(said) {
		if strings.HasPrefix(l, "check ") {
			kept = append(kept, strings.TrimSpace(l))
		}
	}
	if len(kept) == 0 {
		return "", fmt.Errorf("it does not boot (%w): %s", err, lastLines(said, 10))
	}
	return strings.Join(kept, "\n"), nil
}

// killGroup ends a process and what it started in its group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended already
}

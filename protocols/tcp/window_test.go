package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/tcp/socket"
)

func TestWindow(t *testing.T) {
	known := &contract.Link{RateBitsPerSecond: 16_000, RoundTripMS: 2500}
	for name, tt := range map[string]struct {
		p    contract.Parameters
		want int
		bad  bool
	}{
		"radio":         {p: contract.Parameters{Role: contract.RoleClient, Link: known, Options: map[string]any{"congestion": "radio"}}, want: 5000},
		"newRTO":        {p: contract.Parameters{Role: contract.RoleClient, Link: known, Options: map[string]any{"congestion": "radio_newrto"}}, want: 5000},
		"cubic":         {p: contract.Parameters{Role: contract.RoleClient, Link: known, Options: map[string]any{"congestion": "cubic"}}},
		"given":         {p: contract.Parameters{Role: contract.RoleClient, Link: known, Options: map[string]any{"congestion": "radio", "window": int64(3000)}}, want: 3000},
		"not fixed":     {p: contract.Parameters{Role: contract.RoleClient, Link: known, Options: map[string]any{"congestion": "cubic", "window": int64(3000)}}, bad: true},
		"server":        {p: contract.Parameters{Role: contract.RoleServer, Options: map[string]any{"congestion": "radio"}}},
		"no knowledge":  {p: contract.Parameters{Role: contract.RoleClient, Options: map[string]any{"congestion": "radio"}}, bad: true},
		"tiny":          {p: contract.Parameters{Role: contract.RoleClient, Link: &contract.Link{RateBitsPerSecond: 1}, Options: map[string]any{"congestion": "radio"}}, want: 1},
		"beyond a mark": {p: contract.Parameters{Role: contract.RoleClient, Link: &contract.Link{RateBitsPerSecond: 1e12, RoundTripMS: 1e6}, Options: map[string]any{"congestion": "radio"}}, want: 1<<31 - 1},
	} {
		got, err := window(&tt.p)
		if got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%s: %d, %v; expected %d", name, got, err, tt.want)
		}
	}
}

// TestWindowReachesSocket: as the mark, where the congestion control looks.
func TestWindowReachesSocket(t *testing.T) {
	needRoot(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := (socket.Settings{Mark: 250_125}).Apply(fd); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK); n != 250_125 || err != nil {
		t.Errorf("mark %d, %v", n, err)
	}
}

// Command split is a driver of the role relay: it ends a connection at a node on
// the way and carries its bytes onward over another one, of the same transport or
// of another. Comes in and goes out: the driver contract
// (docs/driver-contract.md, "The relay").
package main

import (
	"context"
	_ "embed"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/haul"
	"linktrial/protocols/haul/option"
	"linktrial/protocols/tcp/socket"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	code := harness.Run(manifest, harness.Driver{Query: leastPrivilege, Relay: relay}, os.Stdin, os.Stdout, os.Stderr)
	socket.Release()
	os.Exit(code)
}

// leastPrivilege is query in a process of its own: before anything else it gives up
// what this run has no use for.
func leastPrivilege(ctx context.Context, p *contract.Parameters) (*contract.Info, error) {
	if p.Role != contract.RoleQuery {
		if err := socket.Relinquish(p.Options); err != nil {
			slog.Warn("capabilities are not given up", "error", err)
		}
	}
	return query(ctx, p)
}

// What a side can speak.
const (
	overTCP  = "tcp"
	overHaul = "haul"
)

// haulPrefix begins the names of options that are haul's.
const haulPrefix = "haul_"

var anyAddress netip.AddrPort

func address(e contract.Endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }

// over is what a side ("accept", "connect") speaks.
func over(p *contract.Parameters, side string) string {
	s, _ := p.Options[side].(string)
	return s
}

// query tries the settings of both sides.
func query(_ context.Context, p *contract.Parameters) (*contract.Info, error) {
	there, err := socket.Usable()
	if err != nil {
		return nil, err
	}
	var origins map[string]string
	if p.Role == contract.RoleQuery {
		var names []string
		names, origins = socket.Additional(there)
		there = append(there, names...)
	}
	i := &contract.Info{Choices: map[string][]string{}, Detail: map[string]string{}}
	for _, name := range []string{"congestion", "accept_congestion", "connect_congestion"} {
		i.Choices[name] = there
	}
	for c, origin := range origins {
		i.Detail["congestion="+c] = origin
	}
	names := map[string]string{overTCP: "linux-kernel", overHaul: option.Implementation}
	if p.Role == contract.RoleQuery {
		i.Implementation = names[overTCP] + ", " + names[overHaul]
		return i, nil
	}
	var both []string
	for _, side := range []string{"accept", "connect"} {
		if over(p, side) == overTCP {
			if err := settings(p, side).Try(); err != nil {
				return nil, err
			}
		} else if _, err := haulOptions(p); err != nil {
			return nil, err
		}
		i.Detail[side] = names[over(p, side)]
		both = append(both, names[over(p, side)])
	}
	i.Implementation = strings.Join(slices.Compact(both), " to ")
	return i, nil
}

// settings are those of a side's sockets. The device is none of them: the two
// sides of a relay need not share an interface.
func settings(p *contract.Parameters, side string) socket.Settings {
	o := map[string]any{}
	for _, name := range []string{"congestion", "nodelay", "mss", "send_buffer", "receive_buffer", "syn_retries", "user_timeout"} {
		if v, ok := p.Options[name]; ok {
			o[name] = v
		}
	}
	if v, ok := p.Options[side+"_congestion"]; ok {
		o["congestion"] = v
	}
	return socket.Settings{Options: o, DSCP: p.DSCP}
}

// haulOptions are those of a side that speaks haul.
func haulOptions(p *contract.Parameters) (haul.Options, error) {
	o, err := option.Read(p.Options, haulPrefix, p.Link)
	o.DSCP = p.DSCP
	return o, err
}

// side is what accepts connections.
type side struct {
	accept func() (harness.Stream, error)
	close  func() error
}

// relay opens the port.
func relay(ctx context.Context, p *contract.Parameters) (*harness.Relay, error) {
	w, err := newWatcher()
	if err != nil {
		return nil, err
	}
	var s *side
	if over(p, "accept") == overHaul {
		s, err = listenHaul(p)
	} else {
		s, err = listenTCP(ctx, p, w)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	buffer, _ := p.Options["buffer"].(int64)
	return &harness.Relay{
		Accept: s.accept, Close: s.close, Buffer: int(buffer),
		Dial: func(ctx context.Context) (harness.Stream, error) {
			if over(p, "connect") == overHaul {
				return dialHaul(ctx, p)
			}
			return dialTCP(ctx, p, w)
		},
	}, nil
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/radio"
	"linktrial/lab/uml/guest"
)

// costPair is a small transfer and a large one. The difference of their costs is the
// cost of packets, without that of boot, agents and processes.
type costPair struct{ small, large virtualCase }

var costPairs = []costPair{
	{virtualCase{"tcp", "64 kbit/s", "16 KiB"}, virtualCase{"tcp", "64 kbit/s", "272 KiB"}},
	{virtualCase{"udt", "64 kbit/s", "16 KiB"}, virtualCase{"udt", "64 kbit/s", "272 KiB"}},
	{virtualCase{"tcp", "2 Mbit/s", "256 KiB"}, virtualCase{"tcp", "2 Mbit/s", "2304 KiB"}},
	{virtualCase{"udt", "2 Mbit/s", "256 KiB"}, virtualCase{"udt", "2 Mbit/s", "2304 KiB"}},
}

// costProcesses are the columns of the tables.
var costProcesses = []string{guest.Emulator, string(radio.RoleClient), string(radio.RoleServer), string(radio.RoleRelay)}

// costs prints the cost of a packet at a hop, by process.
func (b *virtualBench) costs(ctx context.Context) error {
	var cases []virtualCase
	for _, p := range costPairs {
		cases = append(cases, p.small, p.large)
	}
	counted, err := b.run(ctx, "count", false, cases)
	if err != nil {
		return err
	}
	traced, why := []virtualRun(nil), ""
	if _, err := exec.LookPath(guest.TraceProgram); err != nil {
		why = "not counted: the package strace is not installed"
	} else if traced, err = b.run(ctx, "trace", true, cases); err != nil {
		return err
	}
	for _, r := range append(slices.Clone(counted), traced...) {
		if r.Err != nil {
			return fmt.Errorf("bench of the virtual-time lab: %s at %s: %w", r.protocol, r.rate, r.Err)
		}
	}
	fmt.Println("\nVirtual time: what a packet costs at each hop (the guest's scheduler and strace inside the guest; the emulator is the guest's first process, the others are agents with their drivers)")
	if err := terminal.Columns("DRIVER\tRATE\tPACKETS × HOPS\tCONTEXT SWITCHES\tEMULATOR\tCLIENT\tSERVER\tRELAY\tON THE HOST\tPROCESSOR TIME", func(w io.Writer) {
		for i := 0; i < len(counted); i += 2 {
			g := growth{counted[i], counted[i+1]}
			fmt.Fprintf(w, "%s\t%s\t%d", g.large.protocol, g.large.rate, g.packetHops())
			shares(w, func(process string) float64 {
				return g.of(func(r virtualRun) int64 { return r.Switches[process] })
			})
			fmt.Fprintf(w, "\t%.1f\t%.0f µs\n", g.of(func(r virtualRun) int64 { return r.Host.Switches }),
				g.of(func(r virtualRun) int64 { return int64(r.Host.Processor) })/1e3)
		}
	}); err != nil {
		return err
	}
	fmt.Println()
	if why != "" {
		fmt.Println("System calls", why)
		return nil
	}
	if err := terminal.Columns("DRIVER\tRATE\tPACKETS × HOPS\tSYSTEM CALLS\tEMULATOR\tCLIENT\tSERVER\tRELAY", func(w io.Writer) {
		for i := 0; i < len(traced); i += 2 {
			g := growth{traced[i], traced[i+1]}
			fmt.Fprintf(w, "%s\t%s\t%d", g.large.protocol, g.large.rate, g.packetHops())
			shares(w, func(process string) float64 { return sum(g.calls(process)) })
			fmt.Fprintln(w)
		}
	}); err != nil {
		return err
	}
	fmt.Println()
	for i := 0; i < len(traced); i += 2 {
		g, host := growth{traced[i], traced[i+1]}, growth{counted[i], counted[i+1]}
		g.dominant(host)
	}
	return nil
}

// shares prints a sum and the share of each process.
func shares(w io.Writer, of func(process string) float64) {
	total := 0.0
	for _, p := range costProcesses {
		total += of(p)
	}
	fmt.Fprintf(w, "\t%.1f", total)
	for _, p := range costProcesses {
		// A difference below the rounding counts as none.
		share := max(0, of(p))
		fmt.Fprintf(w, "\t%.1f (%.0f %%)", share, 100*share/total)
	}
}

// growth holds the results of a pair.
type growth struct{ small, large virtualRun }

func (g growth) packetHops() int64 { return g.large.packetHops - g.small.packetHops }

// of returns the growth of a value for each packet and hop.
func (g growth) of(value func(virtualRun) int64) float64 {
	return float64(value(g.large)-value(g.small)) / float64(g.packetHops())
}

// calls returns a process's system calls for each packet and hop.
func (g growth) calls(process string) map[string]float64 {
	out := map[string]float64{}
	for name := range g.large.SystemCalls[process] {
		out[name] = g.of(func(r virtualRun) int64 { return r.SystemCalls[process][name] })
	}
	return out
}

func sum(m map[string]float64) float64 {
	total := 0.0
	for _, v := range m {
		total += v
	}
	return total
}

// mostShown is the number of system calls that are named.
const mostShown = 5

// dominant prints where most of the time goes.
func (g growth) dominant(host growth) {
	type one struct {
		name string
		each float64
	}
	var all []one
	total := 0.0
	for _, p := range costProcesses {
		for name, v := range g.calls(p) {
			all = append(all, one{p + " " + name, v})
			total += v
		}
	}
	slices.SortFunc(all, func(a, b one) int {
		return cmp.Or(cmp.Compare(b.each, a.each), strings.Compare(a.name, b.name))
	})
	var words []string
	for _, o := range all[:min(mostShown, len(all))] {
		words = append(words, fmt.Sprintf("%s %.1f", o.name, o.each))
	}
	fmt.Printf("%s at %s: a system call costs %.1f µs of the host's processor; most are %s\n", g.large.protocol, g.large.rate,
		host.of(func(r virtualRun) int64 { return int64(r.Host.Processor) })/1e3/total, strings.Join(words, ", "))
}

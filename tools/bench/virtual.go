package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/lab/uml"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/sheet"
)

// virtualPlan has one transfer over a relay, on a perfect link of a given rate.
const virtualPlan = `name: bench-virtual
radio: reference-link
topology: vip-lot
size: %s
treatments:
  - {name: %s, label: %s, protocol: %s, options: {%s}}
groups:
  - {name: bench, sweep: [{name: rate, set: rate, values: [%s]}], iterations: 1}
iterations: 1
order: fixed
seed: 1
limits: {connect: 1m, transfer: 2h, attempts: 1}
`

// virtualCase is one transfer of the bench.
type virtualCase struct{ protocol, rate, size string }

func (c virtualCase) options() string {
	if c.protocol == "tcp" {
		return "congestion: cubic"
	}
	return ""
}

// virtualSpeeds take about two minutes of virtual time each, so that boot and start of
// the agents matter little.
var virtualSpeeds = []virtualCase{
	{"tcp", "16 kbit/s", "256 KiB"}, {"tcp", "64 kbit/s", "1 MiB"}, {"tcp", "256 kbit/s", "4 MiB"}, {"tcp", "1 Mbit/s", "8 MiB"}, {"tcp", "2 Mbit/s", "16 MiB"},
	{"sctp", "16 kbit/s", "256 KiB"}, {"sctp", "64 kbit/s", "1 MiB"}, {"sctp", "2 Mbit/s", "16 MiB"},
	{"udt", "16 kbit/s", "256 KiB"}, {"udt", "64 kbit/s", "1 MiB"}, {"udt", "256 kbit/s", "4 MiB"}, {"udt", "1 Mbit/s", "8 MiB"}, {"udt", "2 Mbit/s", "16 MiB"},
}

// virtualRun is the result of one case.
type virtualRun struct {
	virtualCase
	uml.SheetResult
	packetHops int64 // packets on the air, each counted at every hop
}

// virtualBench runs cases, one guest at a time, so that guests do not compete.
type virtualBench struct {
	settings *setting.Settings
	kernel   uml.Kernel
	dir      string
	folders  driverdigest.Cache
}

// newVirtualBench makes a folder for guests; the error is [uml.ErrNoKernel] where there
// is none to boot.
func newVirtualBench(s *setting.Settings) (b *virtualBench, remove func(), err error) {
	kernel, err := uml.CachedKernel("")
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "linktrial-bench-")
	if err != nil {
		return nil, nil, err
	}
	return &virtualBench{settings: s, kernel: kernel, dir: dir}, func() { os.RemoveAll(dir) }, nil
}

func (b *virtualBench) run(ctx context.Context, name string, trace bool, cases []virtualCase) ([]virtualRun, error) {
	var out []virtualRun
	for i, c := range cases {
		document := fmt.Appendf(nil, virtualPlan, c.size, c.protocol, c.protocol, c.protocol, c.options(), c.rate)
		result, err := b.plan(ctx, fmt.Sprintf("%s-%d", name, i), document, uml.RunConfig{Count: !trace, Trace: trace})
		if err != nil {
			return nil, err
		}
		r := virtualRun{virtualCase: c, SheetResult: result}
		if r.Err == nil {
			if r.packetHops, err = packetHops(r.Journals[radio.RoleClient]); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// plan executes the first run of a plan in one guest, whose files are in the folder of
// that name.
func (b *virtualBench) plan(ctx context.Context, name string, document []byte, cfg uml.RunConfig) (uml.SheetResult, error) {
	cat, err := b.settings.LoadCatalog()
	if err != nil {
		return uml.SheetResult{}, err
	}
	keys, err := signing.Ephemeral()
	if err != nil {
		return uml.SheetResult{}, err
	}
	p, err := plan.Parse(ctx.Err, "bench", document, cat)
	if err != nil {
		return uml.SheetResult{}, err
	}
	sheets, err := sheet.Compile(ctx.Err, p)
	if err != nil {
		return uml.SheetResult{}, err
	}
	if err := b.addDigests(cat, sheets[0]); err != nil {
		return uml.SheetResult{}, err
	}
	encoded, err := sheets[0].Encode()
	if err != nil {
		return uml.SheetResult{}, err
	}
	cfg.Executable, cfg.Kernel, cfg.Drivers, cfg.Trust, cfg.Jobs, cfg.Seed = b.settings.Program, b.kernel, b.settings.Drivers, []signature.PublicKey{keys.Keys()[0].Key}, 1, 1
	cfg.Dir = filepath.Join(b.dir, name)
	cfg.Sheets = []uml.Sheet{{Run: "bench", Document: encoded, Signature: keys.Sign("bench", encoded), Network: sheets[0].Network, Trials: len(sheets[0].Trials)}}
	result, err := uml.Run(ctx, cfg)
	if err != nil {
		return uml.SheetResult{}, err
	}
	return result.Sheets[0], nil
}

// addDigests adds the digests of this machine's drivers to a sheet.
func (b *virtualBench) addDigests(cat *catalog.Catalog, s *runsheet.Sheet) error {
	for i := range s.Treatments {
		t := &s.Treatments[i]
		if t.Missing != "" {
			continue
		}
		f, err := b.folders.Folder(cat.DriverDir(t.Protocol))
		if err != nil {
			return err
		}
		t.Digests = []string{string(f.Digest)}
	}
	return nil
}

// packetHops counts the packets of all trials at every hop. It fails where a trial did
// not succeed: its results could not be compared.
func packetHops(path string) (n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	_, err = journal.Scan(f, func(r journal.Record, _ int64) error {
		if r.Type != journal.TypeAttemptEnded {
			return nil
		}
		var e journal.AttemptEnded
		if err := json.Unmarshal(r.Body, &e); err != nil {
			return err
		}
		if e.Verdict != journal.Succeeded || e.Radio == nil {
			return fmt.Errorf("a trial of the bench %s: %s", e.Verdict, e.Message)
		}
		for _, h := range e.Radio.Hops {
			n += h.SentPackets
		}
		return nil
	})
	return n, err
}

// benchVirtual measures the speed of the virtual-time lab and where its time goes.
func benchVirtual(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nVirtual time: a transfer over a relay, on a perfect link, one guest")
	b, remove, err := newVirtualBench(s)
	if errors.Is(err, uml.ErrNoKernel) {
		fmt.Println("not measured:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer remove()
	runs, err := b.run(ctx, "speed", false, virtualSpeeds)
	if err != nil {
		return err
	}
	if err := terminal.Columns("DRIVER\tRATE\tTRANSFER\tVIRTUAL TIME\tWALL TIME\tTIMES AS FAST AS REAL\tPROCESSOR TIME\tBY PROCESSOR TIME\tSTART TO FIRST TRIAL", func(w io.Writer) {
		for _, r := range runs {
			if r.Err != nil {
				fmt.Fprintf(w, "%s\t%s\t%s\t%v\n", r.protocol, r.rate, r.size, r.Err)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%.0f s\t%.2f s\t%.0f\t%.2f s\t%.0f\t%.2f s\n", r.protocol, r.rate, r.size, r.Virtual.Seconds(),
				r.Wall.Seconds(), r.Virtual.Seconds()/r.Wall.Seconds(), r.Host.Processor.Seconds(),
				r.Virtual.Seconds()/r.Host.Processor.Seconds(), r.ToBegin.Seconds())
		}
	}); err != nil {
		return err
	}
	return b.costs(ctx)
}

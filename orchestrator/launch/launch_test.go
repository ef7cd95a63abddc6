package launch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/library"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const manifest = `
name: %[1]s
title: %[1]s
summary: a test's driver
version: 1.0.0
contract: 2
command: [./%[1]s]
network: tcp
options:
  congestion: {type: string, from_node: true, help: whatever the node has}
`

const document = `name: demo
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: one, protocol: alpha, options: {congestion: cubic}}
  - {name: two, protocol: beta}
iterations: 2
seed: 1
`

// rig is a launcher over the real engine, fleet and store.
type rig struct {
	*launch.Launcher
	t       *testing.T
	store   *store.Store
	drivers string // folder
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, store: storetest.Open(t), drivers: t.TempDir()}
	for _, name := range []string{"alpha", "beta"} {
		require.NoError(t, os.Mkdir(filepath.Join(r.drivers, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(r.drivers, name, "driver.yaml"), fmt.Appendf(nil, manifest, name), 0o644))
	}
	cat, err := catalog.Load(catalog.Config{DriversDir: r.drivers})
	require.NoError(t, err)
	engine, err := campaign.Start(t.Context(), campaign.Config{Store: r.store})
	require.NoError(t, err)
	t.Cleanup(engine.Stop)
	fl, err := fleet.Start(t.Context(), fleet.Config{Store: r.store, Nodes: engine.Nodes, Catalog: cat})
	require.NoError(t, err)
	t.Cleanup(fl.Stop)
	keys, err := signing.Ephemeral()
	require.NoError(t, err)
	r.Launcher = &launch.Launcher{Catalog: cat, Engine: engine, Fleet: fl, Trust: signing.New(signing.Config{Keys: keys, Store: r.store, Catalog: cat, Nodes: engine.Nodes.List})}
	return r
}

// connect keeps a node of each role connected until the test ends.
func (r *rig) connect(change func(*nodes.Registration)) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	r.t.Cleanup(func() { cancel(); wg.Wait() })
	for _, role := range storetest.Roles {
		x := nodes.Registration{Name: string(role), Role: string(role), Version: "1", Emulated: true, RadioAddress: radio.Addresses[role], Incarnation: "1",
			Drivers: []nodes.Driver{{Name: "alpha", Version: "1.0.0", Choices: map[string]string{"congestion": "cubic,reno"}}, {Name: "beta", Version: "1.0.0"}}}
		change(&x)
		require.NoError(r.t, r.Engine.Nodes.Register(ctx, x))
		wg.Go(func() {
			for revision := int64(0); ctx.Err() == nil; {
				var err error
				if revision, _, err = r.Engine.Nodes.Poll(ctx, x.Name, x.Incarnation, revision, 1, 10*time.Second); err != nil {
					return
				}
			}
		})
	}
	require.Eventually(r.t, func() bool {
		for _, n := range r.Engine.Nodes.List() {
			if !n.Connected {
				return false
			}
		}
		return true
	}, 10*time.Second, time.Millisecond)
}

func (r *rig) sheet(run string) *runsheet.Sheet {
	r.t.Helper()
	encoded, err := r.store.RunSheet(r.t.Context(), run)
	require.NoError(r.t, err)
	s, err := runsheet.Decode(encoded)
	require.NoError(r.t, err)
	return s
}

func (r *rig) empty() {
	r.t.Helper()
	all, err := rpcdb.New(r.store).NewestOverviews(r.t.Context(), 10)
	require.NoError(r.t, err)
	require.Empty(r.t, all, "a refused plan was queued")
}

func request(change ...string) launch.Request {
	return launch.Request{File: "demo.yaml", Text: []byte(strings.NewReplacer(change...).Replace(document)), Name: "evening"}
}

func TestFaultsOfAPlan(t *testing.T) {
	r := newRig(t)
	_, err := r.Start(t.Context(), request("prc-117g-anw2c", "nowhere", "seed: 1", "seed: x"))
	var faults yamldoc.Problems
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, 2)
	require.Contains(t, faults[0].String(), "demo.yaml:2:8: ")
	r.empty()
}

// Sheets name the drivers of the orchestrator, and those that people approved.
func TestDigests(t *testing.T) {
	r := newRig(t)
	r.connect(func(*nodes.Registration) {})
	approved := "sha256:" + strings.Repeat("ab", 32)
	require.NoError(t, r.Trust.Approve(t.Context(), "beta", approved, "for the test", "test"))
	started, err := r.Start(t.Context(), request())
	require.NoError(t, err)
	require.Len(t, started.Runs, 1)
	s := r.sheet(started.Runs[0])
	require.Len(t, s.Treatment("one").Digests, 1)
	require.Len(t, s.Treatment("two").Digests, 2)
	require.Contains(t, s.Treatment("two").Digests, approved)
}

func TestDriverWithoutDigest(t *testing.T) {
	r := newRig(t)
	r.connect(func(*nodes.Registration) {})
	require.NoError(t, os.RemoveAll(filepath.Join(r.drivers, "beta")))
	_, err := r.Start(t.Context(), request())
	var missing launch.Missing
	require.ErrorAs(t, err, &missing)
	require.Len(t, missing, 1)
	require.Contains(t, missing[0], "driver beta of the orchestrator: ")
	r.empty()
}

// Treatments that nodes do not support are missing from the sheet; where that is all of
// them, the plan does not start.
func TestUnsupportedTreatments(t *testing.T) {
	r := newRig(t)
	r.connect(func(x *nodes.Registration) { x.Drivers[0].Choices["congestion"] = "reno" })
	started, err := r.Start(t.Context(), request())
	require.NoError(t, err)
	s := r.sheet(started.Runs[0])
	const why = "the kernel of client and server has no congestion control cubic"
	require.Equal(t, why, s.Treatment("one").Missing)
	require.Empty(t, s.Treatment("two").Missing)
	require.NoError(t, r.Engine.Abort(t.Context(), started.Campaign, ""))

	_, err = r.Start(t.Context(), request("  - {name: two, protocol: beta}\n", ""))
	require.Equal(t, launch.Missing{"treatment one: " + why}, err)
}

// Real radios need a fresh preflight: a plan that requires it does not start without,
// and the results of any other say what it lacked.
func TestUnproven(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	r.connect(func(x *nodes.Registration) { x.Emulated, x.Radio = false, "prc-117g-anw2c" })
	p := request()
	p.Preflight = true
	_, err := r.Start(ctx, p)
	want := launch.Unproven{"No preflight of these nodes has carried a transfer of one, two within the last 12 hours."}
	require.Equal(t, want, err)
	r.empty()
	p.Preflight = false
	started, err := r.Start(ctx, p)
	require.NoError(t, err)
	require.Equal(t, want, started.Unproven)
	c, err := r.store.Campaign(ctx, started.Campaign)
	require.NoError(t, err)
	require.Equal(t, []string{"Started without a preflight of the treatments. " + want[0] + " Failures may be the network's and not the protocols'."}, c.Caveats)
}

// A start at a set time fails with the words of one by hand.
func TestScheduledStartFailsAsByHand(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	var clock atomic.Int64 // s
	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	lib, err := library.Start(ctx, library.Config{Store: r.store, Catalog: r.Catalog, Shipped: fstest.MapFS{"demo.yaml": {Data: []byte(document)}}, Launcher: r.Launcher, Settle: time.Nanosecond,
		Ahead: func() []string { return nil }, Now: now})
	require.NoError(t, err)
	t.Cleanup(lib.Stop)
	_, byHand := r.Start(ctx, request())
	require.IsType(t, launch.Missing{}, byHand)
	_, err = lib.Schedule(ctx, library.Order{Plan: "demo", At: now().Add(time.Second), Patience: 10 * time.Second})
	require.NoError(t, err)
	says := func(state library.State, message string) {
		t.Helper()
		require.Eventually(t, func() bool {
			all, err := lib.Schedules(ctx)
			require.NoError(t, err)
			return all[0].State == state && all[0].Message == message
		}, 30*time.Second, 10*time.Millisecond, message)
	}
	clock.Add(2)
	says(library.Waiting, "is tried until 00:00:11 UTC: "+byHand.Error())
	clock.Add(10)
	says(library.Failed, "could not start within 10s: "+byHand.Error())
	r.empty()
}

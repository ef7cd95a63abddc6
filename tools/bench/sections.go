package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/emulator/bench"
	"linktrial/lab/netns"
)

// sections are the parts of the bench, in the order in which they run.
var sections = []struct {
	name string
	run  func(context.Context, *setting.Settings) error
}{
	{"emulator", func(ctx context.Context, _ *setting.Settings) error {
		fmt.Println("The emulated radio")
		return bench.Run(ctx, os.Stdout)
	}},
	{"reported", benchReported},
	{"dead-time", benchDeadTime},
	{"runner", benchRunner},
	{"virtual", benchVirtual},
	{"agreement", benchAgreement},
	{"variants", benchVariants},
	{"results", benchResults},
	{"agents", benchAgents},
	{"tls", benchTLS},
	{"hostile", benchHostile},
	{"large", benchLarge},
	{"soak", benchSoak},
	{"month", benchMonth},
}

// call is how the bench is called in the checkout.
const call = "go run ./tools/bench"

func newBench(s *setting.Settings) *cobra.Command {
	var names []string
	for _, b := range sections {
		names = append(names, b.name)
	}
	cmd := &cobra.Command{
		Use:   "bench [SECTION...]",
		Short: "Measure Linktrial itself: emulated radio, drivers, virtual time, results, agents, TLS, attacks, size, length",
		Example: "  " + call + `
  ` + call + ` emulator dead-time
  ` + call + ` agents --agents 1000`,
		Long: `Bench measures, with real packets through real network namespaces:
  emulator   the emulated radio's error of rate and delay, and its highest throughput;
  reported   the reported throughput against that of the packet log;
  dead-time  the trials a minute on a perfect fast link, and the dead time between them;
  runner     drivers as processes and as containers: throughput, dead time, connect time;
  virtual    how much faster than real time the virtual-time lab is, and where its time goes;
  agreement  the throughput in real and in virtual time, for each transport protocol;
  variants   TCP-radio and newRTO as eBPF in real time, against those of the guest kernel;
  results    response times of the results pages with 10 000 trials and 5 million samples;
  agents     the cost of many idle agents for their orchestrator, and how soon a run reaches its nodes;
  tls        the cost of TLS in the delivery of a batch of samples;
  hostile    the orchestrator's memory under hostile connections, while trials run;
  large      time and memory of what is done with a campaign of 100 000 trials;
  soak       what the processes of a lab use while short trials run for a long time;
  month      what those of a guest use in a run of a month of virtual time.
Virtual, agreement, variants and month need the guest kernel (linktrial lab kernel). All
sections take about an hour, variants a quarter of it. Sections that measure size and
length have their last results in docs/size.md.

Orchestrators, agents and rehearsals that are processes of their own are those of the built
program (make build): linktrial and its drivers in LINKTRIAL_BIN, otherwise in bin/ of the
checkout.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: call},
		ValidArgs:     names,
		Args:          cobra.OnlyValidArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			client.Trusted = client.Trust{CAFile: s.CA, Data: s.Data}
			if err := netns.Possible(); err != nil {
				return err
			}
			var err error
			if s.Version, err = versionOf(cmd.Context(), s.Program); err != nil {
				return err
			}
			for _, b := range sections {
				if len(args) > 0 && !slices.Contains(args, b.name) {
					continue
				}
				if err := b.run(cmd.Context(), s); err != nil {
					return err
				}
			}
			return nil
		},
	}
	s.Register(cmd.PersistentFlags())
	f := cmd.Flags()
	f.IntVar(&idleAgents, "agents", idleAgents, "number of idle agents in the section agents")
	f.IntVar(&hostileConnections, "hostile", hostileConnections, "number of connections in the section hostile")
	f.DurationVar(&hostileDuration, "hostile-duration", hostileDuration, "length of the section hostile")
	f.IntVar(&largeRuns, "runs", largeRuns, "runs of 400 trials in the section large")
	f.IntVar(&largeSamples, "samples", largeSamples, "samples of each trial in the section large")
	f.BoolVar(&largeKeep, "keep", false, "in the section large: only store the campaign in the data folder (--data), where no orchestrator may run, and keep it")
	f.DurationVar(&soakDuration, "soak", soakDuration, "length of the section soak")
	f.DurationVar(&monthDuration, "month", monthDuration, "virtual time of the section month")
	f.IntVar(&monthTrials, "month-trials", monthTrials, "number of trials in the section month")
	f.DurationVar(&soakInterval, "soak-interval", soakInterval, "time between two looks of the section soak")
	return cmd
}

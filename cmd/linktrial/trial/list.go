package trial

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
)

func newNodes(s *setting.Settings) *cobra.Command {
	var interfaces string
	cmd := &cobra.Command{
		Use:     "nodes",
		GroupID: setting.GroupNodes,
		Short:   "List the nodes that have connected: radio, clock, disk, battery, drivers",
		Long: `List the nodes whose agents have connected to the orchestrator at least once.

An agent keeps one call to the orchestrator open, except while a trial runs with
in-band control. A node is connected while that call is open, and for 3 s after the
orchestrator has answered it. When nothing arrives on the call's connection for 8 s,
as after a cable was pulled, the node is no longer connected.

  NAME           name of the node, from its agent's --name
  ROLE           client, relay or server
  RADIO          profile of the attached radio, "emulated" where a lab's emulated radios
                 vouch for the node, "real, unnamed" where neither is known, or "no radio
                 set up": the node takes part in no run
  ADDRESS        IP address on the radio network
  LAST CONTACT   "connected", or how long ago the node was last connected
  CLOCK OFFSET   orchestrator's clock minus the node's, as last measured
  DISK FREE      free space in the agent's state folder
  BATTERY        charge, and whether it discharges; – without a battery
  PROTOCOLS      drivers that run on the node
  VERSION        of the agent
  RUN            the run that the node takes part in now

Below the table is what is wrong on nodes and needs a person, such as a damaged
journal or a radio's interface that is missing.

'linktrial node list' lists identities and certificates instead.`,
		Example: `  linktrial nodes
  linktrial nodes --orchestrator https://10.20.0.10:7700
  linktrial nodes --interfaces alpha     # what can be its radio`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := client.New(s.Orchestrator).ListNodes(cmd.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if interfaces != "" {
				return printInterfaces(res.Msg.Nodes, interfaces)
			}
			if len(res.Msg.Nodes) == 0 {
				fmt.Println("No node has connected yet. Start one on each laptop: linktrial agent --name … --role client|relay|server")
				return nil
			}
			if err := printNodes(res.Msg.Nodes); err != nil {
				return err
			}
			printFaults(res.Msg.Nodes)
			return nil
		},
	}
	cmd.Flags().StringVar(&interfaces, "interfaces", "", "NAME of a node: list its network interfaces, with what speaks for and against each being the radio")
	return cmd
}

func printNodes(nodes []*linktrialv1.Node) error {
	return terminal.Columns("NAME\tROLE\tRADIO\tADDRESS\tLAST CONTACT\tCLOCK OFFSET\tDISK FREE\tBATTERY\tPROTOCOLS\tVERSION\tRUN", func(w io.Writer) {
		for _, n := range nodes {
			r := cmp.Or(n.Radio, "real, unnamed")
			switch {
			case n.Emulated:
				r = "emulated"
			case n.Radio == "" && n.RadioAddress == "":
				r = "no radio set up"
			}
			contact := time.Since(n.LastContact.AsTime()).Round(time.Second).String() + " ago"
			if n.Connected {
				contact = "connected"
			}
			offset := "unknown"
			if n.ClockOffsetKnown {
				offset = terminal.Offset(n.ClockOffsetSeconds)
			}
			battery := "–"
			if n.Battery != nil {
				battery = fmt.Sprintf("%.0f %%", 100**n.Battery)
				if n.Discharging {
					battery += ", discharging"
				}
			}
			var can []string
			for _, d := range n.Drivers {
				if d.Unsupported == "" {
					can = append(can, d.Name)
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, cmp.Or(n.Role, "–"), r, n.RadioAddress, contact, offset,
				fmt.Sprintf("%.1f GiB", float64(n.DiskFreeBytes)/(1<<30)), battery, strings.Join(can, " "), n.Version, n.RunId)
		}
	})
}

// printFaults writes what is wrong on nodes, a line each.
func printFaults(nodes []*linktrialv1.Node) {
	for _, n := range nodes {
		for _, f := range n.Faults {
			fmt.Printf("\nnode %s: %s\n", terminal.Printable(n.Name), terminal.Printable(f))
		}
	}
}

func newRunList(s *setting.Settings) *cobra.Command {
	var limit int32
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: `List runs, newest first. Where no orchestrator runs, one is started on the data
folder for as long as the command lasts.

  RUN               identity: the campaign's, and the number of the run in it
  STATE             queued, waiting for the nodes to be moved, preparing, running,
                    pausing, paused, collecting journals, completed, aborted or
                    stopped; in virtual time running in virtual time, then storing
  TRIALS            trials that have ended, of all; and how many of these the
                    plan's rule to stop by left out
  WITHOUT SUCCESS   attempts that failed, were aborted or are invalid
  PLACE             real radio; emulated, real time; or emulated, virtual time

Below the table is why runs were stopped.`,
		Example: `  linktrial run list
  linktrial run list --limit 5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := openOrchestrator(cmd.Context(), s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			res, err := o.client.ListRuns(cmd.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: limit}))
			if err != nil {
				return client.Error(o.base, err)
			}
			if len(res.Msg.Runs) == 0 {
				fmt.Println("No runs yet. Start with: linktrial rehearse plans/quickstart.yaml")
				return nil
			}
			if err := terminal.Columns("RUN\tCAMPAIGN\tPLAN\tRADIO\tTOPOLOGY\tSIZE\tSTATE\tTRIALS\tWITHOUT SUCCESS\tSTARTED\tPLACE", func(w io.Writer) {
				for _, r := range res.Msg.Runs {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.Id, r.CampaignId, r.Plan, r.Radio, r.Topology,
						unit.FormatPayload(r.SizeBytes), terminal.RunWord(r), trialsEnded(r), r.AttemptsFailed, terminal.TimeOr(r.Started, "–"), r.Place)
				}
			}); err != nil {
				return err
			}
			for _, r := range res.Msg.Runs {
				if r.State == linktrialv1.RunState_RUN_STATE_STOPPED && r.Message != "" {
					fmt.Printf("\nrun %s stopped: %s\n", r.Id, terminal.Printable(r.Message))
				}
				if r.LateRecords > 0 {
					fmt.Printf("\nrun %s: %s from nodes came after the end of their journals and count nowhere\n", r.Id, terminal.Count(int(r.LateRecords), "record"))
				}
			}
			return nil
		},
	}
	cmd.Flags().Int32Var(&limit, "limit", 50, "the largest number of runs to list")
	return cmd
}

func newProfiles(s *setting.Settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "profiles [NAME]",
		GroupID: setting.GroupNodes,
		Short:   "List radio profiles and topologies, show one with the source of every parameter, or save one at the orchestrator",
		Example: `  linktrial profiles
  linktrial profiles prc-117g-anw2c
  linktrial profiles prc-117g-anw2c --json
  linktrial profiles save own-hf.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cat, err := s.LoadCatalog()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return showProfile(cat, args[0], asJSON)
			}
			if err := terminal.Columns("RADIO\tTITLE\tWAVEFORM\tEMULATED AS", func(w io.Writer) {
				for _, name := range cat.Profiles() {
					p := cat.Profile(name)
					as := "cannot be emulated"
					if e := p.Emulation; e != nil {
						as = fmt.Sprintf("%s, %s on the air", e.Medium, unit.FormatRate(e.RateBitsPerSecond))
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, p.Title, p.Waveform, as)
				}
			}); err != nil {
				return err
			}
			fmt.Println()
			return terminal.Columns("TOPOLOGY\tTITLE\tLINKS", func(w io.Writer) {
				for _, name := range cat.Topologies() {
					t := cat.Topology(name)
					var links []string
					for _, l := range t.Links {
						links = append(links, fmt.Sprintf("%s–%s %.0f m", l.A, l.B, l.DistanceMetres))
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.Title, strings.Join(links, ", "))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole profile as JSON")
	cmd.AddCommand(newProfileSave(s), newProfileDelete(s), newSchema("profiles", "radio profiles", "linktrial profiles save", radio.ProfileLanguage))
	return cmd
}

func showProfile(cat catalogView, name string, asJSON bool) error {
	if t := cat.Topology(name); t != nil {
		return json.NewEncoder(os.Stdout).Encode(t)
	}
	p := cat.Profile(name)
	if p == nil {
		return fmt.Errorf("no radio or topology %q; there are %s", name, strings.Join(append(cat.Profiles(), cat.Topologies()...), ", "))
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(p)
	}
	return printRadio(p)
}

func printRadio(p *radio.Profile) error {
	fmt.Printf("%s: %s %s, waveform %s, firmware %s\n\n", p.Title, p.Manufacturer, p.Model, p.Waveform, cmp.Or(p.Firmware, "unknown"))
	if err := terminal.Columns("PARAMETER\tVALUE\tSOURCE", func(w io.Writer) {
		for _, f := range p.Parameters {
			doubt := ""
			if f.Uncertain {
				doubt = " (uncertain)"
			}
			fmt.Fprintf(w, "%s\t%s%s\t%s\n", f.Name, valueText(&f), doubt, f.Source)
		}
	}); err != nil {
		return err
	}
	if len(p.Telemetry) > 0 {
		fmt.Println()
		if err := terminal.Columns("TELEMETRY\tON\tREAD\tWHEN\tSOURCE", func(w io.Writer) {
			for i := range p.Telemetry {
				t := &p.Telemetry[i]
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Name, t.On, t.Way(), t.When(), t.Origin)
			}
		}); err != nil {
			return err
		}
	}
	for _, n := range p.Notes {
		fmt.Printf("\n%s\n", n)
	}
	return nil
}

// valueText is the value of a radio's parameter, in a unit that suits it and without exponents.
func valueText(f *radio.Parameter) string {
	switch whole := int64(f.Value); {
	case f.Unknown:
		return "unknown"
	case f.Unit == "bit/s":
		return unit.FormatRate(f.Value)
	case f.Unit == "B" && float64(whole) == f.Value:
		return unit.FormatBytes(whole)
	}
	return strings.TrimSpace(strconv.FormatFloat(f.Value, 'f', -1, 64) + " " + f.Unit)
}

// catalogView is the part of the catalog that is listed.
type catalogView interface {
	Profile(name string) *radio.Profile
	Profiles() []string
	Topology(name string) *radio.Topology
	Topologies() []string
}

// trialsEnded is how many trials of a run have ended, for people.
func trialsEnded(r *linktrialv1.Run) string {
	ended := fmt.Sprintf("%d/%d", r.TrialsEnded, r.Trials)
	if r.TrialsNotNeeded > 0 {
		ended += fmt.Sprintf(", %d not needed", r.TrialsNotNeeded)
	}
	return ended
}

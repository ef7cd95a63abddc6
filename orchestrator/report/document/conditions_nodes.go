package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// eachNode calls f for every node of every run that told what it is.
func eachNode(v *report.Analysis, f func(run int, node string, p *journal.Provenance)) {
	for i := range v.Dataset.Runs {
		all := v.Dataset.Runs[i].Provenance
		for _, node := range sortedKeys(all) {
			p := all[node]
			f(i, node, &p)
		}
	}
}

// nodeLines are distinct rows of cells with the nodes and runs that they are of.
type nodeLines struct {
	cells [][]string
	nodes [][]string
	runs  [][]int
}

func (l *nodeLines) add(run int, node string, cells ...string) {
	i := slices.IndexFunc(l.cells, func(c []string) bool { return slices.Equal(c, cells) })
	if i < 0 {
		i = len(l.cells)
		l.cells, l.nodes, l.runs = append(l.cells, cells), append(l.nodes, nil), append(l.runs, nil)
	}
	if !slices.Contains(l.nodes[i], node) {
		l.nodes[i] = append(l.nodes[i], node)
	}
	if n := len(l.runs[i]); n == 0 || l.runs[i][n-1] != run {
		l.runs[i] = append(l.runs[i], run)
	}
}

// nodesText names the nodes of a line.
func (l *nodeLines) nodesText(i int) string { return strings.Join(l.nodes[i], ", ") }

// nodeTables is what the nodes were, and their interfaces; a node that was another one in some runs
// has a row for each.
func nodeTables(v *report.Analysis) []Block {
	var machines, interfaces nodeLines
	told := 0
	for i := range v.Dataset.Runs {
		if len(v.Dataset.Runs[i].Provenance) > 0 {
			told++
		}
	}
	eachNode(v, func(run int, node string, p *journal.Provenance) {
		machines.add(run, node, node, p.Host, p.OS, p.Kernel, p.CPU, p.Linktrial, priorityText(p.Priority))
		queues := qdiscsOf(p.Qdiscs)
		for _, x := range p.Interfaces {
			if x.Name != "lo" {
				interfaces.add(run, node, node, x.Name, strconv.Itoa(x.MTU), x.Driver, queues[x.Name], offloadsText(x.Offloads))
			}
		}
	})
	m := grid{caption: "Nodes", heads: []string{"Node", "Host", "Operating system", "Kernel", "Processor", "Linktrial", "Priority of the agent", "Runs"}}
	x := grid{caption: "Network interfaces of the nodes", heads: []string{"Node", "Interface", "MTU, B", "Driver", "Queueing discipline", "Offloads that are on", "Runs"}, numbers: []string{"MTU, B"},
		notes: []string{"Offloads: GSO, TSO and GRO, which let a host handle several packets as one."}}
	for _, t := range []struct {
		grid  *grid
		lines *nodeLines
	}{{&m, &machines}, {&x, &interfaces}} {
		for i, cells := range t.lines.cells {
			runs := ""
			if len(t.lines.runs[i]) < told {
				runs = runsText(t.lines.runs[i], len(v.Dataset.Runs))
			}
			t.grid.add(append(slices.Clone(cells), runs)...)
		}
	}
	return append(m.blocks(), x.blocks()...)
}

func priorityText(p *journal.Priority) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("nice %d, scheduler %s", p.Nice, p.Policy)
	if p.CPUWeight > 0 {
		text += fmt.Sprintf(", CPU weight %d", p.CPUWeight)
	}
	return text
}

// qdiscsOf is the root queueing discipline of each interface, of what tc printed as JSON.
func qdiscsOf(text string) map[string]string {
	var all []struct {
		Kind, Dev string
		Root      bool
	}
	out := map[string]string{}
	if json.Unmarshal([]byte(text), &all) != nil {
		return out
	}
	for _, q := range all {
		if q.Root {
			out[q.Dev] = q.Kind
		}
	}
	return out
}

// offloadsText names the offloads that change which packets a host handles at once.
func offloadsText(all map[string]bool) string {
	if len(all) == 0 {
		return ""
	}
	var on []string
	for _, x := range []struct{ feature, name string }{{"tx-generic-segmentation", "GSO"}, {"tx-tcp-segmentation", "TSO"}, {"rx-gro", "GRO"}} {
		if all[x.feature] {
			on = append(on, x.name)
		}
	}
	if len(on) == 0 {
		return "none"
	}
	return strings.Join(on, ", ")
}

// driverTable are those of the treatments, as the nodes had them.
func driverTable(v *report.Analysis) []Block {
	used := protocolsOf(v)
	var all nodeLines
	eachNode(v, func(run int, node string, p *journal.Provenance) {
		for _, d := range p.Drivers {
			if !slices.Contains(used, d.Name) {
				continue
			}
			cannot := ""
			if d.Unsupported != "" {
				cannot = "cannot be used: " + d.Unsupported
			}
			all.add(run, node, d.Name, d.Version, d.Implementation, shortDigest(d.Digest), cannot)
		}
	})
	g := grid{caption: "Drivers as the nodes had them", heads: []string{"Driver", "Version", "Implementation", "Digest", "Remark", "Nodes", "Runs"}, mono: []string{"Digest"}}
	for _, name := range used {
		for i, cells := range all.cells {
			if cells[0] == name {
				if cells[3] != "" {
					g.notes = []string{"Digest: the first digits; the chapter on provenance has the whole."}
				}
				g.add(append(slices.Clone(cells), all.nodesText(i), someRuns(all.runs[i], len(v.Dataset.Runs)))...)
			}
		}
	}
	return g.blocks()
}

// shortDigest is the beginning of a digest: "sha256:0123456789ab".
func shortDigest(digest string) string {
	kind, hash, found := strings.Cut(digest, ":")
	if found && strings.Contains(hash, ":") { // of an image
		more, rest, _ := strings.Cut(hash, ":")
		kind, hash = kind+":"+more, rest
	}
	if !found {
		return wording.Clip(digest, 13)
	}
	return kind + ":" + wording.Clip(hash, 13)
}

// settingsThatMatter are the settings of the kernel that results of transports depend on most.
var settingsThatMatter = []string{
	"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.rmem_default", "net.core.rmem_max", "net.core.wmem_default",
	"net.core.wmem_max", "net.core.default_qdisc", "net.core.netdev_max_backlog", "net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_window_scaling",
	"net.ipv4.tcp_timestamps", "net.ipv4.tcp_sack", "net.ipv4.tcp_dsack", "net.ipv4.tcp_ecn", "net.ipv4.tcp_recovery", "net.ipv4.tcp_early_retrans",
	"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_syn_retries", "net.ipv4.tcp_retries2",
	"net.ipv4.ip_no_pmtu_disc", "net.mptcp.enabled", "net.mptcp.scheduler",
}

// kernelSettings is the table of those that matter; a value that not all nodes had is named
// with the nodes that had it.
func kernelSettings(v *report.Analysis) []Block {
	values := map[string]*nodeLines{}
	recorded, count := map[string]bool{}, 0
	eachNode(v, func(run int, node string, p *journal.Provenance) {
		if len(p.Sysctls) == 0 {
			return
		}
		count++
		for name := range p.Sysctls {
			recorded[name] = true
		}
		for _, name := range settingsThatMatter {
			value, known := p.Sysctls[name]
			if !known {
				continue
			}
			if values[name] == nil {
				values[name] = &nodeLines{}
			}
			values[name].add(run, node, value)
		}
	})
	g := grid{caption: "Settings of the kernel that results depend on", heads: []string{"Setting", "Value", "Nodes", "Runs"}, mono: []string{"Setting", "Value"}}
	for _, name := range settingsThatMatter {
		l := values[name]
		if l == nil {
			continue
		}
		for i, cells := range l.cells {
			of, runs := "", ""
			if len(l.cells) > 1 {
				of, runs = l.nodesText(i), someRuns(l.runs[i], len(v.Dataset.Runs))
			}
			g.add(name, cells[0], of, runs)
		}
	}
	if more := len(recorded) - len(values); more > 0 {
		g.notes = []string{fmt.Sprintf("results.json has %s of each node more.", wording.Plural(more, "setting", "settings"))}
	}
	return g.blocks()
}

// clockRow is the worst of what comparisons of a node's clock found, over runs.
type clockRow struct {
	count         int
	offset, bound time.Duration
}

// clockTable are how far nodes' clocks were from the orchestrator's, the worst over all runs.
func clockTable(v *report.Analysis) []Block {
	rows, keys := map[[2]string]*clockRow{}, [][2]string{}
	oneMachine := false
	for i := range v.Dataset.Runs {
		r := &v.Dataset.Runs[i]
		oneMachine = oneMachine || emulatedRun(r)
		for _, node := range sortedKeys(r.Clocks) {
			for _, c := range r.Clocks[node] {
				if c.Unknown != "" {
					continue
				}
				key := [2]string{node, c.When}
				if rows[key] == nil {
					rows[key], keys = &clockRow{}, append(keys, key)
				}
				rows[key].take(&c)
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	g := grid{caption: "Clocks of the nodes against the orchestrator's", heads: []string{"Node", "Compared", "Comparisons", "Offset, ms", "Error bound, ms"}, numbers: []string{"Comparisons", "Offset, ms", "Error bound, ms"},
		notes: []string{"Offset: orchestrator less node, the largest of all comparisons. Error bound: half the round trip of the best exchange, the largest of all comparisons."}}
	for _, key := range keys {
		x := rows[key]
		when := key[1] + " the run"
		if key[1] == "resumed" {
			when = "after a new start of the node"
		}
		g.add(key[0], when, strconv.Itoa(x.count), fmt.Sprintf("%+.3f", x.offset.Seconds()*1e3), fmt.Sprintf("%.3f", x.bound.Seconds()*1e3))
	}
	var text string
	if oneMachine {
		text = "Nodes on emulated radios are on one machine and have its clock."
	}
	return append(paragraphs(text), g.blocks()...)
}

func (x *clockRow) take(c *journal.ClockOffset) {
	if x.count++; c.Offset.Abs() > x.offset.Abs() {
		x.offset = c.Offset
	}
	x.bound = max(x.bound, c.Error)
}

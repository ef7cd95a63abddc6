package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/internal/yamlschema"
	"linktrial/protocols/contract"
)

// Bounds of a plan. They are far beyond any field trial (the largest of the plans
// that come with Linktrial has 140 runs, 1840 trials and 4424 flows) and keep a
// slip of the pen from becoming a sheet that no node can hold. What a plan makes
// is counted before any of it is made.
const (
	MaxIterations = 10_000
	maxAttempts   = 100

	// MaxTreatments is how many treatments a plan may have; mixes have the same bound.
	MaxTreatments = 200

	maxSizes      = 1000
	maxCells      = 1_000
	maxTrials     = 100_000 // a campaign of so many was measured (docs/size.md)
	maxFlowsInAll = 200_000 // of all trials, an on-time of an on/off source being one
	maxRunTrials  = 50_000  // of one run, whose sheet agents get in one answer and keep in memory
	maxListed     = 50_000  // treatments of all runs, those that are missing included
	maxNotes      = 1000
	maxGroups     = 200
	maxExcludes   = 500

	maxAxes       = 16
	maxSet        = 64 // parameters of one axis
	maxAxisValues = 1000

	maxEntries  = 100    // of a list of flows
	maxFlows    = 1000   // of a trial, an on/off source being one
	maxOnTimes  = 20_000 // of all on/off sources of a trial, on average
	maxProbes   = 20     // at once
	maxDuration = 7 * 24 * time.Hour

	minStep, maxStep   = time.Millisecond, time.Hour // what a node notices, far above any step in a field
	maxInterfering     = 1 << 30                     // bytes
	minMoved, maxMoved = 1, 100e3                    // metres; below the least a receiver's own noise
	minMissed          = 0.1                         // % of an attempt's time; below what an idle machine misses
	maxReading         = 1e15
	maxReadingLimits   = 64

	maxPublished = 1000 // rows, and values, of a paper; each is sought among all runs

	maxRequired     = 100    // entries of require
	maxRequirements = 20_000 // that they make of all runs and treatments
	maxKBps         = 1e9
	maxRatio        = 1e5 // %
	minDelay        = 10 * time.Microsecond
	maxDelay        = time.Hour
)

// Language is the keys of plans.
var Language = &yamlschema.Document{
	Name: "plan", Title: "Plan", Root: planKeys,
	Meaning: "A plan says what is compared, over which radios and topologies, how often and in which order.",
}

var (
	roleWord      = yamlschema.Word(radio.RoleClient, radio.RoleRelay, radio.RoleServer)
	sizeForm      = yamlschema.Size(1, contract.MaxSize)
	sizesForm     = yamlschema.OneOrMany(sizeForm, maxSizes)
	optionsForm   = yamlschema.Of(&yamlschema.Mapping{Name: "options", Free: &yamlschema.Form{Type: yamlschema.TypeAny, What: "value of the option"}})
	conditionForm = yamlschema.Of(&yamlschema.Mapping{Name: "conditions", Free: &yamlschema.Form{Type: yamlschema.TypeAny, What: "value of the axis"}})
)

var limitsKeys = &yamlschema.Mapping{Name: "limits", Keys: []yamlschema.Key{
	{Name: "connect", Form: yamlschema.Duration(100*time.Millisecond, maxDuration), Default: 30 * time.Second, Example: "10s",
		Meaning: "The longest time from the start of an attempt until its connections are established."},
	{Name: "transfer", Form: yamlschema.Duration(100*time.Millisecond, maxDuration), Default: 5 * time.Minute, Example: "1h",
		Meaning: "The longest time of an attempt's transfers; an attempt that takes longer is ended and has failed."},
	{Name: "attempts", Form: yamlschema.Integer(1, maxAttempts), Default: 1, Example: "2",
		Meaning: "How often a trial that fails is tried, the first attempt included."},
	{Name: "pause", Form: yamlschema.Duration(0, 24*time.Hour), Default: time.Duration(0), Example: "2s",
		Meaning: "Time between two trials, on top of what Linktrial itself needs between them."},
	{Name: "wait", Form: yamlschema.Duration(time.Second, maxDuration), Default: runsheet.DefaultWait, Example: "30m",
		Meaning: "How long a trial is repeated because of faults of the apparatus before the run pauses."},
	{Name: "horizon", Form: yamlschema.Duration(100*time.Millisecond, maxDuration), Unset: "limits.transfer", Example: "2m",
		Meaning: "Until when results wait for a payload, from the first attempt to connect: the mean time to delivery is restricted to it, and a trial that failed counts as not delivered by then. Nothing is ended by it."},
}}

var viaKeys = &yamlschema.Mapping{Name: "relay processes", Keys: []yamlschema.Key{
	{Name: "at", Form: roleWord, Required: true, Example: "relay", Meaning: "The node at which the process runs, by its role."},
	{Name: "protocol", Form: yamlschema.Known("driver"), Required: true, Example: "split", Meaning: "A driver whose manifest has the role relay."},
	{Name: "options", Form: optionsForm, Unset: "the driver's defaults", Example: "{congestion: reno}", Meaning: "Options of that driver."},
}}

var treatmentKeys = &yamlschema.Mapping{Name: "treatments", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Name(), Required: true, Example: "cubic", InTemplate: true, Meaning: "Unique in the plan; exports and commands name the treatment by it."},
	{Name: "label", Form: yamlschema.Line(), Unset: "the name", Example: "TCP CUBIC", InTemplate: true, Meaning: "What tables and charts call it; unique in the plan too."},
	{Name: "protocol", Form: yamlschema.Known("driver"), Required: true, Example: "tcp", InTemplate: true, Meaning: "The driver that carries its transfers (`linktrial protocol list`)."},
	{Name: "options", Form: optionsForm, Unset: "the driver's defaults", Example: "{congestion: cubic}", InTemplate: true, Meaning: "Options of the driver; the page Protocols lists them, and the driver's `driver.yaml`."},
	{Name: "via", Form: yamlschema.List(yamlschema.Of(viaKeys), 1, 3), Unset: "connections go from end to end", Example: "[{at: relay, protocol: split}]", Meaning: "Relay processes that end connections and carry their bytes onward, in the order from client to server."},
	{Name: "dscp", Form: yamlschema.Either(yamlschema.Any("code point by name: EF, AF11 to AF43, CS0 to CS7, VA, LE, DF"), yamlschema.Integer(0, contract.MaxDSCP)), Unset: "packets are not marked", Example: "AF11", Meaning: "Code point of its packets (RFC 2474); the driver must be able to mark them."},
	{Name: "second_radio", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "The driver uses the second radio of each node too. The topology must give the nodes one."},
	{Name: "complete_knowledge", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "The driver is told the rate and the delay of the emulated radio (TCP with complete knowledge of de Cola and Marchese)."},
	{Name: "missing", Form: yamlschema.Text(), Unset: "a driver, option or choice that does not exist is an error", Example: "not every kernel has it", Meaning: "Why the driver, an option or a choice may not exist. Where it does not, the treatment is listed with this reason and has no trials."},
}}

var onOffKeys = &yamlschema.Mapping{Name: "on and off", Keys: []yamlschema.Key{
	{Name: "on", Form: yamlschema.Duration(time.Millisecond, maxDuration), Required: true, Example: "50s", Meaning: "Mean of the on-times, which are drawn from an exponential distribution."},
	{Name: "idle", Form: yamlschema.Duration(0, maxDuration), Required: true, Example: "10s", Meaning: "Mean of the idle times between them, drawn alike."},
}}

var flowKeys = &yamlschema.Mapping{Name: "flows", Keys: []yamlschema.Key{
	{Name: "count", Form: yamlschema.Integer(1, maxFlows), Default: 1, Example: "10", Meaning: "How many like flows."},
	{Name: "from", Form: roleWord, Default: string(radio.RoleClient), Example: "client", Meaning: "The node that sends, by its role."},
	{Name: "to", Form: roleWord, Default: string(radio.RoleServer), Example: "server", Meaning: "The node that receives: the server, where the listeners of a run are."},
	{Name: "start", Form: yamlschema.Duration(0, maxDuration), Default: time.Duration(0), Example: "5s", Meaning: "When the first of them begins, from the start of the trial."},
	{Name: "spacing", Form: yamlschema.Duration(0, time.Hour), Default: time.Duration(0), Example: "100ms", Meaning: "Time from the start of one to that of the next."},
	{Name: "size", Form: sizeForm, Unset: "the run's size", Example: "64 KiB", Instead: []string{"duration"}, Meaning: "Bytes that each sends."},
	{Name: "duration", Form: yamlschema.Duration(time.Millisecond, maxDuration), Unset: "the flow ends with its size", Example: "100s", Instead: []string{"size"}, Meaning: "Each sends without end for this long, and what was acknowledged by then counts. At most limits.transfer."},
	{Name: "on_off", Form: yamlschema.Of(onOffKeys), Unset: "the flow sends all the time", Example: "{on: 50s, idle: 10s}", Beside: "{duration: 100s}", Meaning: "Each is a source that goes on and off until its duration has passed. Its times are drawn from the seed, and are the same for every treatment of an iteration."},
}}

// mixFlowKeys are those of a mix's flows: there is no treatment of the trial.
var mixFlowKeys = flowKeys.With(yamlschema.Key{
	Name: "treatment", Form: yamlschema.Known("treatment"), Required: true, Example: "cubic", Meaning: "In a mix alone: whose flows these are.",
})

var mixProbeKeys = &yamlschema.Mapping{Name: "probes", Keys: []yamlschema.Key{
	{Name: "treatment", Form: yamlschema.Known("treatment"), Required: true, Example: "voice", Meaning: "A treatment of the plan whose driver carries probes."},
	{Name: "from", Form: yamlschema.Word(radio.RoleClient, radio.RoleServer), Default: string(radio.RoleClient), Example: "client", Meaning: "The node that sends: client or server. One end names the other."},
	{Name: "to", Form: yamlschema.Word(radio.RoleClient, radio.RoleServer), Default: string(radio.RoleServer), Example: "server", Meaning: "The node that receives."},
}}

var probeKeys = mixProbeKeys.With(
	yamlschema.Key{Name: "alone", Form: yamlschema.Duration(0, maxDuration), Default: time.Duration(0), Example: "60s", Meaning: "The treatment has trials of its own, of this length, without a transfer. 0: it has none. Not in a mix."},
	yamlschema.Key{Name: "beside", Form: yamlschema.Flag(), Default: true, Example: "false", Beside: "{alone: 60s}", Meaning: "The probe runs beside the flows of every other trial, from the trial's start until its last flow has ended. Not in a mix."},
)

var mixKeys = &yamlschema.Mapping{Name: "mixes", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Name(), Required: true, Example: "both", Meaning: "Unique among treatments and mixes."},
	{Name: "label", Form: yamlschema.Line(), Unset: "the name", Example: "CUBIC and Reno", Meaning: "What tables and charts call it."},
	{Name: "flows", Form: yamlschema.List(yamlschema.Of(mixFlowKeys), 1, maxEntries), Required: true, Example: "[{treatment: cubic, count: 5}]", Meaning: "The flows of its trials, each with its treatment."},
	{Name: "probes", Form: yamlschema.List(yamlschema.Of(mixProbeKeys), 0, maxProbes), Unset: "those of the plan or the group", Example: "[{treatment: voice}]", Meaning: "Probes beside its flows, in place of those of the plan or the group."},
}}

var axisKeys = &yamlschema.Mapping{Name: "sweep", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Name(), Required: true, Example: "bandwidth", Meaning: "Name of the axis; exclude and published values refer to it. Not radio, topology, size, group or treatment."},
	{Name: "set", Form: yamlschema.OneOrMany(yamlschema.Any("name of a parameter"), maxSet), Required: true, Example: "rate", Meaning: "A parameter of the emulated radio by its path in the profile (`rate`, `channel.loss`, `arq.persistence`), `option.NAME` for every treatment whose driver has the option, `flows.count` or `flows.duration`. A list: parameters that change together."},
	{Name: "values", Form: yamlschema.List(yamlschema.Any("value, or one for each parameter of set"), 1, maxAxisValues), Required: true, Example: "[16 kbit/s, 1 Mbit/s]", Meaning: "The values, each as where the parameter is declared; where set is a list, each is a list as well."},
	{Name: "labels", Form: yamlschema.List(yamlschema.Line(), 0, maxAxisValues), Unset: "the values", Example: "[slow, fast]", Meaning: "What tables call the values, in their order."},
}}

var batteryKeys = &yamlschema.Mapping{Name: "battery", Keys: []yamlschema.Key{
	{Name: "min", Form: yamlschema.Quantity("%", 0, 100), Required: true, Example: "15 %", Meaning: "Least charge of each of the node's batteries."},
}}

var temperatureKeys = &yamlschema.Mapping{Name: "temperature", Keys: []yamlschema.Key{
	{Name: "min", Form: yamlschema.Quantity("°C", -100, 200), Unset: "none", Example: "-10 °C", Meaning: "Lowest temperature of the node."},
	{Name: "max", Form: yamlschema.Quantity("°C", -100, 200), Unset: "none", Example: "85 °C", Meaning: "Highest temperature of the node."},
}}

var readingKeys = &yamlschema.Mapping{Name: "telemetry rules", Keys: []yamlschema.Key{
	{Name: "reading", Form: yamlschema.Known("reading"), Required: true, Example: "snr", Beside: "{min: 3 dB}", Meaning: "A reading of the radio, as its profile names it. Of a counter, its growth a second."},
	{Name: "min", Form: yamlschema.Quantity("", -maxReading, maxReading), Unset: "none", Example: "10 dB", Meaning: "Least value, with the reading's unit or without one. One of min and max is needed."},
	{Name: "max", Form: yamlschema.Quantity("", -maxReading, maxReading), Unset: "none", Example: "40 dB", Meaning: "Greatest value."},
}}

var validKeys = &yamlschema.Mapping{Name: "rules of validity", Keys: []yamlschema.Key{
	{Name: "clock_step", Form: yamlschema.Duration(minStep, maxStep), Unset: "no rule", Example: "100ms", Meaning: "The most by which a node's clock may step during an attempt."},
	{Name: "interfering", Form: yamlschema.Either(yamlschema.Quantity("%", 0, 100), yamlschema.Size(0, maxInterfering)), Unset: "no rule", Example: "5 %", Meaning: "The most other traffic on the radios' interfaces during an attempt: a share of the attempt's bytes, or a size."},
	{Name: "telemetry", Form: yamlschema.List(yamlschema.Of(readingKeys), 1, maxReadingLimits), Unset: "no rule", Example: "[{reading: snr, min: 10 dB}]", Meaning: "Limits of the radio's readings."},
	{Name: "battery", Form: yamlschema.Of(batteryKeys), Unset: "no rule", Example: "{min: 15 %}", Meaning: "Least charge of the node's batteries."},
	{Name: "temperature", Form: yamlschema.Of(temperatureKeys), Unset: "no rule", Example: "{max: 85 °C}", Meaning: "Limits of the node's temperature; one or both."},
	{Name: "position", Form: yamlschema.Distance(minMoved, maxMoved), Unset: "no rule", Example: "25 m", Meaning: "How far a node may move since the run began."},
	{Name: "host", Form: yamlschema.Quantity("%", minMissed, 100), Unset: "no rule", Example: "3 %", Meaning: "The share of an attempt's time for which a node's busy processors may keep programs of the trial waiting."},
}}

// leastAlpha and mostAlpha are in percent. A level below would need more iterations than anybody
// has; one above is no test ([stats.Sequential.Check]).
const leastAlpha, mostAlpha, defaultAlpha = 0.001, 50, 5.

var stopKeys = &yamlschema.Mapping{Name: "a rule to stop by", Keys: []yamlschema.Key{
	{Name: "first", Form: yamlschema.Integer(1, stats.MaxBlocks), Required: true, Example: "10", Meaning: "The least number of iterations: the rule looks for the first time after so many."},
	{Name: "every", Form: yamlschema.Integer(1, stats.MaxBlocks), Required: true, Example: "5", Meaning: "Iterations from one look to the next. The last look is after the last iteration."},
	{Name: "spending", Form: yamlschema.Word(stats.OBrienFleming, stats.Pocock), Default: string(stats.OBrienFleming), Example: "pocock", Meaning: "How alpha is divided over the looks. With obrien-fleming the first looks need much more than the last one to decide something; with pocock all need about the same."},
	{Name: "alpha", Form: yamlschema.Quantity("%", leastAlpha, mostAlpha), Default: fmt.Sprintf("%g %%", defaultAlpha), Example: "1 %", Meaning: "The probability of at most so much that, over all looks and comparisons of a run, a treatment is taken for worse than one from which it does not differ."},
}}

var rowKeys = &yamlschema.Mapping{Name: "published rows", Keys: []yamlschema.Key{
	{Name: "group", Form: yamlschema.Known("group"), Unset: "the plan has no groups, or radio and topology tell the run", Example: "first", Meaning: "Group of the run."},
	{Name: "where", Form: conditionForm, Unset: "radio and topology tell the run", Example: "{size: 64 KiB}", Meaning: "Size and axes of the sweep that tell the run from others of its radio and topology."},
	{Name: "radio", Form: yamlschema.Known("radio"), Required: true, Example: "prc-117g-anw2c", Meaning: "Radio of the run."},
	{Name: "topology", Form: yamlschema.Known("topology"), Required: true, Example: "vip-lot", Meaning: "Topology of the run."},
	{Name: "treatment", Form: yamlschema.Known("treatment"), Required: true, Example: "cubic", Meaning: "Treatment of the row."},
	{Name: "n", Form: yamlschema.Integer(1, 1e9), Required: true, Example: "10", Meaning: "Number of trials."},
	{Name: "average", Form: yamlschema.Number(0, 1e12), Required: true, Example: "139.37", Meaning: "Mean throughput, in KB/s of 1024 bytes."},
	{Name: "maximum", Form: yamlschema.Number(0, 1e12), Required: true, Example: "265.04", Meaning: "Highest throughput, in KB/s."},
	{Name: "minimum", Form: yamlschema.Number(0, 1e12), Required: true, Example: "50.51", Meaning: "Lowest throughput, in KB/s."},
	{Name: "sd", Form: yamlschema.Number(0, 1e12), Required: true, Example: "67.39", Meaning: "Sample standard deviation of the throughput, in KB/s."},
	{Name: "source", Form: yamlschema.Text(), Unset: "that of published", Example: "breedy-2015, Table 2", Meaning: "Paper and table."},
}}

// statements are the keys of which a published value has one.
var statements = []string{"value", "at_least", "at_most", "change_percent", "best", "falls", "rises", "flat_from", "order", "text"}

// statement is a key of a published value that stands in place of the other statements.
func statement(name string, form yamlschema.Form, example, meaning string) yamlschema.Key {
	return yamlschema.Key{Name: name, Form: form, Example: example, Meaning: meaning,
		Instead: slices.DeleteFunc(slices.Clone(statements), func(s string) bool { return s == name })}
}

var unbounded = yamlschema.Number(math.Inf(-1), math.Inf(1))

var publishedValueKeys = &yamlschema.Mapping{Name: "published values", Keys: []yamlschema.Key{
	{Name: "group", Form: yamlschema.Known("group"), Unset: "the plan has no groups", Example: "first", Meaning: "Group of the runs; required where the plan has groups."},
	{Name: "where", Form: conditionForm, Unset: "all runs", Example: "{size: 64 KiB}", Meaning: "Radio, topology, size and axes of the sweep of the runs; the metric is averaged over what it leaves open."},
	{Name: "relative_to", Form: conditionForm, Unset: "none", Example: "{size: 64 KiB}", Beside: "{change_percent: 10}", Instead: []string{"value"}, Meaning: "The runs that change_percent starts from."},
	{Name: "treatment", Form: yamlschema.Known("treatment"), Unset: "every treatment", Example: "cubic", Meaning: "Treatment or mix, or `ideal` for the all-knowing sender."},
	{Name: "reference", Form: yamlschema.Known("treatment"), Unset: "none", Example: "cubic", Meaning: "Treatment whose transfer time `gain-percent` compares with."},
	{Name: "metric", Form: yamlschema.Word(metrics...), Required: true, Example: "throughput-kb-per-s", Meaning: "What the value measures."},
	{Name: "about", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "The value was read from a chart, or is printed as approximate."},
	{Name: "source", Form: yamlschema.Text(), Unset: "that of published", Example: "figure 9", Meaning: "The place in the paper."},
	statement("value", unbounded, "0.6", "The value itself."),
	statement("at_least", unbounded, "0.5", "A lower bound; can be given with at_most."),
	statement("at_most", unbounded, "0.9", "An upper bound."),
	withBeside(statement("change_percent", unbounded, "40", "By how much the metric changes from the runs of relative_to to those of where, in percent."), "{relative_to: {size: 64 KiB}}"),
	statement("best", conditionForm, "{size: 64 KiB}", "The axis's value at which the metric is highest."),
	statement("falls", yamlschema.Known("axis"), "size", "An axis along whose values, in the plan's order, the metric falls."),
	statement("rises", yamlschema.Known("axis"), "size", "An axis along whose values the metric rises."),
	statement("flat_from", conditionForm, "{size: 64 KiB}", "The axis's value from which on the metric no longer changes."),
	statement("order", yamlschema.List(yamlschema.Known("treatment or radio"), 1, MaxTreatments), "[cubic, reno]", "Treatments or radios, from the lowest to the highest."),
	statement("text", yamlschema.Text(), "loss has no influence", "A statement for people alone."),
}}

func withBeside(k yamlschema.Key, beside string) yamlschema.Key {
	k.Beside = beside
	return k
}

const exampleRows = "[{where: {size: 64 KiB}, radio: prc-117g-anw2c, topology: vip-lot, treatment: cubic, n: 10, average: 139.37, maximum: 265.04, minimum: 50.51, sd: 67.39}]"

var publishedKeys = &yamlschema.Mapping{Name: "published", Keys: []yamlschema.Key{
	{Name: "source", Form: yamlschema.Text(), Required: true, Example: "breedy-2015, Table 2", Meaning: "Paper, and table where all values are of one."},
	{Name: "rows", Form: yamlschema.List(yamlschema.Of(rowKeys), 0, maxPublished), Unset: "none", Meaning: "Rows with n, mean, maximum, minimum and standard deviation of the throughput of a run.",
		Example: exampleRows},
	{Name: "figures", Form: yamlschema.List(yamlschema.Of(publishedValueKeys), 0, maxPublished), Unset: "none", Example: "[{treatment: cubic, metric: throughput-kb-per-s, value: 120}]", Meaning: "Published values of any other form."},
}}

const (
	asPlan   = "the plan's"
	ofGroups = "every group must state its own"
)

var cellKeys = &yamlschema.Mapping{Name: "the plan", Keys: []yamlschema.Key{
	{Name: "notes", Form: yamlschema.List(yamlschema.Text(), 0, maxNotes), Unset: "none", Example: "[\"Antennas: OE-254, 10 m\"]", Meaning: "What a reader of the results must know; pages and exports show it."},
	{Name: "radio", Form: yamlschema.OneOrMany(yamlschema.Known("radio"), maxCells), Unset: ofGroups, Example: "prc-117g-anw2c", InTemplate: true, Meaning: "Radio profiles (`linktrial profiles`), each with runs of its own."},
	{Name: "topology", Form: yamlschema.OneOrMany(yamlschema.Known("topology"), maxCells), Unset: ofGroups, Example: "vip-lot", InTemplate: true, Meaning: "Topologies (`linktrial topology list`), each with runs of its own."},
	{Name: "size", Form: yamlschema.Either(sizeForm, yamlschema.List(sizeForm, 1, maxSizes), yamlschema.Of(&yamlschema.Mapping{Name: "sizes by topology", Free: &sizesForm})), Unset: "no flow needs one", Example: "256 KiB", InTemplate: true, Meaning: "Bytes of a transfer. A list: runs of each. A mapping: sizes by topology."},
	{Name: "sweep", Form: yamlschema.List(yamlschema.Of(axisKeys), 0, maxAxes), Unset: "the profile as it is", Example: "[{name: bandwidth, set: rate, values: [16 kbit/s, 1 Mbit/s]}]", Meaning: "Axes: parameters that vary. Every combination of their values has runs of its own."},
	{Name: "exclude", Form: yamlschema.List(conditionForm, 0, maxExcludes), Unset: "none", Example: "[{size: 64 KiB}]", Beside: "{size: [64 KiB, 256 KiB]}", Meaning: "Runs to leave out, by radio, topology, size and axes of the sweep."},
	{Name: "flows", Form: yamlschema.List(yamlschema.Of(flowKeys), 1, maxEntries), Unset: "one transfer from client to server", Example: "[{count: 10, spacing: 100ms}]", Meaning: "What a trial is made of."},
	{Name: "probes", Form: yamlschema.List(yamlschema.Of(probeKeys), 0, maxProbes), Unset: "none", Example: "[{treatment: voice, alone: 60s}]", Meaning: "Probes beside transfers, or alone."},
	{Name: "iterations", Form: yamlschema.Integer(1, MaxIterations), Required: true, Example: "10", InTemplate: true, Meaning: "Passes over all treatments."},
	{Name: "stop", Form: yamlschema.Of(stopKeys), Unset: "every run has all iterations", Example: "{first: 10, every: 5}", Beside: "{iterations: 30}", Meaning: "By which a run ends before its last iteration: treatments that are clearly slower to deliver than another one have no more trials."},
	{Name: "limits", Form: yamlschema.Of(limitsKeys), Unset: "the defaults of its keys", Example: "{connect: 10s, transfer: 1m, attempts: 2}", InTemplate: true, Meaning: "Times and attempts of a trial."},
	{Name: "valid", Form: yamlschema.Of(validKeys), Unset: "no rules", Example: "{clock_step: 100ms, host: 3 %}", Meaning: "Rules of validity: during an attempt that counts, none is broken."},
	{Name: "sample_interval", Form: yamlschema.Duration(10*time.Millisecond, time.Hour), Default: 100 * time.Millisecond, Example: "1s", Meaning: "Time between the samples of a transfer."},
}}

var groupKeys = func() *yamlschema.Mapping {
	name := yamlschema.Key{Name: "name", Form: yamlschema.Name(), Required: true, Example: "first", Meaning: "Unique in the plan."}
	chosen := yamlschema.Key{Name: "treatments", Form: yamlschema.OneOrMany(yamlschema.Known("treatment"), 2*MaxTreatments), Unset: "all", Example: "[cubic, reno]", Meaning: "Treatments and mixes of the group, by their names."}
	m := (&yamlschema.Mapping{Name: "groups", Keys: []yamlschema.Key{name, chosen}}).With(cellKeys.Keys...)
	m = m.Some("groups", "name", "notes", "radio", "topology", "size", "sweep", "exclude", "treatments", "flows", "probes", "iterations", "stop", "limits", "valid", "sample_interval")
	for i := range m.Keys {
		if k := &m.Keys[i]; cellKeys.Key(k.Name) != nil && k.Name != "notes" {
			k.Required, k.Default, k.Unset, k.InTemplate = false, nil, asPlan, false
		}
	}
	return m
}()

var planKeys = (&yamlschema.Mapping{Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Name(), Required: true, Example: "my-plan", InTemplate: true, Meaning: "Name of the plan, by which campaigns and files are called."},
	{Name: "title", Form: yamlschema.Line(), Unset: "the name", Example: "Four protocols over one radio", InTemplate: true, Meaning: "What pages and exports call it."},
	{Name: "groups", Form: yamlschema.List(yamlschema.Of(groupKeys), 1, maxGroups), Unset: "the plan is one experiment", Example: "[{name: first, iterations: 2}, {name: second, size: 1 MiB}]", Meaning: "Several experiments in one plan. A group takes from the plan what it does not state."},
	{Name: "treatments", Form: yamlschema.List(yamlschema.Of(treatmentKeys), 1, MaxTreatments), Required: true, Example: "[{name: cubic, protocol: tcp, options: {congestion: cubic}}]", Beside: "{probes: []}", InTemplate: true, Meaning: "What is compared. With order: fixed, in this order."},
	{Name: "mixes", Form: yamlschema.List(yamlschema.Of(mixKeys), 0, MaxTreatments), Unset: "none", Example: "[{name: both, flows: [{treatment: cubic}, {treatment: reno}]}]", Meaning: "Trials of several treatments at once."},
	{Name: "order", Form: yamlschema.Word(OrderFixed, OrderRandom, OrderCounterbalanced), Default: string(OrderFixed), Example: "counterbalanced", InTemplate: true, Meaning: "Order of the treatments within an iteration. Counterbalanced: each follows each other equally often (Williams, 1949)."},
	{Name: "seed", Form: yamlschema.Integer(0, math.MaxUint64), Required: true, Example: "1", InTemplate: true, Meaning: "Everything random follows from it: the same seed gives the same order and, in virtual time, the same results."},
	{Name: "require", Form: yamlschema.List(yamlschema.Of(requireKeys), 1, maxRequired), Unset: "nothing is required", Example: "[{average: {at_least: 100 KB/s}}]", Meaning: "Thresholds, stated beforehand; results say pass, fail or undecided of each."},
	{Name: "control", Form: yamlschema.Word(runsheet.ControlOutOfBand, runsheet.ControlInBand), Default: string(runsheet.ControlOutOfBand), Example: "in-band", Meaning: "Whether agents reach the orchestrator over a network of its own, or over the radios (in-band): then they are silent during a trial."},
	{Name: "control_share", Form: yamlschema.Quantity("%", 1, 100), Default: "10 %", Example: "20 %", Beside: "{control: in-band}", Meaning: "In-band control: the most of the trials' time that contact windows between them may take."},
	{Name: "capture", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "Keep a log of every trial's packets."},
	{Name: "published", Form: yamlschema.Of(publishedKeys), Unset: "none", Example: `{source: "breedy-2015, Table 2", rows: ` + exampleRows + `}`, Meaning: "Values of a paper, shown beside the results."},
}}).With(cellKeys.Keys...).Some("the plan", "name", "title", "notes", "groups", "radio", "topology", "size", "sweep", "exclude", "treatments", "flows", "mixes", "probes",
	"iterations", "stop", "order", "seed", "limits", "valid", "require", "control", "control_share", "sample_interval", "capture", "published")

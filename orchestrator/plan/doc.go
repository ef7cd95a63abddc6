// Package plan reads plans: what is compared, over which radios and topologies,
// how often and in which order. Comes in: a plan's YAML and a [Catalog] of what
// exists. Goes out: a [Plan] with every name resolved, or all that is wrong with
// it at once. Pure: no clock, no files.
//
// A plan is one YAML document:
//
//	name: quickstart            # lower-case letters, digits, hyphens
//	title: For people           # optional
//	notes: [What to know]       # optional
//	radio: prc-117g-anw2c       # a profile's name, or a list
//	topology: [vip-lot, k-lot]  # a topology's name, or a list
//	size: 256 KiB               # a size, a list, or a mapping from topology to either
//	sweep: …                    # optional: parameters to vary, see below
//	exclude:                    # optional: cells to leave out, by any of these and of the sweep's axes
//	  - {radio: mpu4, topology: k-lot}
//	treatments:                 # what is compared, in the fixed order
//	  - name: tcp-cubic         # unique in the plan
//	    label: TCP CUBIC        # for tables; optional, else the name
//	    protocol: tcp           # a driver's name
//	    options: {congestion: cubic}
//	    via:                    # optional: relay processes on the way, see below
//	      - {at: relay, protocol: split, options: {congestion: reno}}
//	    dscp: AF11              # optional: code point of its packets, by name or number
//	    complete_knowledge: false # whether the driver receives rate and delay
//	    missing: why            # holds while no driver of that name, no such option or choice exists:
//	                            # its trials are left out
//	flows: …                    # optional: what a trial is made of, see below
//	mixes: …                    # optional: trials of several treatments at once
//	probes: …                   # optional: probes beside transfers, or alone, see below
//	iterations: 10              # passes over all treatments
//	order: fixed                # within an iteration: fixed, random or counterbalanced
//	seed: 1                     # everything random follows from it
//	limits: {connect: 30s, transfer: 5m, attempts: 1, pause: 0s} # these are the defaults
//	valid: …                    # optional: when an attempt's figures count, see below
//	control: out-of-band        # or in-band: agents are silent during a trial
//	control_share: 10 %         # in-band: of the trials' time, for windows between them
//	sample_interval: 100ms
//	capture: false              # a packet log of every trial (docs/data-format.md, Logs of transfers)
//	published: …                # optional: figures of a paper, shown beside the results
//
// Runs are the cells radio × topology × size × axes of the sweep, in this
// nesting and in the order of the plan.
//
// # Sweeps
//
// A sweep is a list of axes; every combination of their values is a cell.
//
//	sweep:
//	  - {name: bandwidth, set: rate, values: [16 kbit/s, 1 Mbit/s]}
//	  - name: channel                          # two parameters that go together
//	    set: [channel.alpha, channel.beta]
//	    values: [[0.001, 0.01], [0.1, 1]]
//	    labels: [long, short]                  # optional, else the values
//
// What can be set: a figure of the profile's emulation section by its path
// (rate, channel.loss, arq.persistence …; see [radio.Vary]), option.NAME for
// every treatment whose driver has the option, flows.count and flows.duration
// for the flows of a trial.
//
// # Groups
//
// A plan of several experiments lists them; a group takes from the plan what
// it does not state itself.
//
//	groups:
//	  - name: test-1
//	    notes: [About this group]
//	    radio: …  topology: …  size: …  sweep: …  exclude: …  flows: …
//	    treatments: [newreno, radio]           # names of treatments and mixes; else all
//	    iterations: 3
//	    limits: {transfer: 1h}
//	    valid: {clock_step: 10ms}
//	    sample_interval: 1s
//
// # Relay processes
//
// A treatment may pass processes that end a connection and carry its bytes onward
// over another one. Via lists them in the order from client to server; each is a
// driver whose manifest has the role relay, at the node of one role. The ends stay
// those of the treatment's protocol. A flow from the relay's node does not pass
// one that is there or at the client. A sweep's option.NAME changes the ends alone.
//
// # Flows
//
// A trial is one transfer from client to server unless the plan says what it
// is made of. Each entry is a number of like flows:
//
//	flows:
//	  - {count: 10, start: 0s, spacing: 100ms, duration: 100s}
//	  - {count: 25, from: relay, on_off: {on: 50s, idle: 10s}, duration: 300s}
//
// size defaults to the cell's; with a duration the flow sends without end and
// counts what was acknowledged by then. on_off makes each flow a source whose
// on-times and idle times are drawn, exponentially with these means, until
// the duration has passed; they are the same for every treatment of an
// iteration. A mix is a trial with a list of its own, whose entries name treatments:
//
//	mixes:
//	  - name: five-and-five
//	    flows: [{treatment: sack, count: 5}, {treatment: lt-tcp, count: 5}]
//
// # Probes
//
// A treatment whose driver carries probes (docs/probes.md) has no place among
// flows. The list of probes says where it runs: beside the flows of every other
// trial, from the trial's start until the last flow has ended, and, with alone, in
// trials of its own. A group or a mix may have a list in place of the plan's.
//
//	probes:
//	  - {treatment: voice, alone: 60s}
//	  - {treatment: voice, from: server, alone: 60s}   # the other way, at the same time
//	  - {treatment: sensor, beside: false, alone: 5m}
//
// # Rules of validity
//
// An attempt during which a rule is broken is invalid, whether it succeeded or
// failed, and its trial is repeated in its place (docs/data-format.md, Rules of
// validity). Every rule holds for every node of the run.
//
//	valid:
//	  clock_step: 100 ms        # the most by which a node's clock may step, 1 ms to 1 h
//	  interfering: 5 %          # other traffic on the radios' interfaces: a share of the
//	                            # attempt's bytes, 0 to 100 %, or a size up to 1 GiB
//	  telemetry:                # readings of the radio, in their units
//	    - {reading: snr, min: 10 dB}
//	  battery: {min: 15 %}      # charge of the node's batteries
//	  temperature: {max: 85 °C} # of the node
//	  position: 25 m            # how far a node may move since the run began, 1 m to 100 km
//	  host: 3 %                 # of an attempt's time that a node's busy processors may keep from its programs
//
// # Bounds
//
// A plan has at most 256 KiB of text, 1000 runs, 100 000 trials and 200 000 flows
// in all, 50 000 trials in a run, 1000 flows in a trial, 200 treatments, 10 000
// iterations. Labels and
// titles are one line of at most 200 characters; no two treatments are alike in
// their name, in their label, or in their protocol and all options. An element of
// a list without a value is an error, and so is a whole number with a leading zero.
//
// # Published figures
//
//	published:
//	  source: breedy-2015, Table 2
//	  rows:                     # KB/s, 1 KB = 1024 bytes
//	    - {topology: vip-lot, radio: mpu4, treatment: udt, n: 10, average: 139.37, maximum: 265.04, minimum: 50.51, sd: 67.39}
//	    # where several runs have the radio and topology, each row says which is meant:
//	    - {where: {loss: 0.1, size: 10 KB}, topology: vip-lot, radio: mpu4, …}   # and group, where there are groups
//	  figures:                  # anything else; see [Figure]
//	    - {group: test-1, where: {bandwidth: 1 Mbit/s, size: 1 MB}, treatment: radio, metric: normalised-throughput, value: 0.6, source: figure 9}
package plan

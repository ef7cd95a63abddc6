// Package plan reads plans: what is compared, over which radios and
// topologies, how often and in which order. Comes in: a plan's YAML and a
// [Catalog] of what exists. Goes out: a [Plan] with every name resolved, or
// all that is wrong with it at once. Pure: no clock, no files. Imports
// executor/runsheet, protocols/contract and internal leaves.
//
// A plan is one YAML document:
//
//	name: quickstart            # lower-case letters, digits, hyphens
//	title: For people           # optional
//	notes: [What to know]       # optional
//	radio: prc-117g-anw2c       # a profile's name, or a list
//	topology: [vip-lot, k-lot]  # a topology's name, or a list
//	size: 256 KiB               # a size, a list, or a mapping from topology to either
//	exclude:                    # optional: cells to leave out, by any of the three
//	  - {radio: mpu4, topology: k-lot}
//	treatments:                 # what is compared, in the fixed order
//	  - name: tcp-cubic         # unique in the plan
//	    label: TCP CUBIC        # for tables; optional, else the name
//	    protocol: tcp           # a driver's name
//	    options: {congestion: cubic}
//	    complete_knowledge: false # whether the driver is told rate and delay
//	    missing: why            # holds while no driver of that name exists: its trials are left out
//	iterations: 10              # passes over all treatments
//	order: fixed                # within an iteration: fixed, random or counterbalanced
//	seed: 1                     # everything random follows from it
//	limits: {connect: 30s, transfer: 5m, attempts: 1, pause: 0s} # these are the defaults
//	control: out-of-band        # or in-band: agents are silent during a trial
//	sample_interval: 100ms
//	capture: false              # a packet log of every trial
//	published:                  # optional: figures of a paper, to stand beside the results
//	  source: breedy-2015, Table 2
//	  rows:                     # KB/s, 1 KB = 1024 bytes
//	    - {topology: vip-lot, radio: mpu4, treatment: udt, n: 10, average: 139.37, maximum: 265.04, minimum: 50.51, sd: 67.39}
//
// Runs are the cells radio × topology × size, in this nesting and in the
// order of the plan.
package plan

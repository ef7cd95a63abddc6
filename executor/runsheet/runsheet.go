// Package runsheet is the plan compiled for a run: the ordered list of trials
// with all parameters and seeds. The orchestrator writes it, agents walk through
// it, and its hash is part of every result. Comes in and goes out: JSON.
package runsheet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/protocols/contract"
)

// Format is the version of the run sheet's JSON.
const Format = 1

// Sheet is one run: one radio, one topology, one transfer size, one channel setting.
type Sheet struct {
	Format int `json:"format"`

	Plan     string `json:"plan"`      // name of the plan
	PlanHash string `json:"plan_hash"` // SHA-256 of the plan's text
	Cell     Cell   `json:"cell"`

	Control Control `json:"control"`
	// ControlShare is, with in-band control, the share of the trials' time that windows
	// between them may take; 0: [DefaultControlShare].
	ControlShare float64 `json:"control_share,omitempty"`
	Order        string  `json:"order"` // fixed, random or counterbalanced: how Trials was ordered

	Radio    radio.Profile  `json:"radio"`
	Topology radio.Topology `json:"topology"`
	Network  *radio.Network `json:"network,omitempty"` // the radio as emulated, nil when it cannot be

	Treatments []Treatment `json:"treatments"`
	// Mixes are names that trials may bear in Treatment's place: several
	// treatments at once.
	Mixes  []Mix   `json:"mixes,omitempty"`
	Trials []Trial `json:"trials"` // in the order they run

	Limits Limits `json:"limits"`
	// Valid is the plan's rules of validity; nil: it has none.
	Valid *Valid `json:"valid,omitempty"`
	// Require is the plan's requirements of this run; none: nothing is judged.
	Require []Requirement `json:"require,omitempty"`
	// Stop is the plan's rule to stop by; nil: all iterations are run.
	Stop *Stop `json:"stop,omitempty"`

	SampleInterval time.Duration `json:"sample_interval_ns"`
	// Seed of the plan; all other seeds were derived from it when the sheet was compiled.
	Seed uint64 `json:"seed,string"`
	// Capture asks for a packet log of every trial (pcapng), kept by the emulator.
	Capture bool `json:"capture,omitempty"`
}

// Cell names the run among the runs of its campaign.
type Cell struct {
	Index     int    `json:"index"` // from 0, in the order of the plan
	Radio     string `json:"radio"`
	Topology  string `json:"topology"`
	SizeBytes int64  `json:"size_bytes"`

	// Of a plan with groups of cells or sweeps:
	Group    string    `json:"group,omitempty"`
	Label    string    `json:"label,omitempty"` // the settings for people: "bandwidth 16 kbit/s, packet 400 B"
	Settings []Setting `json:"settings,omitempty"`
}

// Setting is one parameter that a sweep has set for this run. Radio, treatments
// and flows of the sheet have it applied already.
type Setting struct {
	Axis      string `json:"axis"`      // the sweep's name: "channel"
	Parameter string `json:"parameter"` // "channel.alpha", "option.mss", "flows.count"
	Value     string `json:"value"`     // as the plan writes it: "0.001"
	// Label is the axis's value by the name that tables and published values
	// use: "(0.001, 0.01)". The parameters of one axis share it.
	Label string `json:"label"`
}

// Words are the group and the settings, for people; empty where the plan has neither.
func (c *Cell) Words() string {
	if c.Group == "" || c.Label == "" {
		return c.Group + c.Label
	}
	return c.Group + " · " + c.Label
}

// At is the run's value of an axis: radio, topology, size (as "3 KiB"), group,
// or one of its sweep; empty where it has none of that name.
func (c *Cell) At(axis string) string {
	switch axis {
	case "radio":
		return c.Radio
	case "topology":
		return c.Topology
	case "size":
		return unit.FormatBytes(c.SizeBytes)
	case "group":
		return c.Group
	}
	for _, s := range c.Settings {
		if s.Axis == axis {
			return s.Label
		}
	}
	return ""
}

// Mix is a trial of flows of several treatments, which tables show under a
// name of its own.
type Mix struct {
	Name    string `json:"name"`
	Label   string `json:"label"`
	Missing string `json:"missing,omitempty"` // as of a treatment
}

// Control is whether control traffic has a network of its own.
type Control string

const (
	ControlOutOfBand Control = "out-of-band"
	// ControlInBand: control traffic shares the radio, so an agent sends
	// nothing between the start and the end of a trial.
	ControlInBand Control = "in-band"
)

// DefaultControlShare is the share of the trials' time that windows of in-band control
// may take, where the plan states none.
const DefaultControlShare = 0.1

// WindowShare is the share of the trials' time that windows of in-band control may take.
func (s *Sheet) WindowShare() float64 {
	if s.ControlShare == 0 {
		return DefaultControlShare
	}
	return s.ControlShare
}

// Treatment is what is compared: a protocol with its options, and the port its
// listener holds on the server node for the whole run.
type Treatment struct {
	Name          string `json:"name"`  // unique in the plan: "tcp-cubic"
	Label         string `json:"label"` // for tables: "TCP CUBIC"
	Protocol      string `json:"protocol"`
	DriverVersion string `json:"driver_version"` // of the manifest the plan was checked against
	// Digests are the drivers that an agent may run as Protocol, and no other:
	// "sha256:…" of a folder, "image:sha256:…" of a container image
	// (internal/driverdigest).
	Digests []string       `json:"digests,omitempty"`
	Options map[string]any `json:"options"`
	Port    int            `json:"port"`
	// Via are the relay processes that the treatment's flows pass on their way from
	// client to server, in this order; none: its connections go from end to end.
	Via []Via `json:"via,omitempty"`
	// Probe: its driver carries probes, and no transfers.
	Probe bool `json:"probe,omitempty"`
	// DSCP is the code point of all its packets, those of the relay processes
	// included; 0 is the default.
	DSCP int `json:"dscp,omitempty"`
	// SecondRadio: its flows use the nodes' second radios, not the first; a driver that
	// uses several radios at once gets to know of them without it.
	SecondRadio bool `json:"second_radio,omitempty"`
	// CompleteKnowledge lets the driver know rate and delay beforehand (contract.Link).
	CompleteKnowledge bool `json:"complete_knowledge,omitempty"`
	// Missing is set when no driver of that name exists: its trials are not
	// run, and the results list it as missing, with this reason.
	Missing string `json:"missing,omitempty"`
}

// Trial is one measured transfer of one treatment.
type Trial struct {
	Index     int    `json:"index"`     // from 0, the place in the sheet
	Iteration int    `json:"iteration"` // from 1
	Treatment string `json:"treatment"` // the name tables group by
	// ChannelSeed is the same for every trial of an iteration: every treatment
	// meets the same channel realisation.
	ChannelSeed uint64 `json:"channel_seed,string"`
	Flows       []Flow `json:"flows"`
	// Probes run beside the flows, from the trial's start until the last flow has
	// ended; in a trial without flows, each for its Duration. They have no size and
	// no start, and lead from the client to the server or back.
	Probes []Flow `json:"probes,omitempty"`
}

// Carried are the flows of a trial and then its probes; an index of a transfer's
// identity counts them in this order.
func (t *Trial) Carried() []Flow { return slices.Concat(t.Flows, t.Probes) }

// Beside is the treatment or mix whose flows the probes accompany; empty: they are
// alone.
func (t *Trial) Beside() string {
	if len(t.Flows) == 0 {
		return ""
	}
	return t.Treatment
}

// Flow is one transfer of a trial; most trials have one.
type Flow struct {
	Treatment   string        `json:"treatment"`
	From        radio.Role    `json:"from"`
	To          radio.Role    `json:"to"`
	Start       time.Duration `json:"start_ns,omitempty"` // after the trial's start
	SizeBytes   int64         `json:"size_bytes"`
	PayloadSeed uint64        `json:"payload_seed,string"`
	// Duration, where not 0, bounds the flow by time: its client sends for so
	// long after its clock has started (contract.Transfer.DurationMS), and what
	// was delivered counts, over the time until it was acknowledged. SizeBytes
	// is then only more than the radio can carry in that time.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Session numbers sources that go on and off, from 1; each on-time is a flow.
	Session int `json:"session,omitempty"`
}

// FromServer reports whether the listener sends: the probe's client asks it to.
func (f *Flow) FromServer() bool { return f.From == radio.RoleServer && f.To == radio.RoleClient }

// ClientAt is the role whose node runs the flow's client, which opens it and has its
// result: where it starts, but of what comes from the server the client.
func (f *Flow) ClientAt() radio.Role {
	if f.FromServer() {
		return f.To
	}
	return f.From
}

// ServerAt is the role at whose listener the flow is, at its other end.
func (f *Flow) ServerAt() radio.Role {
	if f.FromServer() {
		return f.From
	}
	return f.To
}

// Limits bound a trial and its repetitions.
type Limits struct {
	Connect  time.Duration `json:"connect_ns"`
	Transfer time.Duration `json:"transfer_ns"`
	Attempts int           `json:"attempts"` // at most, for a trial; 1 is no retry
	// Pause between two trials, on top of the executor's own dead time.
	Pause time.Duration `json:"pause_ns,omitempty"`
	// Wait is how long a trial is repeated because of faults of the apparatus before
	// the run pauses; 0: [DefaultWait], as in sheets without a limit.
	Wait time.Duration `json:"wait_ns,omitempty"`
	// Horizon is until when results wait for a delivery, from the first attempt to connect;
	// 0: [Limits.Transfer], as in sheets without one.
	Horizon time.Duration `json:"horizon_ns,omitempty"`
}

// DeliveryHorizon is [Limits.Horizon], or what it is where there is none.
func (l Limits) DeliveryHorizon() time.Duration { return cmp.Or(l.Horizon, l.Transfer) }

// DefaultWait is [Limits.Wait] where the plan has none.
const DefaultWait = 10 * time.Minute

// Encode writes the sheet in its one canonical form.
func (s *Sheet) Encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode run sheet: %w", err)
	}
	return append(b, '\n'), nil
}

// Hash is the SHA-256 of an encoded sheet, in hexadecimal.
func Hash(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// Decode reads a sheet and checks that it can be walked through.
func Decode(b []byte) (*Sheet, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var s Sheet
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("run sheet: %w", err)
	}
	if dec.More() {
		return nil, errors.New("run sheet: more than one document")
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("run sheet: %w", err)
	}
	return &s, nil
}

// Check reports why a sheet cannot be walked through. [Decode] does so, too.
func (s *Sheet) Check() error {
	if s.Format != Format {
		return fmt.Errorf("format %d, this Linktrial reads %d", s.Format, Format)
	}
	if err := s.checkTreatments(); err != nil {
		return err
	}
	if s.Limits.Connect <= 0 || s.Limits.Transfer <= 0 || s.Limits.Attempts < 1 {
		return fmt.Errorf("limits %+v, expected positive times and at least one attempt", s.Limits)
	}
	if s.Limits.Horizon < 0 {
		return fmt.Errorf("a horizon of %s", s.Limits.Horizon)
	}
	if err := s.Valid.check(); err != nil {
		return err
	}
	if err := s.checkRequirements(); err != nil {
		return err
	}
	for i, t := range s.Trials {
		if t.Index != i {
			return fmt.Errorf("trial at place %d has index %d", i, t.Index)
		}
		if t.Iteration < 1 || len(t.Flows)+len(t.Probes) == 0 {
			return fmt.Errorf("trial %d has iteration %d and %d flows", i, t.Iteration, len(t.Flows))
		}
		if err := s.checkFlows(&t); err != nil {
			return err
		}
	}
	return s.checkStop()
}

// checkFlows reports why the flows and probes of a trial cannot be run.
func (s *Sheet) checkFlows(t *Trial) error {
	for i, f := range t.Carried() {
		tr, probe := s.Treatment(f.Treatment), i >= len(t.Flows)
		if tr == nil || tr.Missing != "" {
			return fmt.Errorf("trial %d names treatment %q, which the sheet cannot run", t.Index, f.Treatment)
		}
		if tr.Probe != probe {
			return fmt.Errorf("trial %d has treatment %q as a flow or as a probe, and it is the other", t.Index, f.Treatment)
		}
		if f.SizeBytes < 0 || f.SizeBytes > contract.MaxSize || f.Start < 0 || f.Duration < 0 {
			return fmt.Errorf("trial %d has a flow of %d bytes starting at %s for %s", t.Index, f.SizeBytes, f.Start, f.Duration)
		}
		if probe && (f.SizeBytes != 0 || f.Start != 0 || (f.Duration == 0) != (len(t.Flows) > 0)) {
			return fmt.Errorf("trial %d has a probe of %d bytes starting at %s for %s; it begins at the trial's start, and lasts a time exactly where the trial has no flow", t.Index, f.SizeBytes, f.Start, f.Duration)
		}
		if probe && (f.ClientAt() != radio.RoleClient || f.ServerAt() != radio.RoleServer) {
			return fmt.Errorf("trial %d has a probe from the %s to the %s, expected client and server", t.Index, f.From, f.To)
		}
		if !probe && f.FromServer() {
			return fmt.Errorf("trial %d has a flow from the server to the client; only probes lead there", t.Index)
		}
	}
	return nil
}

// checkTreatments reports why the sheet's listeners cannot be started.
func (s *Sheet) checkTreatments() error {
	ports := map[int]string{}
	check := func(name, protocol string, port int) error {
		// It becomes part of a path on every node.
		if !contract.ValidName(protocol) {
			return fmt.Errorf("treatment %s has protocol %.80q, expected lower-case letters, digits and hyphens, at most 32", name, protocol)
		}
		if port < 1 || port > 65535 {
			return fmt.Errorf("treatment %s has port %d", name, port)
		}
		if other, taken := ports[port]; taken {
			return fmt.Errorf("treatments %s and %s share port %d", other, name, port)
		}
		ports[port] = name
		return nil
	}
	for _, t := range s.Treatments {
		if t.Missing != "" {
			continue
		}
		if err := check(t.Name, t.Protocol, t.Port); err != nil {
			return err
		}
		if t.DSCP < 0 || t.DSCP > contract.MaxDSCP {
			return fmt.Errorf("treatment %s has DSCP %d, expected 0 to %d", t.Name, t.DSCP, contract.MaxDSCP)
		}
		if t.SecondRadio && len(t.Via) > 0 {
			return fmt.Errorf("treatment %s uses second radios and passes relay processes, which use the first", t.Name)
		}
		if t.SecondRadio && s.Topology.Second == nil {
			return fmt.Errorf("treatment %s uses second radios, and topology %s has none", t.Name, s.Topology.Name)
		}
		if t.Probe && len(t.Via) > 0 {
			return fmt.Errorf("treatment %s is a probe and passes relay processes", t.Name)
		}
		last := 0
		for _, v := range t.Via {
			at := Place(v.At)
			if at <= last {
				return fmt.Errorf("treatment %s passes a relay process at the %q, expected client, relay, server in this order, each once", t.Name, v.At)
			}
			last = at
			if err := check(fmt.Sprintf("%s (via the %s)", t.Name, v.At), v.Protocol, v.Port); err != nil {
				return err
			}
		}
	}
	return nil
}

// Treatment finds a treatment by name, or nil.
func (s *Sheet) Treatment(name string) *Treatment {
	for i := range s.Treatments {
		if s.Treatments[i].Name == name {
			return &s.Treatments[i]
		}
	}
	return nil
}

// Label is the name of a treatment or mix for tables, or the name itself.
func (s *Sheet) Label(name string) string {
	if t := s.Treatment(name); t != nil && t.Label != "" {
		return t.Label
	}
	for _, m := range s.Mixes {
		if m.Name == name && m.Label != "" {
			return m.Label
		}
	}
	return name
}

// SizeTo is how many bytes each flow of a treatment carries; 0: not all carry as many, or
// a time ends them.
func (s *Sheet) SizeTo(treatment string) (size int64) {
	for i := range s.Trials {
		for j := range s.Trials[i].Flows {
			f := &s.Trials[i].Flows[j]
			switch {
			case f.Treatment != treatment:
			case f.Duration > 0, size != 0 && f.SizeBytes != size:
				return 0
			default:
				size = f.SizeBytes
			}
		}
	}
	return size
}

// ConnectGrace is what the executor allows a client past its connect limit.
const ConnectGrace = 3 * time.Second

// IdleBeforeControl is how long, with in-band control, the server's listeners must have
// had no transfer before its agent may call: two attempts that do not reach the server.
func (s *Sheet) IdleBeforeControl() time.Duration {
	return 2*(s.Limits.Connect+ConnectGrace) + s.Limits.Pause
}

// Iterations is the highest iteration of the sheet.
func (s *Sheet) Iterations() int {
	n := 0
	for _, t := range s.Trials {
		n = max(n, t.Iteration)
	}
	return n
}

// TransferID is the identity of one flow of one attempt of one trial of a run.
func TransferID(runID string, trial, attempt, flow int) contract.TransferID {
	sum := sha256.Sum256([]byte(runID + "/" + strconv.Itoa(trial) + "/" + strconv.Itoa(attempt) + "/" + strconv.Itoa(flow)))
	return contract.TransferID(sum[:16])
}

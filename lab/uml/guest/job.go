package guest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"linktrial/internal/radio"
)

// Where things are in the guest, always, so that no path of the host gets into
// a run: two runs in different folders stay the same to the byte.
const (
	ShareDir   = "/run/lab"          // the folder shared with the host, the only one that is written
	driversDir = "/run/drivers"      // has the folders of drivers, by their place in the list
	programDir = "/run/program.host" // the program's folder on the host
	program    = "/run/program/linktrial"
)

// Names in the folder that the guest's command line names. They are
// links, so that the command line has no blanks whatever folders are called.
const (
	LinkShare   = "share"
	LinkProgram = "linktrial"

	linkDrivers = "drivers"
)

// LinkDrivers is the name of the link to the i-th folder of drivers.
func LinkDrivers(i int) string { return linkDrivers + strconv.Itoa(i) }

// TrustFile, in the shared folder, has the keys that the agents trust to sign
// run sheets.
const TrustFile = "trusted-keys"

// Job tells a guest what to do. It lies in the shared folder.
type Job struct {
	Sheets []Sheet `json:"sheets"`
	// Trace has the system calls of every process counted, with strace, into
	// files at [TracePath].
	Trace bool `json:"trace,omitempty"`
	// Vitals is how often, in virtual time, the guest notes what its processes use, in
	// [Sheet.VitalsFile]; 0: never.
	Vitals time.Duration `json:"vitals_ns,omitempty"`
	// Query is the drivers that the guest asks, in place of runs, whether they can run
	// in it; what they say is then in [QueryFile].
	Query []string `json:"query,omitempty"`
}

// QueryFile, in the shared folder, has a list of [Driver] in JSON.
const QueryFile = "drivers.json"

// Query is what "lab guest-query" reads from standard input, as one JSON document.
type Query struct {
	View  View     `json:"view"`
	Names []string `json:"names"` // of drivers
}

// Driver is what a driver says of itself in a guest.
type Driver struct {
	Name        string              `json:"name"`
	Unsupported string              `json:"unsupported,omitempty"` // why it cannot run; empty where it can
	Choices     map[string][]string `json:"choices,omitempty"`     // values that an option can have here
	Remarks     map[string]string   `json:"remarks,omitempty"`     // "option=value": where it comes from, or why it cannot be had
}

// ParseDrivers reads a [QueryFile].
func ParseDrivers(b []byte) ([]Driver, error) {
	var list []Driver
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("drivers of the guest: %w", err)
	}
	return list, nil
}

// ParseJob reads a job and checks that its runs stay below the shared folder.
func ParseJob(b []byte) (Job, error) {
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return Job{}, fmt.Errorf("job: %w", err)
	}
	if j.Vitals < 0 {
		return Job{}, fmt.Errorf("job: vitals_ns is %d, expected at least 0", j.Vitals)
	}
	for i, s := range j.Sheets {
		if !filepath.IsLocal(s.Run) || filepath.Clean(s.Run) != s.Run || s.Run == "." {
			return Job{}, fmt.Errorf("job: run %d is %.140q, expected the name of a folder", i, s.Run)
		}
		if s.Network == nil {
			return Job{}, fmt.Errorf("job: run %.140q has no radio network", s.Run)
		}
	}
	return j, nil
}

// Sheet is one run that a guest executes. Its run sheet is at [Sheet.File], and the
// sheet's signature beside it.
type Sheet struct {
	Run     string         `json:"run"`
	Network *radio.Network `json:"network"`
	Faults  *Faults        `json:"faults,omitempty"` // to be injected; nil: none
}

// File is where a run's sheet is, seen from the shared folder.
func (s Sheet) File() string { return filepath.Join(s.Run, "sheet.json") }

// SignatureFile is where the run sheet's signature is.
func (s Sheet) SignatureFile() string { return s.File() + ".sig" }

// StateDir is the state folder of a node's agent, seen from the shared folder.
func (s Sheet) StateDir(role radio.Role) string { return filepath.Join(s.Run, string(role)) }

// Agent is what "lab guest-agent" reads from standard input: one JSON document
// on one line. The agent enters its view and executes one run sheet as agents do
// without an orchestrator; the end of standard input tells every role but the
// client's to finish.
type Agent struct {
	Name         string     `json:"name"`
	Role         radio.Role `json:"role"`
	Run          string     `json:"run"`
	Sheet        string     `json:"sheet"` // path; its signature lies beside it
	Trust        string     `json:"trust"` // file of the keys that the agent trusts
	StateDir     string     `json:"state_dir"`
	View         View       `json:"view"`
	Device       string     `json:"device"`
	RadioAddress string     `json:"radio_address"`
	RadioControl string     `json:"radio_control"`
	Place        string     `json:"place"`
	Faults       bool       `json:"faults,omitempty"` // faults are injected
}

// ParseAgent reads the document of [Agent].
func ParseAgent(line []byte) (Agent, error) {
	var a Agent
	if err := json.Unmarshal(line, &a); err != nil {
		return Agent{}, fmt.Errorf("standard input of the agent: %w", err)
	}
	return a, nil
}

// Place is where the trials ran, for the provenance.
const Place = "emulated, virtual time"

// Host is the guest's name.
const Host = "virtual-time-lab"

package radio

// Topology is nodes at positions, and which of them are within radio range of each
// other.
type Topology struct {
	Name   string `json:"name"` // "vip-lot"
	Title  string `json:"title"`
	Source string `json:"source"`

	Stations []Station `json:"stations"`
	Links    []Path    `json:"links"`
	Notes    []string  `json:"notes,omitempty"`

	// Second is a further radio at every station; nil: each has one.
	Second *SecondRadio `json:"second_radio,omitempty"`

	Hash string `json:"hash"` // SHA-256 of the file
}

// SecondRadio is what the stations of a topology have beside the radio that a plan
// names: its links are those of the topology, on a channel of its own.
type SecondRadio struct {
	Radio  string `json:"radio"` // name of its profile
	Source string `json:"source"`
	// Profile is that of the name, as the catalog has it; nil as long as the topology
	// was only read.
	Profile *Profile `json:"profile,omitempty"`
}

// Role is what a node does in a run.
type Role string

const (
	RoleClient Role = "client"
	RoleRelay  Role = "relay"
	RoleServer Role = "server"
)

// Roles are all of them, in the order from client to server.
var Roles = []Role{RoleClient, RoleRelay, RoleServer}

// Station is one node's place.
type Station struct {
	Name      string  `json:"name"` // "trailer"
	Role      Role    `json:"role"`
	Latitude  float64 `json:"latitude"`  // degrees north
	Longitude float64 `json:"longitude"` // degrees east
	Elevation float64 `json:"elevation"` // metres above sea level
	Moves     *Moves  `json:"moves,omitempty"`
}

// Path is a pair of stations within radio range of each other, by role, and their
// distance.
type Path struct {
	A              Role    `json:"a"`
	B              Role    `json:"b"`
	DistanceMetres float64 `json:"distance_metres"`
	Source         string  `json:"source"` // of the distance
}

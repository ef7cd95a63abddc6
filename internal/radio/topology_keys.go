package radio

import "linktrial/internal/yamlschema"

// Bounds of a topology. Places on the ground, in metres: from below the shore of the Dead Sea
// to above every summit, and not farther from each other than the other side of the earth.
const (
	maxStations  = 3 // one for each role, and a link for each pair of them
	minElevation = -500
	maxElevation = 9000
	maxDistance  = 20_040_000
	maxWaypoints = 1000
)

// TopologyLanguage is the keys of topologies.
var TopologyLanguage = &yamlschema.Document{
	Name: "topology", Title: "Topology", Root: topologyKeys,
	Meaning: "A topology says at which positions nodes are, and which of them are within radio range of each other.",
}

var (
	roleWord    = yamlschema.Word(Roles...)
	notesForm   = yamlschema.List(yamlschema.Text(), 0, 0)
	latitude    = yamlschema.Key{Name: "latitude", Form: yamlschema.Number(-90, 90), Required: true, Example: "39.0300000", Meaning: "Degrees north (WGS 84)."}
	longitude   = yamlschema.Key{Name: "longitude", Form: yamlschema.Number(-180, 180), Required: true, Example: "-76.9600000", Meaning: "Degrees east (WGS 84)."}
	patternMove = `^\s*[-+.0-9eE]+ (m/s|km/h)\s*$`
)

// sourceKey is where something is known from.
func sourceKey(meaning string) yamlschema.Key {
	return yamlschema.Key{Name: "source", Form: yamlschema.Text(), Required: true, Example: `"breedy-2015, section V"`, Meaning: meaning}
}

var topologyKeys = &yamlschema.Mapping{Name: "the topology", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Name(), Required: true, Example: "vip-lot", InTemplate: true, Meaning: "What plans and commands name the topology by."},
	{Name: "title", Form: yamlschema.Line(), Required: true, Example: "VIP Lot", InTemplate: true, Meaning: "What pages and exports call it."},
	{Name: "source", Form: yamlschema.Text(), Required: true, Example: `"breedy-2015, section IV.B"`, InTemplate: true, Meaning: "Where the nodes and their places are known from."},
	{Name: "stations", Form: yamlschema.List(yamlschema.Of(stationKeys), 1, maxStations), Required: true, InTemplate: true,
		Example: "[{name: trailer, role: server, latitude: 39.03, longitude: -76.96, elevation: unknown}, {name: lot, role: client, latitude: 39.0308993, longitude: -76.96, elevation: 60 m}]",
		Meaning: "The nodes: a client, a server and at most one relay."},
	{Name: "links", Form: yamlschema.List(yamlschema.Of(linkKeys), 1, maxStations), Required: true, InTemplate: true, Example: "[{between: [client, server], distance: 100 m, source: measured}]",
		Meaning: "The pairs of stations within radio range of each other. They lead from the client to the server."},
	{Name: "second_radio", Form: yamlschema.Of(secondRadioKeys), Unset: "each node has one radio", Example: `{radio: prc-152a, source: "the two radios of each vehicle"}`,
		Meaning: "A radio that every node has beside the one that a plan names."},
	{Name: "notes", Form: notesForm, Unset: "none", Example: `["Positions are constructed to reproduce the distances."]`, Meaning: "What a reader of the results must know; pages and exports show it."},
}}

var stationKeys = &yamlschema.Mapping{Name: "stations", Keys: []yamlschema.Key{
	{Name: "name", Form: yamlschema.Line(), Required: true, Example: "trailer", Meaning: "Unique in the topology."},
	{Name: "role", Form: roleWord, Required: true, Example: "client", Meaning: "What the node does in a run; one station has each role."},
	latitude, longitude,
	{Name: "elevation", Form: yamlschema.Either(yamlschema.Distance(minElevation, maxElevation), yamlschema.Word("unknown")), Required: true, Example: "-430 m",
		Meaning: "Above sea level. An unknown one is 0 m, and a note says so."},
	{Name: "moves", Form: yamlschema.Of(movesKeys), Unset: "the station stays", Example: "{speed: 1.5 m/s, waypoints: [{latitude: 39.031, longitude: -76.96}], return: true}",
		Meaning: "How the station moves during each trial, from its position on; for radios whose channel is `mobility`."},
}}

var movesKeys = &yamlschema.Mapping{Name: "moves", Keys: []yamlschema.Key{
	{Name: "speed", Form: yamlschema.Matching("speed in m/s or km/h, 0.01 to 1000 m/s", patternMove), Required: true, Example: "30 km/h", Meaning: "Along the great circles between waypoints."},
	{Name: "waypoints", Form: yamlschema.List(yamlschema.Of(waypointKeys), 1, maxWaypoints), Required: true, Example: "[{latitude: 39.031, longitude: -76.96}]",
		Meaning: "Where it goes, one after the other, from its position on."},
	{Name: "return", Form: yamlschema.Flag(), Default: false, Example: "true", Meaning: "At the last waypoint it turns round, and goes back and forth for ever; else it stays there."},
}}

var waypointKeys = &yamlschema.Mapping{Name: "waypoints", Inline: true, Keys: []yamlschema.Key{latitude, longitude}}

var linkKeys = &yamlschema.Mapping{Name: "links", Keys: []yamlschema.Key{
	{Name: "between", Form: yamlschema.List(roleWord, 2, 2), Required: true, Example: "[client, server]", Meaning: "The two stations, by their roles."},
	{Name: "distance", Form: yamlschema.Distance(0, maxDistance), Unset: "it follows from the positions", Example: "100 m",
		Meaning: "Between the two. It must agree with the positions to 5 %."},
	sourceKey("Where the distance is known from."),
}}

var secondRadioKeys = &yamlschema.Mapping{Name: "second radio", Keys: []yamlschema.Key{
	{Name: "radio", Form: yamlschema.Known("radio"), Required: true, Example: "prc-152a", Meaning: "Name of its profile."},
	sourceKey("Where it is known from that the nodes have it."),
}}

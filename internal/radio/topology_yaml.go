package radio

import (
	"math"
	"strconv"
	"strings"

	"linktrial/internal/yamldoc"
	"linktrial/internal/yamlschema"
)

// ParseTopology reads a topology. A link's distance, where it is not stated,
// follows from the positions; where both are given they must agree. The error,
// if any, is [yamldoc.Problems].
func ParseTopology(file string, data []byte) (*Topology, error) {
	d := yamldoc.Parse(file, data)
	r := topologyKeys.Read(d.Root())
	t := &Topology{
		Name:   name(r.Field("name")),
		Title:  r.Field("title").Required().Label(""),
		Source: source(r.Field("source")),
		Notes:  texts(r.Field("notes")),
		Hash:   hash(data),
	}
	if v := r.Field("second_radio"); v.Present() {
		m := secondRadioKeys.Read(v)
		t.Second = &SecondRadio{Radio: name(m.Field("radio")), Source: source(m.Field("source"))}
	}
	var unknown []string
	for _, v := range upToThree(r.Field("stations").Required(), "stations, one for each role") {
		s, elevationKnown := station(v, t.Stations)
		if !elevationKnown {
			unknown = append(unknown, s.Name)
		}
		t.Stations = append(t.Stations, s)
	}
	if len(unknown) > 0 {
		t.Notes = append(t.Notes, elevationNote(unknown))
	}
	for _, role := range []Role{RoleClient, RoleServer} {
		if f := r.Field("stations"); r.OK() && t.Station(role) == nil {
			f.Problem("no station has the role %s", role)
		}
	}
	placed := r.OK()
	for _, v := range upToThree(r.Field("links").Required(), "links, one for each pair of stations") {
		t.Links = append(t.Links, link(v, t, placed))
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	n := Network{Links: make([]Link, len(t.Links))}
	for i, l := range t.Links {
		n.Links[i] = Link{A: l.A, B: l.B}
	}
	if n.Route(RoleClient, RoleServer) == nil {
		r.Field("links").Problem("no way leads from the client to the server")
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

// upToThree is a list of stations or links. Each is compared with those before it, so
// the others of a list that is too long are not read.
func upToThree(v yamldoc.Value, what string) []yamldoc.Value {
	list := v.List()
	if len(list) > maxStations {
		v.Problem("expected at most %d %s, found %d", maxStations, what, len(list))
		list = list[:maxStations]
	}
	return list
}

// Station is the station of a role, or nil.
func (t *Topology) Station(role Role) *Station {
	for i := range t.Stations {
		if t.Stations[i].Role == role {
			return &t.Stations[i]
		}
	}
	return nil
}

func station(v yamldoc.Value, others []Station) (s Station, elevationKnown bool) {
	m := stationKeys.Read(v)
	s = Station{
		Name:      m.Field("name").Required().Label(""),
		Role:      Role(m.Word("role")),
		Latitude:  m.Number("latitude"),
		Longitude: m.Number("longitude"),
	}
	for _, o := range others {
		if o.Name == s.Name && s.Name != "" {
			m.Field("name").Problem("another station is called %q too", s.Name)
		}
		if o.Role == s.Role && s.Role != "" {
			m.Field("role").Problem("station %s is the %s already", o.Name, s.Role)
		}
	}
	s.Moves = moves(m.Field("moves"))
	e := m.Field("elevation").Required()
	if !e.Present() || e.String("") == "unknown" {
		return s, !e.Present()
	}
	s.Elevation = e.SignedMetres(0)
	if s.Elevation < minElevation || s.Elevation > maxElevation {
		e.Problem("expected an elevation from %d m to %d m, found %q", minElevation, maxElevation, e.String(""))
		s.Elevation = 0
	}
	return s, true
}

func metres(f yamlschema.Fields, name string) float64 {
	v, k := f.Value(name)
	d := v.Metres(0)
	if d > k.Form.Hi {
		v.Problem("expected at most %.0f km, found %q", k.Form.Hi/1000, v.String(""))
		return 0
	}
	return d
}

func moves(v yamldoc.Value) *Moves {
	if !v.Present() {
		return nil
	}
	m := movesKeys.Read(v)
	o := &Moves{SpeedMetresPerSecond: speed(m.Field("speed").Required()), Return: m.Bool("return")}
	wv := m.Field("waypoints").Required()
	for _, w := range wv.List() {
		wm := waypointKeys.Read(w)
		o.Waypoints = append(o.Waypoints, Waypoint{Latitude: wm.Number("latitude"), Longitude: wm.Number("longitude")})
	}
	if wv.IsList() && (len(o.Waypoints) == 0 || len(o.Waypoints) > maxWaypoints) {
		wv.Problem("expected 1 to %d waypoints, found %d", maxWaypoints, len(o.Waypoints))
	}
	return o
}

// speed reads a speed such as "1.5 m/s" or "30 km/h".
func speed(v yamldoc.Value) float64 {
	s := strings.TrimSpace(v.String(""))
	if !v.Present() || v.IsList() || v.IsMapping() {
		return 1
	}
	for unit, scale := range map[string]float64{" m/s": 1, " km/h": 1 / 3.6} {
		if num, ok := strings.CutSuffix(s, unit); ok {
			if x, err := strconv.ParseFloat(num, 64); err == nil && x*scale >= 0.01 && x*scale <= 1000 {
				return x * scale
			}
		}
	}
	v.Problem(`expected a speed such as "1.5 m/s" or "30 km/h", from 0.01 m/s to 1000 m/s, found %q`, s)
	return 1
}

// positionTolerance is by how much a stated distance may differ from the one
// between the positions: enough for a tape over uneven ground, too little for
// a latitude and a longitude that are swapped.
const positionTolerance = 0.05

// link reads a link. Placed reports whether all stations were read without a
// problem; only then are the link's roles looked up among them.
func link(v yamldoc.Value, t *Topology, placed bool) Path {
	m := linkKeys.Read(v)
	p := Path{Source: source(m.Field("source"))}
	ends := m.Field("between").Required()
	var roles []Role
	for _, e := range ends.List() {
		role := Role(e.OneOf("", roleWord.Words...))
		if placed && role != "" && t.Station(role) == nil {
			e.Problem("no station has the role %s", role)
		}
		roles = append(roles, role)
	}
	if ends.IsList() && (len(roles) != 2 || roles[0] == roles[1] && roles[0] != "") {
		ends.Problem("expected two different roles")
	}
	if len(roles) != 2 {
		return p
	}
	p.A, p.B = roles[0], roles[1]
	for _, o := range t.Links {
		if p.A != "" && (o.A == p.A && o.B == p.B || o.A == p.B && o.B == p.A) {
			ends.Problem("the link between %s and %s is given twice", p.A, p.B)
		}
	}
	a, b := t.Station(p.A), t.Station(p.B)
	if a == nil || b == nil {
		return p
	}
	between := a.DistanceMetres(b)
	p.DistanceMetres = between
	if f := m.Field("distance"); f.Present() {
		p.DistanceMetres = metres(m, "distance")
		if placed && f.OK() && math.Abs(p.DistanceMetres-between) > positionTolerance*math.Max(p.DistanceMetres, 1) {
			f.Problem("%.1f m stated, but the positions are %.1f m apart", p.DistanceMetres, between)
		}
	}
	return p
}

// earthRadiusMetres is the mean radius R1 of WGS 84.
const earthRadiusMetres = 6_371_008.8

// DistanceMetres is the great-circle distance between two stations (haversine, sphere of radius R1), without elevation.
func (s *Station) DistanceMetres(o *Station) float64 {
	const rad = math.Pi / 180
	dLat, dLon := (o.Latitude-s.Latitude)*rad, (o.Longitude-s.Longitude)*rad
	h := sq(math.Sin(dLat/2)) + math.Cos(s.Latitude*rad)*math.Cos(o.Latitude*rad)*sq(math.Sin(dLon/2))
	return 2 * earthRadiusMetres * math.Asin(math.Sqrt(math.Min(1, h)))
}

func sq(x float64) float64 { return x * x }

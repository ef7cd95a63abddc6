package figure

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"linktrial/internal/radio"
	"linktrial/orchestrator/report/wording"
)

// Of drawings of places, in pixels. They look as the map of the pages does (PlanView.vue,
// ElevationProfile.vue).
const (
	placeWidth  = 660.0 // as wide as an upright page, so that letters keep their size on paper
	placePad    = 74.0
	placeHigh   = 420.0
	placeLow    = 210.0
	scaleHigh   = 18.0 // of the scale bar, below all names
	stationMark = 14.0
	nameRunes   = 28
)

// linkDash is the pattern of a line between two stations.
var linkDash = dash{"dashed", "7 5"}

// glyphs are the letters in the marks of stations.
var glyphs = map[radio.Role]string{radio.RoleClient: "C", radio.RoleRelay: "R", radio.RoleServer: "S"}

// Place draws the stations of a topology and the lengths of its links: where positions are known
// ([radio.Topology.Positioned]) as a plan, north up and to scale; else as a chain from the
// client to the server, which is not to scale. Without stations there is nothing to draw: nil.
func Place(t *radio.Topology) []byte {
	switch {
	case len(t.Stations) == 0:
		return nil
	case t.Positioned():
		return planOf(t)
	}
	return chainOf(t)
}

// placedStation is a station on a drawing.
type placedStation struct {
	*radio.Station
	at point
}

// plane is a drawing's view of the ground: metres east and north of a middle, over which a plane
// is as good as the sphere for a few kilometres.
type plane struct {
	latitude, longitude float64 // of the middle
	scale               float64 // pixels a metre
	height              float64
}

// earthRadius is R1 of WGS 84 in metres, as distances of topologies have it.
const earthRadius = 6_371_008.8

// ground is what a station may reach on a plan: its position and waypoints, as latitude and longitude.
func ground(s *radio.Station) (out [][2]float64) {
	out = append(out, [2]float64{s.Latitude, s.Longitude})
	if s.Moves != nil {
		for _, w := range s.Moves.Waypoints {
			out = append(out, [2]float64{w.Latitude, w.Longitude})
		}
	}
	return out
}

// eastward is the difference of two longitudes in degrees, the short way round.
func eastward(of, from float64) float64 { return math.Remainder(of-from, 360) }

func planeOf(t *radio.Topology) plane {
	first := &t.Stations[0]
	south, north, west, east := first.Latitude, first.Latitude, 0.0, 0.0
	for i := range t.Stations {
		for _, p := range ground(&t.Stations[i]) {
			off := eastward(p[1], first.Longitude)
			south, north, west, east = min(south, p[0]), max(north, p[0]), min(west, off), max(east, off)
		}
	}
	v := plane{latitude: (south + north) / 2, longitude: first.Longitude + (west+east)/2}
	const rad = math.Pi / 180
	wide := max(20, (east-west)*rad*earthRadius*math.Cos(v.latitude*rad))
	high := (north - south) * rad * earthRadius
	v.scale = min((placeWidth-2*placePad)/wide, (placeHigh-2*placePad)/max(1, high))
	v.height = max(placeLow, high*v.scale+2*placePad)
	return v
}

func (v *plane) at(latitude, longitude float64) point {
	const rad = math.Pi / 180
	return point{
		placeWidth/2 + eastward(longitude, v.longitude)*rad*earthRadius*math.Cos(v.latitude*rad)*v.scale,
		v.height/2 - (latitude-v.latitude)*rad*earthRadius*v.scale,
	}
}

// planOf draws a plan, north up, with a scale bar.
func planOf(t *radio.Topology) []byte {
	v := planeOf(t)
	c := &canvas{}
	c.begin(placeWidth, v.height+26+scaleHigh, "Plan of "+titleOfPlace(t))
	c.add(`<g transform="translate(0 26)">`)
	bar := roundLength(placeWidth / 5 / v.scale)
	c.grid(bar*v.scale, v.height+scaleHigh)
	var stations []placedStation
	for i := range t.Stations {
		s := &t.Stations[i]
		stations = append(stations, placedStation{s, v.at(s.Latitude, s.Longitude)})
		if s.Moves != nil {
			var way [][2]float64
			for _, p := range ground(s) {
				q := v.at(p[0], p[1])
				way = append(way, [2]float64{q.x, q.y})
			}
			c.path(way, grey, 1.4, dashes[2])
		}
	}
	c.links(t, stations, box{0, 0, placeWidth, v.height})
	for _, s := range stations {
		c.station(s)
	}
	c.add(`<path d="M16 %s v6 h%s v-6" stroke="%s" stroke-width="1.5" fill="none"/>`, px(v.height+4), px(bar*v.scale), ink)
	c.text(16+bar*v.scale/2, v.height, "middle", ink, 12, metres(bar))
	c.add(`<path d="M%s 44 v-26 l-6 10 m6 -10 l6 10" stroke="%s" stroke-width="1.5" fill="none"/>`, px(placeWidth-28), ink)
	c.text(placeWidth-28, 60, "middle", ink, 12, "N")
	c.add("</g></svg>")
	return []byte(c.b.String())
}

func titleOfPlace(t *radio.Topology) string {
	if t.Title == "" {
		return t.Name
	}
	return t.Title
}

// grid is lines of the ground, one a step, through the middle.
func (c *canvas) grid(step, height float64) {
	for x := math.Mod(placeWidth/2, step); x < placeWidth; x += step {
		c.line(x, 0, x, height, faint, 0.6)
	}
	for y := math.Mod(height/2, step); y < height; y += step {
		c.line(0, y, placeWidth, y, faint, 0.6)
	}
}

// links draws lines between stations with their lengths beside them.
func (c *canvas) links(t *radio.Topology, stations []placedStation, view box) {
	var legs []leg
	var taken []box
	for _, s := range stations {
		taken = append(taken, stationBoxes(s.at, wording.Clip(wording.Clean(s.Name), nameRunes))...)
	}
	for _, l := range t.Links {
		a := slices.IndexFunc(stations, func(s placedStation) bool { return s.Role == l.A })
		b := slices.IndexFunc(stations, func(s placedStation) bool { return s.Role == l.B })
		if a >= 0 && b >= 0 {
			legs = append(legs, leg{stations[a].at, stations[b].at, LengthText(l.DistanceMetres)})
		}
	}
	for i, at := range placeLengths(legs, taken, view) {
		l := legs[i]
		c.patternedLine(l.from.x, l.from.y, l.to.x, l.to.y, colours[0], 2.5, linkDash)
		c.halo(at.x, at.y+5, 13, true, l.text)
	}
}

// halo writes a text that can be read over lines, about a middle; bold or not.
func (c *canvas) halo(x, y float64, size int, bold bool, s string) {
	weight := ""
	if bold {
		weight = ` font-weight="600"`
	}
	c.add(`<text x="%s" y="%s" text-anchor="middle" font-size="%d"%s fill="%s" stroke="#ffffff" stroke-width="4" stroke-linejoin="round" paint-order="stroke">%s</text>`,
		px(x), px(y), size, weight, ink, escape(s))
}

// station draws a station's mark with its name and role.
func (c *canvas) station(s placedStation) {
	x, y := s.at.x, s.at.y
	c.add(`<circle cx="%s" cy="%s" r="%s" fill="%s" stroke="#ffffff" stroke-width="2"/>`, px(x), px(y), px(stationMark), colours[0])
	c.add(`<text x="%s" y="%s" text-anchor="middle" font-size="13" font-weight="700" fill="#ffffff">%s</text>`, px(x), px(y+5), glyphs[s.Role])
	c.halo(x, y+34, 13, true, wording.Clip(wording.Clean(s.Name), nameRunes))
	c.halo(x, y+49, 12, false, string(s.Role))
}

// chainOf draws the stations from the client to the server as a row, with the lengths of their
// links. A link that passes the relay by is an arc below.
func chainOf(t *radio.Topology) []byte {
	var way []*radio.Station
	for _, role := range radio.Roles {
		if s := t.Station(role); s != nil {
			way = append(way, s)
		}
	}
	height := 136.0
	stations := make([]placedStation, len(way))
	for i, s := range way {
		x := placeWidth / 2
		if n := len(way); n > 1 {
			x = placePad + 16 + (placeWidth-2*placePad-32)*float64(i)/float64(n-1)
		}
		stations[i] = placedStation{s, point{x, 60}}
	}
	direct := len(way) == 3 && t.Between(way[0].Role, way[2].Role) != nil
	if direct {
		height += 44
	}
	c := &canvas{}
	c.begin(placeWidth, height, "Nodes of "+titleOfPlace(t))
	for i := 1; i < len(stations); i++ {
		a, b := stations[i-1], stations[i]
		if l := t.Between(a.Role, b.Role); l != nil {
			c.patternedLine(a.at.x, a.at.y, b.at.x, b.at.y, colours[0], 2.5, linkDash)
			c.halo((a.at.x+b.at.x)/2, a.at.y-9, 13, true, LengthText(l.DistanceMetres))
		}
	}
	if direct {
		a, b := stations[0].at, stations[2].at
		c.add(`<path d="M%s %s Q%s %s %s %s" stroke="%s" stroke-width="2.5" fill="none"%s/>`, px(a.x), px(a.y), px((a.x+b.x)/2), px(a.y+150), px(b.x), px(b.y), colours[0], linkDash.attribute())
		c.halo((a.x+b.x)/2, a.y+94, 13, true, LengthText(t.Between(way[0].Role, way[2].Role).DistanceMetres))
	}
	for _, s := range stations {
		c.station(s)
	}
	c.text(placeWidth-12, height-10, "end", ink, 12, "not to scale")
	c.add("</svg>")
	return []byte(c.b.String())
}

// roundLength is a round length for a scale bar: 1, 2 or 5 times a power of ten, at most what fits.
func roundLength(most float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(most)))
	switch f := most / p; {
	case f >= 5:
		return 5 * p
	case f >= 2:
		return 2 * p
	}
	return p
}

// metres writes a length for people.
func metres(m float64) string {
	switch {
	case m >= 10_000:
		return fmt.Sprintf("%.1f km", m/1000)
	case m < 10 && m > 0:
		return fmt.Sprintf("%.1f m", m)
	}
	return fmt.Sprintf("%.0f m", m)
}

// LengthText is metres and, as breedy-2015 has them, feet.
func LengthText(m float64) string { return fmt.Sprintf("%s (%.0f ft)", metres(m), m/0.3048) }

// letterWidth and lineHigh are about what a character and a line of a plan's text take, in pixels.
const letterWidth, lineHigh = 8.0, 16.0

func textBox(at point, text string) box {
	w := letterWidth * float64(utf8.RuneCountInString(text))
	return box{at.x - w/2, at.y - lineHigh/2, w, lineHigh}
}

// stationBoxes is what a station covers: its mark, and its name and role below.
func stationBoxes(at point, name string) []box {
	below := textBox(at, name)
	below.y, below.height = at.y+21, 32
	return []box{{at.x - 15, at.y - 15, 30, 30}, below}
}

package telemetrysource

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"linktrial/internal/yamldoc"
)

// maxReport is the longest line of gpsd that is read; its protocol's own bound
// is 10240 (gpsd_json(5)).
const maxReport = 10240

// KindGPSD is the position, by gpsd's JSON protocol.
const KindGPSD Kind = "gpsd"

var gpsdKind = Definition{
	Kind: KindGPSD, Title: "gpsd", About: AboutPosition,
	Help:  "position, from gpsd",
	Keys:  []Key{{"target", "host or host:port of gpsd"}},
	Tells: "latitude, longitude, altitude and speed", Poll: PollAlways, Interval: nodeInterval, Host: "127.0.0.1", Port: 2947,
	Remedy:   "connect the receiver, see that gpsd runs ('cgps' shows a position) and that the antenna sees the sky; or run without a position",
	settings: func() Settings { return &GPSD{} },
}

// GPSD has no settings but where it answers.
type GPSD struct{}

func (*GPSD) parse(yamldoc.Mapping, *Source) {}

func (*GPSD) way(s *Source) string { return gpsdKind.at(s, gpsdKind.Title) }

// read waits for one position of gpsd: a client that watches gets a report
// with each fix, once a second with most receivers (gpsd_json(5)).
func (*GPSD) read(ctx context.Context, s *Source, host string, _ *Node) ([]Reading, error) {
	place := hostPort(host, s.Port)
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", place)
	if err != nil {
		return nil, describeError("gpsd", place, err)
	}
	defer func() { _ = c.Close() }() // it was only listened to
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(c, "?WATCH={\"enable\":true,\"json\":true};\n"); err != nil {
		return nil, describeError("gpsd", place, err)
	}
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 1024), maxReport)
	heard, devices := false, -1
	for lines.Scan() {
		r, err := parseReport(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("gpsd at %s: %w", place, err)
		}
		heard = true
		if r.Class == "DEVICES" {
			devices = len(r.Devices)
		}
		if devices == 0 {
			return nil, fmt.Errorf("gpsd at %s has no receiver", place)
		}
		if values := r.position(); values != nil {
			return values, nil
		}
	}
	switch {
	case ctx.Err() != nil && heard:
		return nil, fmt.Errorf("gpsd at %s has no position yet", place)
	case ctx.Err() != nil:
		return nil, describeError("gpsd", place, context.DeadlineExceeded)
	case lines.Err() != nil:
		return nil, describeError("gpsd", place, lines.Err())
	}
	return nil, fmt.Errorf("gpsd at %s has closed the connection", place)
}

// report is what matters of gpsd's reports: TPV and DEVICES.
type report struct {
	Class   string            `json:"class"`
	Mode    int               `json:"mode"` // 0 unknown, 1 no fix, 2 two dimensions, 3 three
	Lat     *float64          `json:"lat"`  // degrees
	Lon     *float64          `json:"lon"`
	AltMSL  *float64          `json:"altMSL"`  // metres above mean sea level
	Alt     *float64          `json:"alt"`     // the same, of gpsd before 3.20
	Speed   *float64          `json:"speed"`   // m/s over ground
	EPH     *float64          `json:"eph"`     // metres, estimated horizontal error
	Devices []json.RawMessage `json:"devices"` // of DEVICES
	Message string            `json:"message"` // of ERROR
}

func parseReport(line []byte) (*report, error) {
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("what came is no report: %w", err)
	}
	if r.Class == "" {
		return nil, errors.New("what came is no report: it has no class")
	}
	if r.Class == "ERROR" {
		return nil, errors.New(r.Message)
	}
	return &r, nil
}

// position is the readings of a fix, or nil.
func (r *report) position() []Reading {
	within := func(x *float64, bound float64) bool { return x != nil && math.Abs(*x) <= bound }
	if r.Class != "TPV" || r.Mode < 2 || !within(r.Lat, 90) || !within(r.Lon, 180) {
		return nil
	}
	out := []Reading{{Name: "latitude", Value: *r.Lat, Unit: "°"}, {Name: "longitude", Value: *r.Lon, Unit: "°"}}
	add := func(name, unit string, x *float64) {
		if x != nil {
			out = append(out, Reading{Name: name, Value: *x, Unit: unit})
		}
	}
	if r.Mode >= 3 {
		if r.AltMSL == nil {
			r.AltMSL = r.Alt
		}
		add("elevation", "m", r.AltMSL)
	}
	add("speed", "m/s", r.Speed)
	add("position_error", "m", r.EPH)
	return out
}

package day

import (
	"cmp"
	"fmt"
	"time"
)

// span is a day in a time zone, from midnight to midnight; where the clocks are set there
// on it, it has 23 or 25 hours.
type span struct {
	date, zone string
	from, to   time.Time
}

// spanOf reads a date such as 2026-11-30 and a zone of the IANA database. Of no date it is
// the day of now in the zone; no zone is UTC.
func spanOf(date, zone string, now time.Time) (span, error) {
	zone = cmp.Or(zone, "UTC")
	// Local would be the zone of whichever machine the orchestrator is on.
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return span{}, fmt.Errorf("zone: expected UTC or a name of the IANA time zone database such as Europe/Berlin, found %q", zone)
	}
	if date == "" {
		date = now.In(loc).Format(time.DateOnly)
	}
	t, err := time.Parse(time.DateOnly, date)
	if err != nil || t.Year() < 2000 || t.Year() > 9998 {
		return span{}, fmt.Errorf("date: expected one such as 2026-11-30, found %q", date)
	}
	s := span{date: date, zone: zone, from: startOf(t, loc), to: startOf(t.AddDate(0, 0, 1), loc)}
	if s.from.After(now) {
		return span{}, fmt.Errorf("date: %s begins after now, which is %s by the orchestrator's clock (%s)", date, now.In(loc).Format(time.DateTime), zone)
	}
	return s, nil
}

// startOf is the first moment of a date in a zone. Where the clocks skip midnight, Go gives
// a moment of the day before (time.Date): the day begins when they have skipped it.
func startOf(date time.Time, loc *time.Location) time.Time {
	y, m, d := date.Date()
	t := time.Date(y, m, d, 0, 0, 0, 0, loc)
	for t.Day() != d {
		t = t.Add(time.Minute)
	}
	return t
}

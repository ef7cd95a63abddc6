// Package recurrence reads rules by which a plan starts again and again, such as
// "daily 08:30 Europe/Berlin". Comes in: the text of a rule, and a moment. Goes
// out: the first start after it. Pure but for the zones' rules, which the system or
// the program itself has.
package recurrence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container or a bare laptop has no zones of its own
)

// Rule is a rule as it was read. Its starts are at a time of day on some days of
// the week in a zone, or at a fixed interval.
type Rule struct {
	days         [7]bool // by time.Weekday
	hour, minute int
	zone         *time.Location

	every time.Duration // 0: at a time of day
	from  time.Time     // the first start of an interval

	until time.Time // the last day with starts, in the zone, as midnight UTC; zero: no end
}

// Bounds of what a rule may have.
const (
	maxText  = 200 // bytes
	minEvery = 5 * time.Minute
	maxEvery = 366 * 24 * time.Hour
	minYear  = 2000 // of dates in rules, so that no difference of two overflows
	maxYear  = 2200
)

// Forms of a rule's parts.
const (
	dateForm   = time.DateOnly
	timeForm   = "15:04"
	momentForm = dateForm + " " + timeForm
)

// Forms is what rules look like, for errors and help.
const Forms = `"daily 08:30 Europe/Berlin", "weekdays 08:30 Europe/Berlin", "mon,thu 08:30 Europe/Berlin" or "every 6h", each with "until 2026-12-31" after it if you like`

var dayNames = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// dayOrder is that of a week as people write it.
var dayOrder = [7]time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday, time.Sunday}

var (
	daily    = [7]bool{true, true, true, true, true, true, true}
	weekdays = [7]bool{false, true, true, true, true, true, false}
)

// Is reports whether text is meant as a rule rather than as a single moment.
func Is(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if first == "every" {
		return true
	}
	_, err := parseDays(first)
	return err == nil
}

// Parse reads a rule. An interval without a first start counts from the minute of
// now, so that it starts one interval later for the first time.
func Parse(text string, now time.Time) (Rule, error) {
	if len(text) > maxText {
		return Rule{}, fmt.Errorf("rule of %d bytes, expected at most %d", len(text), maxText)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return Rule{}, fmt.Errorf("empty rule, expected one like %s", Forms)
	}
	r := Rule{zone: time.UTC}
	var err error
	if words[0] == "every" {
		words, err = r.parseEvery(words[1:], now)
	} else {
		words, err = r.parseTimeOfDay(words)
	}
	if err != nil {
		return Rule{}, err
	}
	if words, err = r.parseUntil(words); err != nil {
		return Rule{}, err
	}
	if len(words) > 0 {
		return Rule{}, fmt.Errorf("%q after the rule, expected nothing or \"until\" and a day such as 2026-12-31", strings.Join(words, " "))
	}
	return r, nil
}

// parseTimeOfDay reads DAYS HH:MM [ZONE] and returns the words after it.
func (r *Rule) parseTimeOfDay(words []string) (rest []string, err error) {
	if r.days, err = parseDays(words[0]); err != nil {
		return nil, err
	}
	if len(words) == 1 {
		return nil, fmt.Errorf("no time of day after %q, expected one such as 08:30", words[0])
	}
	t, err := time.Parse(timeForm, words[1])
	if err != nil {
		return nil, fmt.Errorf("time of day %q, expected hours and minutes such as 08:30", words[1])
	}
	r.hour, r.minute = t.Hour(), t.Minute()
	return r.parseZone(words[2:])
}

// parseEvery reads INTERVAL [from DATE HH:MM [ZONE]] and returns the words after it.
func (r *Rule) parseEvery(words []string, now time.Time) (rest []string, err error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("no interval after \"every\", expected one such as 6h, 90m or 2d")
	}
	if r.every, err = parseInterval(words[0]); err != nil {
		return nil, err
	}
	words = words[1:]
	if len(words) == 0 || words[0] != "from" {
		r.from = now.UTC().Truncate(time.Minute)
		return words, nil
	}
	if len(words) < 3 {
		return nil, fmt.Errorf("nothing after \"from\", expected a day and a time such as 2026-05-01 08:30")
	}
	at, err := time.Parse(momentForm, words[1]+" "+words[2])
	if err != nil || !knownYear(at) {
		return nil, fmt.Errorf("moment %q after \"from\", expected a day and a time such as 2026-05-01 08:30", words[1]+" "+words[2])
	}
	rest, err = r.parseZone(words[3:])
	r.from = firstMoment(at, r.zone)
	return rest, err
}

// parseZone reads the name of a zone where the next word is one; without it, times
// are in UTC, as everywhere.
func (r *Rule) parseZone(words []string) (rest []string, err error) {
	if len(words) == 0 || words[0] == "until" {
		return words, nil
	}
	name := words[0]
	// Local would be the zone of whichever machine reads the rule.
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("zone %q, expected UTC or a name of the IANA time zone database such as Europe/Berlin", name)
	}
	r.zone = zone
	return words[1:], nil
}

func (r *Rule) parseUntil(words []string) (rest []string, err error) {
	if len(words) == 0 || words[0] != "until" {
		return words, nil
	}
	if len(words) == 1 {
		return nil, fmt.Errorf("nothing after \"until\", expected the last day with a start, such as 2026-12-31")
	}
	day, err := time.Parse(dateForm, words[1])
	if err != nil || !knownYear(day) {
		return nil, fmt.Errorf("day %q after \"until\", expected one such as 2026-12-31", words[1])
	}
	r.until = day
	return words[2:], nil
}

func knownYear(t time.Time) bool { return t.Year() >= minYear && t.Year() <= maxYear }

func parseDays(word string) (days [7]bool, err error) {
	switch word {
	case "daily":
		return daily, nil
	case "weekdays":
		return weekdays, nil
	}
	for name := range strings.SplitSeq(word, ",") {
		day := slices.Index(dayNames[:], name)
		if day < 0 {
			return days, fmt.Errorf("%q, expected a rule like %s", word, Forms)
		}
		days[day] = true
	}
	return days, nil
}

// parseInterval reads a number of minutes, hours or days; a day has 24 hours.
func parseInterval(word string) (time.Duration, error) {
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	unit := units[word[len(word)-1]]
	n, err := strconv.ParseUint(word[:len(word)-1], 10, 20) // a million minutes are more than maxEvery
	every := time.Duration(n) * unit
	if err != nil || unit == 0 || every < minEvery || every > maxEvery {
		return 0, fmt.Errorf("interval %q, expected 5m to 366d, such as 6h, 90m or 2d", word)
	}
	return every, nil
}

// String writes the rule with everything that was left out of it. [Parse] reads it
// as the same rule at any time.
func (r Rule) String() string {
	var b strings.Builder
	if r.every > 0 {
		fmt.Fprintf(&b, "every %s from %s %s", interval(r.every), r.from.In(r.zone).Format(momentForm), r.zone)
	} else {
		fmt.Fprintf(&b, "%s %02d:%02d %s", r.dayWords(), r.hour, r.minute, r.zone)
	}
	if !r.until.IsZero() {
		b.WriteString(" until " + r.until.Format(dateForm))
	}
	return b.String()
}

func (r Rule) dayWords() string {
	switch r.days {
	case daily:
		return "daily"
	case weekdays:
		return "weekdays"
	}
	var names []string
	for _, d := range dayOrder {
		if r.days[d] {
			names = append(names, dayNames[d])
		}
	}
	return strings.Join(names, ",")
}

func interval(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// Zone is the zone whose times of day the rule has.
func (r Rule) Zone() *time.Location { return r.zone }

// Next returns the first start after a moment, in UTC; false where there is none.
func (r Rule) Next(after time.Time) (time.Time, bool) {
	if r.every > 0 {
		at := r.from
		if !at.After(after) {
			at = at.Add((after.Sub(at)/r.every + 1) * r.every)
		}
		return at.UTC(), !r.ended(dayOf(at.In(r.zone)))
	}
	// The day before as well: the first moment after a skipped hour can be on the
	// next day. A week and a day ahead, because a rule may have one day a week.
	today := dayOf(after.In(r.zone))
	for i := -1; i <= 8; i++ {
		day := today.AddDate(0, 0, i)
		if !r.days[day.Weekday()] {
			continue
		}
		if r.ended(day) {
			break
		}
		wall := day.Add(time.Duration(r.hour)*time.Hour + time.Duration(r.minute)*time.Minute)
		if at := firstMoment(wall, r.zone); at.After(after) {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// Starts returns the first n starts after a moment, or all where there are fewer.
func (r Rule) Starts(after time.Time, n int) []time.Time {
	var out []time.Time
	for len(out) < n {
		at, ok := r.Next(after)
		if !ok {
			break
		}
		out, after = append(out, at), at
	}
	return out
}

func (r Rule) ended(day time.Time) bool { return !r.until.IsZero() && day.After(r.until) }

// dayOf is the day that a clock shows, as midnight UTC.
func dayOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// firstMoment returns the first moment at which the clocks of a zone show wall
// (given as if it were UTC), or a later time because they are put forward over it.
// time.Date does not say which of the moments in question it returns.
func firstMoment(wall time.Time, zone *time.Location) time.Time {
	// The offsets from UTC that are in force on both sides of any change nearby.
	before, after := offset(wall.Add(-24*time.Hour), zone), offset(wall.Add(24*time.Hour), zone)
	early, late := wall.Add(-max(before, after)), wall.Add(-min(before, after))
	for _, at := range [...]time.Time{early, late} {
		if offset(at, zone) == wall.Sub(at) {
			return at
		}
	}
	// The clocks never show it. By the offset before the change, it is after it.
	start, _ := late.In(zone).ZoneBounds()
	return start
}

func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

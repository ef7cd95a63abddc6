// Package unit reads and writes quantities as people write them in plans and
// profiles: "256 KiB", "2 Mbit/s", "673.1 ft". Comes in: text. Goes out: numbers
// in SI base units. It writes moments for people, too, always in UTC.
//
// 1 KB is 1024 bytes and 1 MB is 1024 KB, as in the source papers; KiB and MiB
// are the same. kbit and Mbit are powers of ten, as radios are rated.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// KB is the kilobyte of every table of the product: 1024 bytes.
const KB = 1024

type scale struct {
	name   string
	factor float64
}

var (
	sizes     = []scale{{"B", 1}, {"KB", KB}, {"KiB", KB}, {"MB", KB * KB}, {"MiB", KB * KB}, {"GB", KB * KB * KB}, {"GiB", KB * KB * KB}}
	rates     = []scale{{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}}
	distances = []scale{{"m", 1}, {"km", 1e3}, {"ft", 0.3048}, {"mi", 1609.344}}
)

// Bytes reads a size such as "256 KiB", in bytes.
func Bytes(s string) (int64, error) {
	v, err := quantity(s, sizes)
	if err != nil {
		return 0, err
	}
	if v != math.Trunc(v) || v > 1<<53 {
		return 0, fmt.Errorf("%q is not a whole number of bytes", s)
	}
	return int64(v), nil
}

// BitsPerSecond reads a rate such as "2 Mbit/s".
func BitsPerSecond(s string) (float64, error) { return quantity(s, rates) }

// Metres reads a distance such as "673.1 ft".
func Metres(s string) (float64, error) { return quantity(s, distances) }

// SignedMetres reads a height such as "-430 m".
func SignedMetres(s string) (float64, error) {
	if rest, below := strings.CutPrefix(strings.TrimSpace(s), "-"); below && !strings.HasPrefix(rest, "-") {
		v, err := quantity(rest, distances)
		return 0 - v, err
	}
	return quantity(s, distances)
}

func quantity(s string, scales []scale) (float64, error) {
	t := strings.TrimSpace(s)
	i := len(t)
	for i > 0 {
		c := t[i-1]
		if c >= '0' && c <= '9' || c == '.' {
			break
		}
		i--
	}
	num, name := t[:i], strings.TrimSpace(t[i:])
	names := make([]string, len(scales))
	for j, u := range scales {
		names[j] = u.name
		if u.name != name {
			continue
		}
		v, err := strconv.ParseFloat(num, 64)
		if err != nil || v < 0 || math.IsNaN(v) {
			return 0, fmt.Errorf("%q, expected a number that is not negative before %s", s, name)
		}
		// The product can overflow where the number alone does not.
		if v *= u.factor; math.IsInf(v, 0) {
			return 0, fmt.Errorf("%q is too large", s)
		}
		return v + 0, nil // "-0 m" is 0
	}
	return 0, fmt.Errorf("%q, expected a number and one of %s", s, strings.Join(names, ", "))
}

// FormatBytes writes a size in the largest unit that keeps it whole: "256 KiB".
func FormatBytes(n int64) string {
	for _, u := range []scale{{"GiB", KB * KB * KB}, {"MiB", KB * KB}, {"KiB", KB}} {
		if f := int64(u.factor); n >= f && n%f == 0 {
			return fmt.Sprintf("%d %s", n/f, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// FormatRate writes a rate with at most four significant digits: "2 Mbit/s".
func FormatRate(bps float64) string {
	for _, u := range []scale{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}} {
		if bps >= u.factor {
			return strconv.FormatFloat(bps/u.factor, 'g', 4, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(bps, 'g', 4, 64) + " bit/s"
}

// FormatPayload is [FormatBytes] of what the transfers of a run carry; where that is
// nothing, they end after a time that the plan sets.
func FormatPayload(n int64) string {
	if n == 0 {
		return "for a set time"
	}
	return FormatBytes(n)
}

// Moment formats a moment to the second as people read it everywhere in the product:
// "2026-05-01 08:30:00 UTC". The nodes of a trial, its director and the readers of its
// report can be in different zones, so no text depends on where it was written.
func Moment(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }

// Clock formats the time of day of a moment that is known to be of these hours:
// "08:30:00 UTC".
func Clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " UTC") }

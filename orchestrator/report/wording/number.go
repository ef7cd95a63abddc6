package wording

import (
	"math"
	"strconv"
	"strings"

	"linktrial/internal/unit"
)

// None is written where there is no value.
const None = "–"

// significant is how many digits of a number can be relied on to be shown.
const significant = 3

// Number writes a number for people: with three significant digits at least, and with at
// least two decimals, one from 1000 and none from 10 000. Below a millionth it has an
// exponent. The pages' number (web/src/lib/number.ts) is the same; testdata/numbers.json
// holds both to it.
func Number(x *float64) string { return number(x, 2) }

// number is [Number] with another least number of decimals below 1000.
func number(x *float64, decimals int) string {
	switch {
	case x == nil || math.IsNaN(*x) || math.IsInf(*x, 0):
		return None
	case *x == 0:
		return strconv.FormatFloat(0, 'f', decimals, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(*x, 'e', significant-1, 64), "e")
	power, _ := strconv.Atoi(exponent) // as FormatFloat writes it
	if power < -6 {
		return mantissa + "e" + strconv.Itoa(power)
	}
	return strconv.FormatFloat(*x, 'f', max(significant-1-power, min(decimals, max(4-power, 0))), 64)
}

// Delay writes a time in milliseconds as [Number] does, with one decimal at least.
func Delay(ms *float64) string { return number(ms, 1) }

// Percent writes a share in percent with at least so many decimals, and three significant digits.
func Percent(share *float64, decimals int) string {
	if share == nil {
		return None
	}
	v := 100 * *share
	return number(&v, decimals) + " %"
}

// RateUnit is the unit of all throughputs of a table or a drawing, so that they can be
// compared at a glance. 1 KB is 1024 bytes.
type RateUnit struct {
	Name  string  // "B/s", "KB/s", "MB/s"
	perKB float64 // how many of them are 1 KB/s
}

// Rates' units. KB/s is that of breedy-2015, and of every file for programs.
var (
	bytesUnit     = RateUnit{"B/s", unit.KB}
	KilobytesUnit = RateUnit{"KB/s", 1}
	megabytesUnit = RateUnit{"MB/s", 1. / unit.KB}
)

// RateUnitFor is the unit for throughputs the largest of which is so many KB/s: KB/s,
// below 1 of them B/s, and from 10 MB/s on MB/s.
func RateUnitFor(largest float64) RateUnit {
	switch {
	case largest > 0 && largest < 1:
		return bytesUnit
	case largest >= 10*unit.KB:
		return megabytesUnit
	}
	return KilobytesUnit
}

// Meaning says in a few words how large the unit is.
func (u RateUnit) Meaning() string {
	switch u {
	case bytesUnit:
		return "B: bytes"
	case megabytesUnit:
		return "1 MB is 1024 KB of 1024 bytes"
	}
	return "1 KB is 1024 bytes"
}

// In is so many KB/s in the unit.
func (u RateUnit) In(kbps float64) float64 { return kbps * u.perKB }

// Write writes so many KB/s as a [Number] in the unit, without its name.
func (u RateUnit) Write(kbps *float64) string {
	if kbps == nil {
		return None
	}
	v := u.In(*kbps)
	return Number(&v)
}

// Rate writes a throughput that stands alone, in the unit that fits it: "7.45 B/s".
func Rate(kbps float64) string {
	u := RateUnitFor(kbps)
	return u.Write(&kbps) + " " + u.Name
}

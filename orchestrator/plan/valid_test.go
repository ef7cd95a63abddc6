package plan_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

func float(x float64) *float64 { return &x }

// Rules of validity are part of the sheets of their groups, with the units of the
// radios' readings.
func TestValid(t *testing.T) {
	text, err := os.ReadFile("testdata/valid.yaml")
	require.NoError(t, err)
	p, err := plan.Parse(nil, "valid.yaml", text, testCatalog(t))
	require.NoError(t, err)
	require.Equal(t, &runsheet.Valid{
		ClockStep:   100 * time.Millisecond,
		Interfering: &runsheet.Interfering{Share: 0.05},
		Readings: []runsheet.ReadingLimit{
			{Rule: runsheet.RuleTelemetry, Reading: "snr", Unit: "dB", Min: float(10)},
			{Rule: runsheet.RuleTelemetry, Reading: "in_errors", Unit: "packets/s", Max: float(3)},
			{Rule: runsheet.RuleTelemetry, Reading: "queue", Unit: "B", Min: float(0), Max: float(65536)},
			{Rule: runsheet.RuleBattery, Reading: "charge", Unit: "%", Min: float(15)},
			{Rule: runsheet.RuleTemperature, Reading: "temperature", Unit: "°C", Min: float(-10), Max: float(85)},
		},
		PositionMetres: 25,
		HostShare:      0.03,
	}, p.Valid)
	sheets, err := sheet.Compile(nil, p)
	require.NoError(t, err)
	require.Len(t, sheets, 3)
	require.Equal(t, p.Valid, sheets[0].Valid)
	require.Equal(t, &runsheet.Valid{Interfering: &runsheet.Interfering{Bytes: 64 << 10}, PositionMetres: 500}, sheets[2].Valid)
	encoded, err := sheets[0].Encode()
	require.NoError(t, err)
	back, err := runsheet.Decode(encoded)
	require.NoError(t, err)
	require.Equal(t, sheets[0].Valid, back.Valid)
}

// Each mistake in a rule is one problem, at its place.
func TestValidMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"{clock_step: 10}":                               "expected a duration such as",
		"{clock_step: 10 us}":                            "clock_step: expected 1ms to 1h0m0s, found 10µs",
		"{interfering: 5}":                               `expected a share of the attempt's bytes such as "5 %" or a size such as "64 KiB", found "5"`,
		"{interfering: 101 %}":                           `expected a number from 0 to 100 and %, found "101 %"`,
		"{host: 3}":                                      `expected a number from 0.1 to 100 and %, found "3"`,
		"{host: 101 %}":                                  `expected a number from 0.1 to 100 and %, found "101 %"`,
		"{interfering: 2 GiB}":                           "expected at most 1 GiB, found 2 GiB",
		"{telemetry: []}":                                "expected 1 to 64 readings, found 0",
		"{telemetry: [{reading: snrr, min: 1}]}":         `radio mpu4 has no reading "snrr" (did you mean "snr"?)`,
		"{telemetry: [{reading: snr}]}":                  "expected min, max or both",
		"{telemetry: [{reading: snr, min: 10 m}]}":       `reading snr of radio mpu4 is in dB, found "m"`,
		"{telemetry: [{reading: snr, min: 10, max: 9}]}": "expected at least min, 10, found 9",
		"{telemetry: [{reading: snr, min: 1}, {reading: snr, max: 9}]}": `reading "snr" is given twice`,
		"{telemetry: [{reading: charge, min: 1}]}":                      `radio mpu4 has no reading "charge"`,
		"{battery: {min: 15}}":                                          `expected a number from 0 to 100 and %, found "15"`,
		"{battery: {}}":                                                 "min is missing",
		"{temperature: {max: 90 K}}":                                    `expected a number from -100 to 200 and °C, found "90 K"`,
		"{temperature: {min: 90, max: 80}}":                             "expected at least min, 90, found 80",
		"{position: 0.1 m}":                                             "expected 1 m to 100 km, found 0.1 m",
		"{position: 25}":                                                "expected a distance such as",
		"{weather: dry}":                                                "weather",
		"dry":                                                           "expected a mapping",
	} {
		doc := fmt.Sprintf("name: x\nradio: mpu4\ntopology: vip-lot\nsize: 1 KiB\ntreatments: [{name: a, protocol: tcp}]\niterations: 1\nseed: 1\nvalid: %s\n", text)
		_, err := plan.Parse(nil, "x.yaml", []byte(doc), testCatalog(t))
		ps := problemsOf(t, err)
		if len(ps) != 1 || !strings.Contains(ps[0].Message, want) || ps[0].Line != 8 {
			t.Errorf("%s: %v, expected %q", text, ps, want)
		}
	}
}

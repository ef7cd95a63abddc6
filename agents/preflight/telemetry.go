package preflight

import (
	"fmt"
	"strconv"
	"strings"

	"linktrial/agents/telemetry"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
)

// KindTelemetry is the check of what a radio reports of itself.
const KindTelemetry = "telemetry"

// telemetryRemedies is what to do where a kind of source does not answer.
var telemetryRemedies = map[radio.TelemetryKind]string{
	radio.TelemetrySNMP: "switch SNMP on in the radio, and see that its address, version and community are those of the profile (attach, telemetry); or take the source out of the profile",
	radio.TelemetryHTTP: "see that the radio's page opens from this node at the address and path of the profile; or take the source out of the profile",
	radio.TelemetryGPSD: "connect the receiver, see that gpsd runs ('cgps' shows a position) and that the antenna sees the sky; or run without a position",
}

// judgeTelemetry judges what the sources reported just now.
func judgeTelemetry(states []telemetry.State) []*linktrialv1.Check {
	words := func() *linktrialv1.Check {
		return &linktrialv1.Check{Kind: KindTelemetry, Expected: "every source of the radio's profile answers",
			Meaning: "nothing of it is recorded beside the trials; they run all the same"}
	}
	if len(states) == 0 {
		c := words()
		c.State, c.Found = notChecked, "the radio's profile names nothing that could be read"
		return []*linktrialv1.Check{c}
	}
	var out []*linktrialv1.Check
	for _, s := range states {
		c := words()
		switch {
		case s.Error != "" && s.Kind == radio.TelemetryHost: // nothing is wrong with a node that has none
			c.State, c.Found = notChecked, s.Source+": "+s.Error
		case s.Error != "":
			c.State, c.Found, c.Remedy = warning, s.Source+": "+s.Error, telemetryRemedies[s.Kind]
		default:
			var values []string
			for _, v := range s.Values {
				values = append(values, strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Name, decimal(v.Value), v.Unit)))
			}
			c.State, c.Found = ok, s.Source+": "+strings.Join(values, ", ")
		}
		out = append(out, c)
	}
	return out
}

// decimal writes a value with up to four decimals, and without an exponent.
func decimal(v float64) string {
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 4, 64), "0"), ".")
}

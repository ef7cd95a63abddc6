package radio

import (
	"strconv"
	"time"

	"linktrial/internal/telemetrysource"
)

// Unnamed is what a node's radio is called that no lab emulates and nobody has named.
const Unnamed = "real, unnamed radio"

// EnterpriseOID is the root of the objects that an emulated radio answers by SNMP beside the
// standard MIB-II counters: below 32473, the enterprise number that RFC 5612
// reserves for examples and that no device has.
const EnterpriseOID = "1.3.6.1.4.1.32473.7"

// Columns below EnterpriseOID, by row of the radio's neighbours from 1, and the
// ports on which an emulated radio answers. The rows are in the order of the
// network's links.
const (
	ColumnPeer       = 1 // role of the radio at the other end, text
	ColumnSNR        = 2 // hundredths of a decibel
	ColumnQueueBytes = 3
	ColumnRate       = 4 // kbit/s
	ColumnLoss       = 5 // parts per million

	EmulatedSNMPPort  = 161 // as assigned for SNMP
	EmulatedHTTPPort  = 8077
	EmulatedHTTPPath  = "/telemetry.json"
	EmulatedCommunity = "public"
)

// MIB-II's columns of the one interface that an emulated radio has towards its
// node (RFC 2863, ifTable and ifXTable, index 1).
const (
	OIDSysDescr   = "1.3.6.1.2.1.1.1.0"
	OIDSysUpTime  = "1.3.6.1.2.1.1.3.0"
	OIDSysName    = "1.3.6.1.2.1.1.5.0"
	OIDIfNumber   = "1.3.6.1.2.1.2.1.0"
	OIDIfDescr    = "1.3.6.1.2.1.2.2.1.2.1"
	OIDIfMTU      = "1.3.6.1.2.1.2.2.1.4.1"
	OIDIfOper     = "1.3.6.1.2.1.2.2.1.8.1"
	OIDIfOutDrops = "1.3.6.1.2.1.2.2.1.19.1"
	OIDIfHCIn     = "1.3.6.1.2.1.31.1.1.1.6.1"
	OIDIfHCInPkts = "1.3.6.1.2.1.31.1.1.1.7.1"
	OIDIfHCOut    = "1.3.6.1.2.1.31.1.1.1.10.1"
	OIDIfHCOutPkt = "1.3.6.1.2.1.31.1.1.1.11.1"
)

// EnterpriseColumn is the OID of one value about the neighbour of a row.
func EnterpriseColumn(column, row int) string {
	return EnterpriseOID + "." + strconv.Itoa(column) + "." + strconv.Itoa(row)
}

// EmulatedTelemetry is the sources that every emulated radio has: counters by
// SNMP, read between trials as on a real radio, and the state of the channel by
// HTTP all the time, because the way there is no part of the radio network.
func EmulatedTelemetry() []telemetrysource.Source {
	const source = "the emulator, docs/radios.md"
	return []telemetrysource.Source{
		{Name: "radio-snmp", Kind: telemetrysource.KindSNMP, On: telemetrysource.OnEmulated, Origin: source, Poll: telemetrysource.PollBetweenTrials, IntervalNS: (5 * time.Second).Nanoseconds(),
			Host: telemetrysource.TargetRadio, Port: EmulatedSNMPPort, Settings: &telemetrysource.SNMP{Access: &telemetrysource.SNMPAccess{Version: "2c", Community: EmulatedCommunity}}, Values: []telemetrysource.Value{
				{Name: "in_bytes", Place: OIDIfHCIn, Unit: "B", Scale: 1, Counter: true},
				{Name: "out_bytes", Place: OIDIfHCOut, Unit: "B", Scale: 1, Counter: true},
				{Name: "dropped_packets", Place: OIDIfOutDrops, Unit: "packets", Scale: 1, Counter: true},
			}},
		{Name: "radio-http", Kind: telemetrysource.KindHTTP, On: telemetrysource.OnEmulated, Origin: source, Poll: telemetrysource.PollAlways, IntervalNS: time.Second.Nanoseconds(),
			Host: telemetrysource.TargetRadio, Port: EmulatedHTTPPort, Settings: &telemetrysource.HTTP{Path: EmulatedHTTPPath}, Values: []telemetrysource.Value{
				{Name: "snr", Place: "/snr_db", Unit: "dB", Scale: 1},
				{Name: "queue", Place: "/queue_bytes", Unit: "B", Scale: 1},
				{Name: "rate", Place: "/rate_bits_per_second", Unit: "kbit/s", Scale: 1e-3},
			}},
	}
}

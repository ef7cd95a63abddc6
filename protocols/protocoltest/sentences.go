package protocoltest

// untested are the sentences of docs/driver-contract.md that no check holds a
// driver to, with the reason.
var untested = map[string]string{
	"F6":  "which files a program reads cannot be seen from outside without tracing it",
	"N1":  "the suite runs as root, whom a folder without write permission does not stop",
	"N2":  "a driver that depends on more fails every check, because the suite gives it the same environment",
	"N3":  "a driver that depends on more fails the checks that need it, because the suite gives it no others",
	"P8":  "which value an option has shows only in the protocol's own behaviour",
	"P10": "the suite's namespaces have one way out, by the radio's interface",
	"P14": "which option asks for a log is the driver's own; its tests hold it (protocols/quic)",
	"P15": "a log of this size takes a transfer of minutes; tests of the driver hold it (protocols/quic)",
	"P16": "which option asks for a log is the driver's own; its tests hold it (protocols/quic)",
	"R14": "what a driver may change on a node is its own; tests of the driver hold it (protocols/tcp), and in runs in real time the agents, for [settings of the radio](../../docs/security-drivers.md#what-a-dishonest-driver-can-still-do)",
	"W5":  "both ends of a stream are the driver's, whose bytes the suite cannot make; tests of protocols/harness and protocols/cxx hold it",
	"D3":  "both ends of a stream are the driver's, whose bytes the suite cannot make; tests of protocols/harness and protocols/cxx hold it",
	"D4":  "both ends of a stream are the driver's, whose bytes the suite cannot make; tests of protocols/harness and protocols/cxx hold it",
	"D6":  "how much is unsent is known to the protocol alone",
	"D7":  "both ends of a stream are the driver's, whose bytes the suite cannot make; tests of protocols/harness and protocols/cxx hold it",
	"E4":  "a bound of Linktrial's, which no driver comes near",
	"S1":  "what a protocol knows of itself is known to it alone",
	"C10": "which bytes a protocol finds wrong is known to it alone",
	"C11": "both ends of a stream are the driver's, whose bytes the suite cannot make; tests of protocols/harness and protocols/cxx hold it",
	"C13": "a fault of the driver itself cannot be made from outside",
	"L7":  "a promise of Linktrial's, not of a driver; tests of the executor hold it",
}

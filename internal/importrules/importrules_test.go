package importrules

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "linktrial/"

// allowed says, for each room, which of the project's packages it may import:
// exact packages, or everything below a path that ends in a slash. The longest
// matching room counts. The table in docs/architecture.md is the same.
var allowed = map[string][]string{
	"api/": {"api/"},
	"cmd/": {""},
	// What all commands share knows none of them.
	"cmd/linktrial/setting/":   {"orchestrator/", "installation", "plans", "internal/"},
	"cmd/linktrial/client/":    {"api/gen/", "orchestrator/security/access", "orchestrator/security/authority", "internal/"},
	"cmd/linktrial/terminal/":  {"api/gen/", "orchestrator/report/wording", "internal/"},
	"tools/":                   {"internal/process", "internal/testkind"},
	"tools/bench/":             {""},
	"tools/laptop/":            {"bundle/laptop", "internal/"},
	"e2e/":                     {"orchestrator/report", "executor/journal", "internal/faultlog", "internal/testkind"},
	"e2e/whole/":               {""},
	"e2e/kernels/":             {"e2e/kernels/", "internal/"},
	"internal/":                {"internal/"},
	"migrations":               {},
	"web":                      {},
	"radio-profiles":           {},
	"topologies":               {},
	"plans":                    {},
	"playbooks":                {},
	"licences":                 {},
	"bundle":                   {"internal/"},
	"bundle/laptop/":           {"bundle", "internal/"},
	"installation":             {"internal/"},
	"images":                   {"internal/"},
	"protocols":                {},
	"protocols/contract/":      {"internal/"},
	"protocols/harness/":       {"protocols/contract", "internal/"},
	"protocols/cxx/":           {"protocols/cxx/", "protocols/contract", "protocols/protocoltest", "internal/"},
	"protocols/protocoltest/":  {"protocols/contract", "protocols/protocoltest/link", "protocols/protocoltest/starter", "protocols/harness", "internal/"},
	"protocols/templates/":     {"protocols", "protocols/contract", "protocols/harness", "protocols/protocoltest", "internal/"},
	"protocols/tcp/":           {"protocols/tcp/bpf", "protocols/tcp/mptcp", "protocols/contract", "protocols/harness", "protocols/tcp/socket", "protocols/protocoltest", "protocols/protocoltest/link", "internal/"},
	"protocols/tcp/bpf/":       {"protocols/protocoltest/link", "internal/"},
	"protocols/tcp/mptcp/":     {"internal/"},
	"protocols/tcp/socket/":    {"protocols/contract", "protocols/harness", "protocols/tcp/bpf", "internal/"},
	"protocols/quic/":          {"protocols/contract", "protocols/harness", "protocols/protocoltest", "internal/"},
	"protocols/probe/":         {"protocols/contract", "protocols/harness", "protocols/probe/", "protocols/protocoltest", "internal/"},
	"protocols/probe/pattern/": {"protocols/contract", "internal/"},
	"protocols/probe/wire/":    {"protocols/contract", "internal/"},
	"protocols/probe/measure/": {"protocols/contract", "protocols/probe/wire", "internal/"},
	"protocols/probe/search/":  {"protocols/contract", "protocols/probe/wire", "internal/"},
	"protocols/split/":         {"protocols/protocoltest/link", "protocols/contract", "protocols/harness", "protocols/tcp/socket", "protocols/haul", "protocols/haul/option", "protocols/protocoltest", "internal/"},
	"protocols/udt/":           {"protocols/contract", "protocols/cxx/", "internal/"},
	"protocols/scps/":          {"protocols/contract", "protocols/harness", "protocols/tcp/socket", "protocols/protocoltest", "internal/"},
	"protocols/sctp/":          {"protocols/contract", "protocols/cxx/", "internal/"},
	"protocols/haul/":          {"protocols/datagram", "protocols/datagram/edge", "protocols/datagram/edge/edgetest", "protocols/haul/", "internal/"},
	"protocols/haul/cmd/":      {"protocols/contract", "protocols/harness", "protocols/haul", "protocols/haul/option", "protocols/protocoltest", "internal/"},
	"protocols/haul/option/":   {"protocols/contract", "protocols/harness", "protocols/haul", "internal/"},
	"protocols/haul/core/":     {"protocols/haul/code", "protocols/haul/secure", "protocols/haul/wire", "internal/"},
	"protocols/haul/wire/":     {"internal/"},
	"protocols/haul/secure/":   {"internal/"},
	"protocols/haul/code/":     {"internal/"},
	"protocols/lttcp/":         {"protocols/datagram", "protocols/datagram/edge", "protocols/datagram/edge/edgetest", "protocols/lttcp/", "internal/"},
	"protocols/lttcp/cmd/":     {"protocols/contract", "protocols/harness", "protocols/lttcp", "protocols/protocoltest", "internal/"},
	"protocols/lttcp/core/":    {"protocols/lttcp/wire", "internal/"},
	"protocols/lttcp/wire/":    {"internal/"},
	"protocols/datagram/":      {"internal/"},
	"protocols/datagram/edge/": {"protocols/datagram", "internal/"},
	"emulator/channel/":        {"internal/"},
	"emulator/link/":           {"emulator/channel", "internal/"},
	"emulator/ideal/":          {"emulator/channel", "emulator/link", "internal/"},
	"emulator/pcapng/":         {"internal/"},
	"emulator/telemetry/":      {"internal/"},
	"emulator/tun/":            {"emulator/", "internal/"},
	"emulator/bench/":          {"emulator/tun", "internal/"},
	"executor/":                {"executor/", "protocols/contract", "internal/"},
	"executor/runsheet/":       {"protocols/contract", "internal/"},
	"executor/journal/":        {"executor/runsheet", "protocols/contract", "internal/"},
	"executor/replay/":         {"executor/journal", "internal/"},
	"executor/stoprule/":       {"executor/journal", "executor/replay", "executor/runsheet", "internal/"},
	"executor/driver/":         {"executor/journal", "protocols/contract", "internal/"},
	"executor/credible/":       {"executor/journal", "protocols/contract", "internal/"},
	"agents/":                  {"executor/", "protocols/contract", "internal/"}, // testdata
	"agents/agent/":            {"agents/", "executor/", "protocols/contract", "api/gen/", "internal/"},
	"agents/session/":          {"agents/identity", "agents/silence", "executor/journal", "api/gen/", "internal/"},
	"agents/silence/":          {"executor/", "protocols/contract", "internal/"},
	"agents/runner/":           {"agents/radioonly", "agents/runner", "executor/", "protocols/contract", "internal/"},
	"agents/radioonly/":        {"executor/runsheet", "protocols/contract"},
	"agents/trust/":            {"executor/", "protocols/contract", "internal/"},
	"agents/identity/":         {"api/gen/", "internal/"},
	"agents/preflight/":        {"agents/netif", "agents/provenance", "agents/runner", "agents/telemetry", "executor/journal", "api/gen/", "internal/"},
	"agents/provenance/":       {"executor/journal", "internal/"},
	"agents/disturbance/":      {"agents/netif", "agents/packettimes", "executor/journal", "executor/runsheet", "internal/"},
	"agents/packettimes/":      {"executor", "executor/runsheet", "internal/"},
	"agents/netif/":            {"agents/netif/settings", "agents/radioonly", "executor/", "internal/"},
	"agents/netif/settings/":   {},
	"agents/radioset/":         {"agents/netif", "api/gen/", "internal/"},
	"agents/host/":             {"executor/journal", "internal/"},
	"agents/telemetry/":        {"executor/journal", "internal/"},
	"agents/radiolink/":        {"executor", "internal/"},
	"agents/path/":             {"executor", "executor/runsheet", "internal/"},
	// One row for each package of the orchestrator; those below a package go with it.
	"orchestrator/plan/":               {"orchestrator/plan/", "executor/runsheet", "protocols/contract", "protocols/probe/pattern", "internal/"},
	"orchestrator/sheet/":              {"orchestrator/plan", "executor/credible", "executor/runsheet", "protocols/contract", "internal/"},
	"internal/stats/":                  {"internal/"},
	"orchestrator/downsample/":         {"internal/"},
	"orchestrator/catalog/":            {"orchestrator/plan", "protocols/contract", "internal/", "radio-profiles", "topologies"},
	"orchestrator/postgres/":           {"internal/"},
	"orchestrator/store/":              {"orchestrator/store/", "orchestrator/report", "orchestrator/postgres", "executor/", "protocols/contract", "internal/", "migrations"},
	"orchestrator/ingest/":             {"orchestrator/store/", "executor/journal", "executor/runsheet", "protocols/contract", "internal/"},
	"orchestrator/judge/":              {"orchestrator/report", "executor/credible", "executor/journal", "executor/runsheet", "protocols/contract", "internal/"},
	"orchestrator/campaign/":           {"orchestrator/campaign/", "orchestrator/judge", "orchestrator/ingest", "orchestrator/store/", "orchestrator/telemetry", "orchestrator/report", "executor/", "protocols/contract", "internal/"},
	"orchestrator/campaign/nodes/":     {"orchestrator/store/", "internal/"},
	"orchestrator/campaign/live/":      {"orchestrator/ingest", "internal/"},
	"agents/preflight/transfer/":       {"executor/", "api/gen/", "internal/"},
	"orchestrator/fleet/":              {"orchestrator/campaign/", "orchestrator/store/", "executor/runsheet", "protocols/contract", "api/gen/", "internal/"},
	"orchestrator/launch/":             {"orchestrator/campaign/", "orchestrator/fleet", "orchestrator/plan", "orchestrator/sheet", "orchestrator/security/signing", "executor/runsheet", "internal/"},
	"orchestrator/evidence/":           {"executor/journal", "executor/runsheet", "internal/"},
	"orchestrator/notification/":       {"orchestrator/campaign/", "orchestrator/fleet", "orchestrator/library", "orchestrator/security/sealing", "orchestrator/store/", "internal/"},
	"orchestrator/measure/":            {"orchestrator/report", "internal/"},
	"orchestrator/library/":            {"orchestrator/library/", "orchestrator/launch", "orchestrator/plan", "orchestrator/sheet", "orchestrator/store/", "internal/"},
	"orchestrator/security/":           {},
	"orchestrator/security/signing/":   {"orchestrator/campaign/", "orchestrator/catalog", "orchestrator/store/", "executor/runsheet", "internal/"},
	"orchestrator/security/authority/": {"orchestrator/security/admission", "orchestrator/store/", "internal/"},
	"orchestrator/security/joining/":   {"orchestrator/security/admission", "orchestrator/security/authority", "internal/"},
	"orchestrator/security/access/":    {"orchestrator/security/admission", "orchestrator/security/auditlog", "orchestrator/security/provider", "orchestrator/security/sealing", "orchestrator/store/", "internal/"},
	"orchestrator/security/provider/":  {"internal/"},
	"orchestrator/security/sealing/":   {"internal/"},
	"orchestrator/security/auditlog/":  {"orchestrator/security/admission", "orchestrator/store/", "internal/"},
	"orchestrator/security/admission/": {"internal/"},
	"orchestrator/telemetry/":          {"orchestrator/downsample", "orchestrator/report", "orchestrator/store/", "api/gen/", "internal/"},
	"orchestrator/report/":             {"orchestrator/report/", "orchestrator/plan", "executor/", "protocols/contract", "protocols/probe/pattern", "internal/"},
	// An audit does not use the code whose work it checks.
	"orchestrator/report/audit/": {"executor/journal", "executor/runsheet", "protocols/contract", "internal/"},
	"orchestrator/backup/":       {"orchestrator/postgres", "internal/", "migrations"},
	"orchestrator/liveness/":     {"internal/"},
	"orchestrator/rpc/":          {"orchestrator/", "executor/", "protocols/contract", "api/gen/", "internal/"},
	"orchestrator/server/":       {"orchestrator/", "api/gen/", "internal/", "web"},
	"lab/netns/":                 {"emulator/tun", "internal/"},
	"lab/uml/":                   {"lab/uml/", "lab/netns", "lab/faults", "emulator/tun", "internal/"},
	"lab/faults/":                {"lab/netns", "lab/field", "internal/"},
	"lab/field/":                 {"lab/netns", "internal/"},
	"lab/join/":                  {"emulator/tun", "internal/"},
	// The suite's link knows neither drivers nor checks.
	"protocols/protocoltest/link/": {"internal/"},
}

// pure packages take time as a value and touch nothing of the world. An address
// (net/netip) is a value, too.
var pure = []string{"emulator/channel", "emulator/link", "emulator/ideal", "orchestrator/plan", "orchestrator/sheet", "internal/stats", "orchestrator/downsample", "orchestrator/judge", "orchestrator/measure", "orchestrator/report/audit", "executor/runsheet", "protocols/haul/wire", "protocols/haul/core", "protocols/haul/secure", "protocols/haul/code", "protocols/lttcp/wire", "protocols/lttcp/core", "protocols/probe/pattern", "protocols/probe/wire", "protocols/probe/measure", "protocols/probe/search"}

var worldly = []string{"net", "os", "syscall", "context", "log", "log/slog"}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "linktrial/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

func TestImportDirections(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		room := ""
		for r := range allowed {
			if within(from, r) && len(r) > len(room) {
				room = r
			}
		}
		if room == "" {
			t.Errorf("package %s lies in no room of the table", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours || queriesOf(to) != "" {
				continue
			}
			if !slices.ContainsFunc(allowed[room], func(a string) bool { return within(to, a) }) {
				t.Errorf("%s imports %s; room %s may import %v", from, to, room, allowed[room])
			}
		}
	}
}

// TestQueriesOfRooms holds that the code of a room's queries is imported by the room
// alone, by what is below it, by its tests, and by the benches, which fill a store as tests do.
func TestQueriesOfRooms(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if queriesOf(from) != "" {
			found++
		}
		for _, imp := range p.Imports {
			room := queriesOf(strings.TrimPrefix(imp, module))
			if room != "" && !within(from, room+"/") && from != "tools/bench" {
				t.Errorf("%s imports %s; only %s does", from, imp, room)
			}
		}
	}
	if found < 5 {
		t.Errorf("found the queries of %d rooms", found)
	}
}

// queriesOf returns the room whose queries sqlc generates a package from: of
// orchestrator/security/access/accessdb it is orchestrator/security/access.
func queriesOf(pkg string) string {
	room, name := path.Split(pkg)
	room = strings.TrimSuffix(room, "/")
	if strings.HasPrefix(pkg, "orchestrator/") && name == path.Base(room)+"db" {
		return room
	}
	return ""
}

func within(pkg, room string) bool {
	return room == "" || pkg == strings.TrimSuffix(room, "/") || strings.HasSuffix(room, "/") && strings.HasPrefix(pkg, room)
}

func TestPurePackages(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(pure, from) {
			continue
		}
		found++
		for _, imp := range p.Imports {
			if slices.Contains(worldly, imp) || strings.HasPrefix(imp, "net/") && imp != "net/netip" || strings.HasPrefix(imp, "golang.org/x/sys/") {
				t.Errorf("pure package %s imports %s", from, imp)
			}
		}
	}
	if found != len(pure) {
		t.Errorf("found %d of the %d pure packages", found, len(pure))
	}
}

package request

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"connectrpc.com/connect"

	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/security/admission"
)

// usualLimit is how many bytes a request may have, decompressed, that carries names,
// choices and sentences of people: as much as is read before it is known who calls. It
// holds for a procedure that is not in limits, too; a test fails for such a one.
const usualLimit = admission.UnknownBytes

const (
	planLimit   = 1 << 20             // the largest plan that comes with the program has 15 KiB
	importLimit = 64<<20 + usualLimit // report.MaxImport, and the names beside it
	reportLimit = 256 << 10           // what an agent reports of its node, a text of maxReport for each driver or check
	wordsLimit  = 1 << 20             // a summary and a remark on each chapter, in any script
)

// limits has every procedure of the API, with the bytes that its requests may have.
var limits = map[string]map[string]int{
	"AccessService": usual("WhoAmI", "Login", "Logout", "ChangePassword", "GetSecondFactor", "BeginSecondFactor", "ConfirmSecondFactor", "RenewRecoveryCodes", "RemoveSecondFactor", "CreateToken", "ListTokens", "RevokeToken", "ListUsers", "AddUser", "SetUserRole", "SetUserPassword", "SetUserDisabled", "RemoveUserSecondFactor", "ListAudit", "ExportAudit"),
	"AgentService": with(usual("Clock"), map[string]int{
		// Agents deliver in batches of a mebibyte; a single record may be longer.
		"Deliver":         ingest.MaxRecordBytes + 1<<20,
		"Register":        reportLimit,
		"Poll":            reportLimit,
		"ReportPreflight": reportLimit,
	}),
	"CatalogService": with(usual("GetSource", "GetLanguage", "DeleteTopology", "DeleteProfile", "ListProtocols", "CheckProtocol"), map[string]int{
		"SaveTopology": planLimit,
		"SaveProfile":  planLimit,
	}),
	"ControlService":   usual("PauseRun", "ResumeRun", "AbortRun", "SkipTrial", "RepeatTrial", "ExcludeAttempt", "IncludeAttempt", "ContinueRun", "ListCommands"),
	"DayService":       usual("CloseDay", "CloseDayWithBackup"),
	"EnrolmentService": usual("Enrol", "Renew"),
	"EvidenceService":  usual("Pack"),
	"FleetService":     usual("StartPreflight", "GetPreflight", "Links", "ProposeRadio", "SetRadio", "RemoveRadio"),
	"MeasureService":   usual("PreviewMeasurement", "StartMeasurement", "GetMeasurement", "ListMeasurements", "GetSeries", "ProposeComparison"),
	"JoinService":      usual("OpenJoining", "GetJoining", "CloseJoining", "BeginJoin", "FinishJoin"),
	"LabService":       usual("LabStatus", "LabUp", "LabDown", "SetControlLink"),
	"LibraryService": with(usual("ListPlans", "GetPlan", "DeletePlan", "Schedule", "ListSchedules", "CancelSchedule", "PreviewRecurrence", "ScheduleRecurrence", "ChangeRecurrence"), map[string]int{
		"SavePlan": planLimit,
	}),
	"NodeService":         usual("CreateNodeToken", "ListNodeIdentities", "RevokeNode", "GetAuthority"),
	"NotificationService": usual("ListNotifications", "WatchNotifications", "ListChannels", "SaveChannel", "RemoveChannel", "TestChannel"),
	"OperatorService": with(usual("AbortCampaign", "ListRuns", "GetRun", "Watch", "Results", "ListNodes", "ListProfiles"), map[string]int{
		"CheckPlan":    planLimit,
		"ExplainPlan":  planLimit,
		"ExplainPower": planLimit,
		"StartPlan":    planLimit,
	}),
	"ReportService": with(usual("GetWords"), map[string]int{
		"SetWords": wordsLimit,
	}),
	"ResultService": with(usual("ListFormats", "ListCampaigns", "Summarize", "Sweep", "Series", "GetAttempt", "ListRecords", "ListImports", "RemoveImport"), map[string]int{
		"ImportCampaign": importLimit,
	}),
	"TrustService": usual("ListSigningKeys", "RotateSigningKey", "GetSignedSheet", "ListApprovals", "ApproveDriver", "UnapproveDriver"),
}

func usual(methods ...string) map[string]int {
	out := map[string]int{}
	for _, m := range methods {
		out[m] = usualLimit
	}
	return out
}

func with(limits, more map[string]int) map[string]int {
	maps.Copy(limits, more)
	return limits
}

// Limit returns how many bytes a request of a procedure may have, decompressed.
func Limit(procedure string) int {
	service, method, _ := strings.Cut(strings.TrimPrefix(procedure, "/"+apiPackage), "/")
	if n, ok := limits[service][method]; ok {
		return n
	}
	return usualLimit
}

// limited gives every procedure of a service its limit.
func limited() connect.HandlerOption {
	return connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
		limit := Limit(spec.Procedure)
		return []connect.HandlerOption{connect.WithReadMaxBytes(limit), connect.WithCompression("gzip",
			func() connect.Decompressor { return &decompressor{most: int64(limit) + 1} },
			func() connect.Compressor { return gzip.NewWriter(io.Discard) })}
	})
}

// decompressor ends one byte after the limit. Connect would decompress all the rest,
// to say how long it is: a second of the processor for a request of 64 KiB.
type decompressor struct {
	gzip.Reader
	most, left int64
	failed     error // the header of what is compressed
}

// Reset implements connect.Decompressor. It leaves errors to Read: connect's text of them
// here is about its own decompressors.
func (d *decompressor) Reset(r io.Reader) error {
	d.left = d.most
	d.failed = notCompressed(d.Reader.Reset(r))
	return nil
}

// Close implements connect.Decompressor.
func (d *decompressor) Close() error {
	if d.failed != nil {
		return nil // nothing was begun
	}
	return d.Reader.Close()
}

// notCompressed says of an error of gzip what was expected.
func notCompressed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the request ends too soon, expected all that is compressed with gzip, as it says")
	}
	return fmt.Errorf("the request says that it is compressed with gzip, and is not: %s", strings.TrimPrefix(err.Error(), "gzip: "))
}

// Read implements io.Reader.
func (d *decompressor) Read(p []byte) (int, error) {
	if d.failed != nil {
		return 0, d.failed
	}
	if d.left <= 0 {
		return 0, io.EOF
	}
	n, err := d.Reader.Read(p[:min(int64(len(p)), d.left)])
	d.left -= int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader returns it as it is
		err = notCompressed(err)
	}
	return n, err
}

package access

import "strings"

// rule says who may call a procedure.
type rule struct {
	who audience
	// least is the role that it takes, where people call it.
	least Role
	// logged has every call told to the audit log; refusals for want of a role
	// are told of every procedure.
	logged bool
	// enrols is what somebody may call whose role takes a second factor and who has none.
	enrols bool
}

// changes reports whether a call of people or of a node changes something.
func (r rule) changes() bool { return r.who == nodes || r.who == people && r.logged }

type audience int

const (
	people   audience = iota
	everyone          // also who is not logged in
	nodes             // agents; their certificates guard it
)

var (
	see    = rule{least: Viewer}
	own    = rule{least: Viewer, logged: true}
	direct = rule{least: Director, logged: true}
	manage = rule{least: Admin, logged: true}
	enrol  = rule{least: Viewer, logged: true, enrols: true}
	node   = rule{who: nodes}
	public = rule{who: everyone}
)

// procedures is every procedure of the API. One that is not here takes an
// admin, and a test fails.
var procedures = map[string]map[string]rule{
	"AccessService": {
		"WhoAmI": public, "Login": {who: everyone, logged: true},
		"Logout": enrol, "ChangePassword": own, "GetSecondFactor": {least: Viewer, enrols: true}, "BeginSecondFactor": enrol, "ConfirmSecondFactor": enrol,
		"RenewRecoveryCodes": own, "RemoveSecondFactor": own,
		"CreateToken": own, "ListTokens": see, "RevokeToken": own,
		"ListUsers": {least: Admin}, "AddUser": manage, "SetUserRole": manage, "SetUserPassword": manage, "SetUserDisabled": manage, "RemoveUserSecondFactor": manage,
		"ListAudit": {least: Admin}, "ExportAudit": {least: Admin},
	},
	"AgentService": {"Register": node, "Poll": node, "Deliver": node, "Clock": node, "ReportPreflight": node},
	"CatalogService": {
		"GetSource": see, "GetLanguage": see, "ListProtocols": see,
		"SaveTopology": direct, "DeleteTopology": direct, "SaveProfile": direct, "DeleteProfile": direct, "CheckProtocol": direct,
	},
	"ControlService": {
		"ListCommands": see,
		"PauseRun":     direct, "ResumeRun": direct, "AbortRun": direct, "SkipTrial": direct, "RepeatTrial": direct, "ExcludeAttempt": direct, "IncludeAttempt": direct, "ContinueRun": direct,
	},
	// A backup has the orchestrator's keys.
	"DayService":       {"CloseDay": direct, "CloseDayWithBackup": manage},
	"EvidenceService":  {"Pack": own}, // who may export results; it has nothing that pages do not show
	"EnrolmentService": {"Enrol": node, "Renew": node},
	"FleetService":     {"GetPreflight": see, "Links": see, "ProposeRadio": see, "StartPreflight": direct, "SetRadio": direct, "RemoveRadio": direct},
	// Who joins has no login yet; the code is what it shows.
	"JoinService": {"OpenJoining": manage, "GetJoining": {least: Admin}, "CloseJoining": manage, "BeginJoin": public, "FinishJoin": {who: everyone, logged: true}},
	"LabService":  {"LabStatus": see, "LabUp": direct, "LabDown": direct, "SetControlLink": direct},
	"LibraryService": {
		"ListPlans": see, "GetPlan": see, "ListSchedules": see, "PreviewRecurrence": see,
		"SavePlan": direct, "DeletePlan": direct, "Schedule": direct, "CancelSchedule": direct,
		"ScheduleRecurrence": direct, "ChangeRecurrence": direct,
	},
	// What certificates are held against is nobody's secret, and who logs in
	// over TLS for the first time needs it.
	"NodeService":    {"GetAuthority": public, "ListNodeIdentities": see, "CreateNodeToken": manage, "RevokeNode": manage},
	"MeasureService": {"PreviewMeasurement": see, "GetMeasurement": see, "ListMeasurements": see, "GetSeries": see, "ProposeComparison": see, "StartMeasurement": direct},
	// Where channels send to, and by which user, is for admins: a URL can be a secret.
	"NotificationService": {"ListNotifications": see, "WatchNotifications": see, "ListChannels": {least: Admin}, "SaveChannel": manage, "RemoveChannel": manage, "TestChannel": manage},
	"OperatorService": {
		"CheckPlan": see, "ExplainPlan": see, "ExplainPower": see, "ListRuns": see, "GetRun": see, "Watch": see, "Results": see, "ListNodes": see, "ListProfiles": see,
		"StartPlan": direct, "AbortCampaign": direct,
	},
	"ReportService": {"GetWords": see, "SetWords": direct},
	"ResultService": {"ListCampaigns": see, "Summarize": see, "Sweep": see, "Series": see, "GetAttempt": see, "ListRecords": see, "ListFormats": see, "ListImports": see,
		"ImportCampaign": direct, "RemoveImport": direct},
	"TrustService": {
		"ListSigningKeys": see, "GetSignedSheet": see, "ListApprovals": see,
		"RotateSigningKey": manage, "ApproveDriver": manage, "UnapproveDriver": manage,
	},
}

const apiPrefix = "/linktrial.v1."

// procedure splits the path of a call, as "Service.Method"; ok says that it is
// one of the API's.
func procedure(path string) (service, method string, ok bool) {
	rest, ok := strings.CutPrefix(path, apiPrefix)
	if !ok {
		return "", "", false
	}
	service, method, ok = strings.Cut(rest, "/")
	return service, method, ok && service != "" && method != ""
}

// ruleOf is the rule of a procedure, the strictest for one that nobody knows.
func ruleOf(service, method string) rule {
	if r, ok := procedures[service][method]; ok {
		return r
	}
	return manage
}

package notification

// Kind is an event that people can be told of.
type Kind struct {
	Key   string // run-ended
	Title string
	About string // when it is told, a sentence
}

// The kinds, as channels choose them.
var (
	runEnded      = Kind{"run-ended", "A run has ended", "When a run has completed. Runs in virtual time are told with their campaign alone."}
	runFailed     = Kind{"run-failed", "A run was stopped or aborted", "When a fault of a node has stopped a run, or somebody has aborted one that had begun, with the reason."}
	campaignEnded = Kind{"campaign-ended", "A campaign has ended", "When the last run of a campaign has ended, with how its runs ended."}
	waits         = Kind{"waits-for-people", "Nodes have to be moved", "When a place is done and the next run waits until somebody has moved the nodes and lets it continue."}
	runPaused     = Kind{"run-paused", "The leading node has paused a run", "When the leading node pauses a run for a reason of its own. A pause that somebody asked for is not told."}
	noContact     = Kind{"no-contact", "No contact with a node", "When a node of a run that is under way has not been in contact for 6 s, and when it is back."}
	radioSilent   = Kind{"radio-silent", "A radio or a node has a fault", "When a node of a run that is under way reports a fault, or a telemetry source of its radio has not answered for 30 s; once in a run for each."}
	batteryLow    = Kind{"battery-low", "A battery is low", "When the battery of a node of a run that is under way is below 20 % and discharging; once in a run."}
	startFailed   = Kind{"start-failed", "A scheduled start has failed", "When a scheduled start failed, was missed or was skipped, with the reason."}
)

// test is of messages that only try a channel.
const test = "test"

var kinds = []Kind{runEnded, runFailed, campaignEnded, waits, runPaused, noContact, radioSilent, batteryLow, startFailed}

// Kinds returns all kinds, in the order in which people see them.
func Kinds() []Kind { return kinds }

func isKind(key string) bool {
	for _, k := range kinds {
		if k.Key == key {
			return true
		}
	}
	return false
}

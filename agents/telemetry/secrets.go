package telemetry

import (
	"slices"
	"strings"
)

// SecretsVariable is the variable of the agent's environment that lists, separated by
// spaces or commas, the variables that a radio profile may name as secrets. Profiles
// come from the orchestrator: without the list, one that is false could have any
// variable of the agent sent to any address.
const SecretsVariable = "LINKTRIAL_RADIO_SECRETS"

// listedEnv looks up the variables that the node's technician has listed, and no others.
func listedEnv(env func(string) string) func(string) string {
	return func(name string) string {
		listed := strings.FieldsFunc(env(SecretsVariable), func(r rune) bool { return r == ' ' || r == ',' })
		if !slices.Contains(listed, name) {
			return ""
		}
		return env(name)
	}
}

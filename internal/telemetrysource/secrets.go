package telemetrysource

import (
	"fmt"
	"os"
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
		if !slices.Contains(words(env(SecretsVariable)), name) {
			return ""
		}
		return env(name)
	}
}

// words are those of a list that spaces or commas separate.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })
}

// secret is the value of a variable that a profile names.
func (n *Node) secret(name string) (string, error) {
	env := n.Env
	if env == nil {
		env = listedEnv(os.Getenv)
	}
	v := env(name)
	if v == "" {
		return "", fmt.Errorf("the radio profile names %s as a secret of the radio's SNMP, and the agent's environment has none of that name that %s lists: the node's technician sets both", name, SecretsVariable)
	}
	return v, nil
}

package plan

import (
	"fmt"
	"strings"
)

// TemplateValues are values of a new plan in place of the examples; empty: the example.
type TemplateValues struct {
	Radio, Topology string
	// Protocols names the drivers of its treatments, one each.
	Protocols []string
}

// Template is the text of a new plan, in which every key has its meaning as a comment.
func Template(name string, v TemplateValues) string {
	with := map[string]string{"name": name, "title": name, "treatments": templateTreatments(v.Protocols)}
	for key, value := range map[string]string{"radio": v.Radio, "topology": v.Topology} {
		if value != "" {
			with[key] = value
		}
	}
	return Language.Template(Language.Meaning+" docs/plans.md has the keys with all that they hold.\n"+
		"linktrial plan check FILE lists what is wrong with it, linktrial plan explain FILE what it makes, and linktrial rehearse FILE runs it on emulated radios here.\n"+
		"Keys that this plan does not use stand as comments, with an example.", with)
}

func templateTreatments(protocols []string) string {
	if len(protocols) == 0 {
		return "- {name: cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}\n- {name: haul, label: Haul, protocol: haul}\n"
	}
	var b strings.Builder
	for _, p := range protocols {
		fmt.Fprintf(&b, "- {name: %s, protocol: %s}\n", p, p)
	}
	return b.String()
}

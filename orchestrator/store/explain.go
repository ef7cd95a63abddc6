package store

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// What people are told where the fault is not theirs. The orchestrator's log
// has the cause: its text names tables, columns and files, on which nobody else can
// act.
const (
	unavailableText = "the database does not answer%s, so the orchestrator cannot answer either: nothing is lost, nodes continue and keep what they measure, and the same call can succeed later; the orchestrator's log has the reason"
	unwritableText  = "the database %s, so nothing can be stored: nothing is lost, nodes continue and keep what they measure, and the same call can succeed when that is repaired; the orchestrator's log has the reason"
	internalText    = "the orchestrator failed at this call: its log has the reason, as incident %s"
	badValueText    = "a value of the request cannot be stored: the orchestrator's log has the reason, as incident %s"
	noRowsText      = "what was asked for does not exist"
)

// Explain returns what people are told of an error whose own text is not for them, and
// its fault: [NoFault] for one that is not the database's. It logs the error.
func Explain(log *slog.Logger, call string, err error) (Fault, string) {
	fault := FaultOf(err)
	switch fault {
	case NoRows:
		return fault, noRowsText
	case Unavailable:
		if why := WhyUnwritable(err); why != "" {
			log.Error("call failed: the database takes no changes", "why", why, "call", call, "error", err)
			return fault, fmt.Sprintf(unwritableText, why)
		}
		log.Error("call failed: the database does not answer", "call", call, "error", err)
		return fault, UnavailableText("")
	case BadValue:
		id := incident()
		log.Error("call failed: a value cannot be stored", "call", call, "incident", id, "error", err)
		return fault, fmt.Sprintf(badValueText, id)
	}
	id, text := Incident()
	log.Error("call failed", "call", call, "incident", id, "error", err)
	return fault, text
}

// UnavailableText is what people are told while the database does not answer; since says
// since when, in brackets, and may be empty.
func UnavailableText(since string) string { return fmt.Sprintf(unavailableText, since) }

// Incident returns a new name under which the log has a failure of the orchestrator, and
// what people are told of it.
func Incident() (id, text string) {
	id = incident()
	return id, fmt.Sprintf(internalText, id)
}

func incident() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

package journal

import (
	"errors"
	"fmt"

	"linktrial/internal/radio"
	"linktrial/internal/runcommand"
)

// Self is the name in place of a person's in commands that the leading node gives itself.
const Self = "linktrial"

// CommandKind is what a person asks of a run ([runcommand]), of what journals have.
type CommandKind string

const (
	CommandAbort  CommandKind = runcommand.Abort
	CommandPause  CommandKind = runcommand.Pause  // hold the run at the next trial boundary
	CommandResume CommandKind = runcommand.Resume // let it go on
	CommandSkip   CommandKind = runcommand.Skip   // end a trial without a further attempt
	CommandRepeat CommandKind = runcommand.Repeat // one more attempt of a trial that has ended
)

// Command is a person's command that the node received, or with By [Self] a pause of
// the leading node's own. It is written before
// it takes effect: after a [CommandRepeat], its trial has not ended any more.
type Command struct {
	ID    string      `json:"id"`
	Kind  CommandKind `json:"kind"`
	By    string      `json:"by,omitempty"`
	Trial *int        `json:"trial,omitempty"` // of skip and repeat
	// Reason is why the leading node paused the run by itself.
	Reason string `json:"reason,omitempty"`
	// Rejected is why the command could not be applied any more; it then has no
	// effect. The key is that of the format's first version.
	Rejected string `json:"passed_over,omitempty"`
}

var commandKind = kindOf([]Type{TypeCommand},
	"`abort`: all; the others: client",
	"`id`, `kind` (`abort`, `pause`, `resume`, `skip`, `repeat`), `by`, and `trial` of the last two: a person's command, applied from here on; or, with the reason in `passed_over`, a command that the node rejected because it came too late; or, by `linktrial` and with a `reason`, the leading node's own pause ([why](#faults-of-the-apparatus))",
	func(r *Record, b *Command) error {
		// Kinds that are not known are accepted: they change nothing.
		switch b.Kind {
		case CommandPause, CommandResume:
			return r.only(radio.RoleClient)
		case CommandSkip, CommandRepeat:
			if b.Trial == nil {
				return fmt.Errorf("%s of no trial", b.Kind)
			}
			if b.Rejected == "" {
				return errors.Join(attempt(*b.Trial, 1, 0), r.only(radio.RoleClient))
			}
			return r.only(radio.RoleClient)
		}
		return nil
	},
	func(_ Type, b *Command) string {
		s := "command: " + string(b.Kind)
		if b.Trial != nil {
			s += fmt.Sprintf(" trial %d", *b.Trial)
		}
		if b.By != "" {
			s += ", by " + b.By
		}
		s += because(b.Reason)
		if b.Rejected != "" {
			s += ", rejected: " + b.Rejected
		}
		return s
	})

// Package people has the commands for a person's access to an orchestrator: login,
// users, API tokens, the audit log, trust in the orchestrator's certificate, and by what
// people are told what has happened.
package people

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newLogin(s), newLogout(s), newUser(s), newToken(s), newAudit(s), newTrust(s), newNotifications(s)}
}

// Package people has the commands about who may call an orchestrator and whom a
// person's programs believe: login, users, tokens, the audit log, trust.
package people

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands are the subcommands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newLogin(s), newLogout(s), newUser(s), newToken(s), newAudit(s), newTrust(s)}
}

package trust

import (
	"context"

	"linktrial/executor"
)

// Prepare implements [executor.Preparer] where the runner does. What the sheet
// does not name is not prepared; Start reports why.
func (g *Guard) Prepare(ctx context.Context, protocol, transfer string) (release func()) {
	p, ok := g.Runner.(executor.Preparer)
	if !ok || g.check(ctx, protocol) != nil {
		return func() {}
	}
	return p.Prepare(ctx, protocol, transfer)
}

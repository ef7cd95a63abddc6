package importrules

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "asks go list")

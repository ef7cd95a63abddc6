package discovery

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "reads and writes messages; tests over interfaces say so themselves")

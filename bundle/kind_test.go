package bundle

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "has programs sign and unpack")

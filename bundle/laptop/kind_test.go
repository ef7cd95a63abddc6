package laptop

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "packs small files")

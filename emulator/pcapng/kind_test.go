package pcapng

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "has other programs read what it wrote")

package namespace

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "enters namespaces, and waits for nothing")

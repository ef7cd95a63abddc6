package uml

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "runs in virtual time")

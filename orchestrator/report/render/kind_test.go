package render_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "has LaTeX typeset what it wrote")

package launch_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "keeps nodes connected, and has a schedule tried again")

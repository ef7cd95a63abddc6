package backup

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "copies databases while they are used")

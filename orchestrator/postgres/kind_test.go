package postgres

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts databases as processes, and kills them")

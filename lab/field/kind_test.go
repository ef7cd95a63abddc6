package field_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "changes packet filters between nodes")

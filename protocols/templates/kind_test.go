package templates

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "checks the driver templates against the contract")

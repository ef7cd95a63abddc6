package host

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "reads how busy this machine is")

package playbooks

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "runs playbooks on file systems and machines of their own")

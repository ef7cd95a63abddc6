package radioonly

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "the kernel's packet filter answers at once, in a namespace of the test's own")

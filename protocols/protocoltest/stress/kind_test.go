package stress_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Soak, "thousands of small transfers, of which a few find little")

package client

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "waits for an emulator that does not answer")

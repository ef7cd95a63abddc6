package tun

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "sends packets through emulated radios in real time")

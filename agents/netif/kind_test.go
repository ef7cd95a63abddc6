package netif

import (
	"os"
	"testing"

	"linktrial/internal/testkind"
)

var _ = testkind.OfPackage(testkind.RealTime, "changes interfaces, and waits for the kernel to say so")

func TestMain(m *testing.M) {
	testkind.AtOnce(4)
	os.Exit(m.Run())
}

var _ = testkind.Waits("for the kernel, which takes seconds to find a duplicate address")

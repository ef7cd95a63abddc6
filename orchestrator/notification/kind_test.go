package notification_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "delivers to servers, which it waits for")

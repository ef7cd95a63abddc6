package session

import "errors"

var (
	errForeign    = errors.New("the orchestrator has more records of this run and node than the journal, so the journal was lost or cut short")
	errWindowFull = errors.New("the rest of the window is too short for a delivery")
	errNoProgress = errors.New("the orchestrator did not take the records")
)

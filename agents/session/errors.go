package session

import "errors"

var (
	errForeign    = errors.New("the orchestrator has more records of this run and node than the journal, so the journal was lost or cut short")
	errNoProgress = errors.New("the orchestrator did not take the records")
)

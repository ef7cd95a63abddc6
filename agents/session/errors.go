package session

import "errors"

var (
	errForeign    = errors.New("the orchestrator has more records of this run and node than the journal")
	errNoProgress = errors.New("the orchestrator did not take the records")
)

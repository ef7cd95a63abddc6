package report

import (
	"fmt"
	"time"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report/wording"
)

// Import is where results come from that another orchestrator measured.
type Import struct {
	Campaign string    `json:"campaign"`
	Origin   string    `json:"origin,omitempty"` // whose they are, as the importing person said
	File     string    `json:"file"`
	SHA256   string    `json:"sha256"` // of the file
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"` // when it was imported
}

// Text says where the results come from; of nil nothing: they were measured here.
func (x *Import) Text() string {
	if x == nil {
		return ""
	}
	s := "imported from " + x.File
	if x.Origin != "" {
		s += " of " + x.Origin
	}
	if x.By != "" {
		s += " by " + x.By
	}
	return wording.Clean(s + ", " + unit.Moment(x.At))
}

// note is what ends a report for people.
func (x *Import) note() string {
	return fmt.Sprintf("Campaign %s was %s: another orchestrator measured it. SHA-256 of the file: %s.", x.Campaign, x.Text(), x.SHA256)
}

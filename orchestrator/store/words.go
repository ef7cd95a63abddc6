package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
)

// ErrWordsChanged reports that somebody has saved other words since they were read.
var ErrWordsChanged = errors.New("was changed in between")

// Words reads what directors added to the report of a campaign, and which version it is: the
// newest one, which is without any text where the words were removed. Version 0: there were
// none yet. Of an imported campaign they are those of its file, without versions.
func (s *Store) Words(ctx context.Context, scope Scope) (w report.Words, version int, err error) {
	if !scope.Imported {
		return readWords(ctx, s.q, scope.Campaign)
	}
	ds, err := importedDataset(ctx, s.q, Scope{Campaign: scope.Campaign, Imported: true})
	if err != nil || len(ds.Words) == 0 {
		return report.Words{Campaign: scope.Campaign}, 0, err
	}
	return ds.Words[0], 0, nil
}

// readWords is [Store.Words] of a campaign that was measured here.
func readWords(ctx context.Context, q *storedb.Queries, campaign string) (report.Words, int, error) {
	row, err := q.ReportWords(ctx, campaign)
	if errors.Is(err, pgx.ErrNoRows) {
		return report.Words{Campaign: campaign}, 0, nil
	}
	if err != nil {
		return report.Words{}, 0, fmt.Errorf("words of campaign %s: %w", campaign, err)
	}
	w, err := asWords(&row)
	return w, int(row.Version), err
}

func asWords(row *storedb.ReportWord) (report.Words, error) {
	w := report.Words{Campaign: row.CampaignID, Title: row.Title, Author: row.Author, Summary: row.Summary, By: row.GivenBy, At: row.GivenAt.UTC().Round(0)}
	if err := json.Unmarshal(row.Remarks, &w.Remarks); err != nil {
		return w, fmt.Errorf("words of campaign %s: remarks: %w", row.CampaignID, err)
	}
	if len(w.Remarks) == 0 {
		w.Remarks = nil
	}
	return w, nil
}

// addWords adds the words of its campaign to a dataset, where there are any.
func addWords(ctx context.Context, q *storedb.Queries, ds *report.Dataset) error {
	w, _, err := readWords(ctx, q, ds.Campaign)
	if err == nil && !w.Empty() {
		ds.Words = []report.Words{w}
	}
	return err
}

// SetWords stores words after a version, which is 0 where there were none, and returns them as
// they are stored, with their own version. Earlier ones stay. The texts are those of
// [report.Words.Check]. It returns [ErrWordsChanged] where the version is not the newest one.
func (s *Store) SetWords(ctx context.Context, w report.Words, after int) (report.Words, int, error) {
	remarks := []byte("{}")
	if len(w.Remarks) > 0 {
		var err error
		if remarks, err = json.Marshal(w.Remarks); err != nil {
			return w, 0, fmt.Errorf("words of campaign %s: %w", w.Campaign, err)
		}
	}
	after = min(after, math.MaxInt32-1)
	row, err := s.q.InsertReportWords(ctx, storedb.InsertReportWordsParams{CampaignID: w.Campaign, After: int32(after), Title: w.Title, Author: w.Author, Summary: w.Summary, Remarks: remarks, GivenBy: w.By})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.wordsChanged(ctx, w.Campaign, after)
	}
	if err != nil {
		return w, 0, fmt.Errorf("words of campaign %s: %w", w.Campaign, err)
	}
	stored, err := asWords(&row)
	return stored, int(row.Version), err
}

// wordsChanged says who saved other words, and when.
func (s *Store) wordsChanged(ctx context.Context, campaign string, after int) (report.Words, int, error) {
	now, version, err := readWords(ctx, s.q, campaign)
	switch {
	case err != nil:
		return now, 0, err
	case version == 0:
		return now, 0, fmt.Errorf("the report of campaign %s %w: it has no words, and version %d was edited", campaign, ErrWordsChanged, after)
	}
	by := ""
	if now.By != "" {
		by = " by " + now.By
	}
	return now, version, fmt.Errorf("the report of campaign %s %w: its words are in version %d, saved%s %s, and version %d was edited; read them again",
		campaign, ErrWordsChanged, version, by, unit.Moment(now.At), after)
}

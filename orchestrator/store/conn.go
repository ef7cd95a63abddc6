package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/orchestrator/store/storedb"
)

// DB runs statements: the database itself, or one transaction of it.
type DB interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error)
}

// Conn is the database, or one transaction of it. A room makes its own queries from it,
// as in accessdb.New(conn); those that several rooms need are its methods.
type Conn struct {
	DB
	recordWriter
	runReader
	resultReader
	q *storedb.Queries // store's own
}

// NewConn returns the queries that run on db.
func NewConn(db DB) Conn {
	q := storedb.New(db)
	return Conn{DB: db, recordWriter: q, runReader: q, resultReader: q, q: q}
}

// recordWriter has what campaigns, their journals and the audit log are stored with, here and
// by tests that need a campaign.
type recordWriter interface {
	UpsertNode(context.Context, UpsertNodeParams) error
	InsertCampaign(context.Context, InsertCampaignParams) error
	InsertRun(context.Context, InsertRunParams) error
	InsertRunNode(context.Context, InsertRunNodeParams) error
	InsertTrials(context.Context, []InsertTrialsParams) (int64, error)
	InsertJournal(context.Context, []InsertJournalParams) (int64, error)
	InsertClockOffset(context.Context, InsertClockOffsetParams) error
	LastAudit(context.Context) (storedb.LastAuditRow, error)
}

// runReader has what is asked of campaigns and runs, by their identities.
type runReader interface {
	Campaign(ctx context.Context, id string) (Campaign, error)
	CampaignOverview(ctx context.Context, campaign string) ([]RunOverview, error)
	RunOverview(ctx context.Context, id string) (RunOverview, error)
	OpenRunOverviews(ctx context.Context, most int32) ([]RunOverview, error)
	RunSheet(ctx context.Context, id string) ([]byte, error)
	SheetHash(ctx context.Context, id string) (string, error)
	RunSignature(ctx context.Context, run string) (storedb.RunSignature, error)
	RunNodes(ctx context.Context, run string) ([]RunNode, error)
	ClockOffsets(ctx context.Context, run string) ([]ClockOffset, error)
	OutageRecords(ctx context.Context, run string) ([]OutageRecordsRow, error)
}

// resultReader has the rows that results are made from.
type resultReader interface {
	RunHeads(context.Context, RunHeadsParams) ([]RunHeadsRow, error)
	Breaches(ctx context.Context, run string) ([]storedb.BreachesRow, error)
	Trials(ctx context.Context, run string) ([]Trial, error)
	Trial(context.Context, TrialParams) (Trial, error)
	TrialsOfIteration(context.Context, TrialsOfIterationParams) ([]Trial, error)
	AttemptsOfTrials(context.Context, AttemptsOfTrialsParams) ([]Attempt, error)
	FlowsOfTrials(context.Context, FlowsOfTrialsParams) ([]FlowRow, error)
	ReceptionsOfTransfers(context.Context, ReceptionsOfTransfersParams) ([]Reception, error)
	SeriesWindow(context.Context, SeriesWindowParams) (storedb.SeriesWindowRow, error)
}

// Rows and parameters that other rooms name.
type (
	UpsertNodeParams        = storedb.UpsertNodeParams
	InsertCampaignParams    = storedb.InsertCampaignParams
	InsertRunParams         = storedb.InsertRunParams
	InsertRunNodeParams     = storedb.InsertRunNodeParams
	InsertTrialsParams      = storedb.InsertTrialsParams
	InsertJournalParams     = storedb.InsertJournalParams
	InsertClockOffsetParams = storedb.InsertClockOffsetParams

	Campaign         = storedb.Campaign
	RunOverview      = storedb.RunOverview
	RunNode          = storedb.RunNode
	ClockOffset      = storedb.ClockOffset
	OutageRecordsRow = storedb.OutageRecordsRow

	RunHeadsParams              = storedb.RunHeadsParams
	RunHeadsRow                 = storedb.RunHeadsRow
	Trial                       = storedb.Trial
	TrialParams                 = storedb.TrialParams
	TrialsOfIterationParams     = storedb.TrialsOfIterationParams
	Attempt                     = storedb.Attempt
	AttemptsOfTrialsParams      = storedb.AttemptsOfTrialsParams
	FlowRow                     = storedb.Flow
	FlowsOfTrialsParams         = storedb.FlowsOfTrialsParams
	Reception                   = storedb.Reception
	ReceptionsOfTransfersParams = storedb.ReceptionsOfTransfersParams
	SeriesWindowParams          = storedb.SeriesWindowParams
)

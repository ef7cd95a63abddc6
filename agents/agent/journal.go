package agent

import (
	"errors"
	"fmt"
	"os"

	"linktrial/executor/journal"
	"linktrial/internal/inputfile"
)

// openJournal opens the run's journal. Where it is damaged, or missing though the run
// had begun, the node can neither go on nor tell what it did: the orchestrator hears
// of it with the polls.
func (r *run) openJournal() (*journal.File, error) {
	cfg := r.node.cfg
	path := JournalPath(cfg.StateDir, r.id)
	r.mu.Lock()
	begun := r.note.Begun
	r.mu.Unlock()
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, r.cannotGoOn("the journal "+path+" is damaged", fmt.Errorf("it is %s, expected a regular file", inputfile.Kind(info.Mode())))
	case begun && (errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0):
		return nil, r.cannotGoOn("the journal "+path+" is missing", errors.New("the run had begun, and what it recorded is gone"))
	}
	options := journal.Options{FloorBytes: cfg.FloorBytes, Logger: r.log}
	if cfg.faultsPossible() {
		options.Clock, options.Boot = cfg.Clock, cfg.boot()
	}
	j, err := journal.Open(path, journal.Identity{Run: r.id, Node: cfg.Name, Role: cfg.Role}, options)
	switch {
	case diskFailed(err) && r.outlastsDisk():
		return nil, err
	case err != nil:
		return nil, r.cannotGoOn("the journal cannot be used", err)
	}
	r.noteBegun(j)
	return j, nil
}

// cannotGoOn reports that a file of the run's folder is damaged or missing, so that
// the node can do nothing more in the run.
func (r *run) cannotGoOn(what string, err error) error {
	text := fmt.Sprintf("%s: %v; the node does nothing more in this run, and what it has delivered stays. Look into %s on the node, and start the run anew with 'linktrial run start'", what, err, r.dir)
	r.node.addFault(fault{r.id, text})
	return errors.New(text)
}

// noteBegun notes that the run has begun, once a crash cannot take its first record
// away any more. An agent that is killed before has a journal without a record, and
// begins anew.
func (r *run) noteBegun(j *journal.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.note.Begun || j.Durable() == 0 {
		return
	}
	r.note.Begun = true
	if err := r.note.write(r.dir); err != nil {
		r.log.Warn("the note of the run could not be written", "error", err)
	}
}

// runJournal is the run's journal for the executor.
type runJournal struct {
	*journal.File
	run *run
}

// Sync implements [executor.Journal].
func (j runJournal) Sync() error {
	err := j.File.Sync()
	j.run.noteBegun(j.File)
	return err
}

// closeJournal completes the journal of a run that is over on this node, while its agent
// goes on; failed is why it could not be executed.
func (r *run) closeJournal(j *journal.File, failed error) error {
	over, _ := ended(j) // a journal that cannot be read has its error in failed
	if failed != nil && !over {
		// The orchestrator must know of it, or it waits for ever.
		_, err := j.Append(journal.TypeRunEnded, journal.RunEnded{End: journal.RunStopped, Reason: failed.Error()})
		failed = errors.Join(failed, err, runJournal{j, r}.Sync())
	}
	if err := j.DropReserve(); err != nil {
		r.log.Warn("reserve could not be given back", "error", err)
	}
	return failed
}

// ended reports whether this node's part in the run is over.
func ended(j *journal.File) (over bool, err error) {
	err = j.Records(func(r journal.Record) error {
		over = over || r.Type == journal.TypeRunEnded
		return nil
	})
	return over, err
}

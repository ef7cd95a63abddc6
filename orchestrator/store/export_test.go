package store

// ForgetSheets empties the cache of decoded sheets.
func (s *Store) ForgetSheets() { s.decoded = newSheetCache() }

// ForgetRuns empties the cache of runs that have ended.
func (s *Store) ForgetRuns() { s.ended = newRunCache() }

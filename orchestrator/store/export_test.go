package store

// ForgetSheets empties the cache of decoded sheets.
func (s *Store) ForgetSheets() { s.decoded = newSheetCache() }

package plan

// williamsRows is how many rows a Williams design for n treatments has.
func williamsRows(n int) int {
	if n%2 == 0 || n == 1 {
		return n
	}
	return 2 * n
}

// Williams is the rows of a Williams design for n treatments, numbered from 0:
// n rows for even n, 2n for odd n (1 for n = 1). Over all rows every treatment
// is equally often at every place and follows every other equally often,
// so that a treatment's after-effect on its successor falls on all alike
// (E. J. Williams, "Experimental designs balanced for the estimation of
// residual effects of treatments", 1949).
func Williams(n int) [][]int {
	if n < 1 {
		return nil
	}
	if n == 1 {
		return [][]int{{0}}
	}
	// The first row zigzags 0, 1, n-1, 2, n-2, …, so that the differences
	// between neighbours are all distinct modulo n.
	first := make([]int, 0, n)
	first = append(first, 0)
	for lo, hi := 1, n-1; lo <= hi; lo, hi = lo+1, hi-1 {
		first = append(first, lo)
		if lo != hi {
			first = append(first, hi)
		}
	}
	var rows [][]int
	for shift := range n {
		row := make([]int, n)
		for i, t := range first {
			row[i] = (t + shift) % n
		}
		rows = append(rows, row)
	}
	if n%2 == 1 {
		// With odd n the differences d and n-d fall on the same side only; the
		// mirrored rows even it out.
		for _, row := range rows[:n:n] {
			mirror := make([]int, n)
			for i, t := range row {
				mirror[n-1-i] = t
			}
			rows = append(rows, mirror)
		}
	}
	return rows
}

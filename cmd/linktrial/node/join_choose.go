package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"linktrial/internal/discovery"
)

// choose returns the address of the one orchestrator that was found. Of several, none is
// tried unasked: each would cost a wrong try of its code.
func choose(found []discovery.Found, ask bool, in io.Reader, out io.Writer) (string, error) {
	switch len(found) {
	case 0:
		return "", errors.New("no orchestrator with an open code was found on the networks of this laptop: open a code there ('linktrial node code', or the page Fleet), or name it with --address HOST")
	case 1:
		fmt.Fprintf(out, "Found %s at %s.\n", found[0].Instance, found[0].Address())
		return found[0].Address(), nil
	}
	var list strings.Builder
	for i := range found {
		f := &found[i]
		fmt.Fprintf(&list, "  %d  %s at %s (version %s, by %s)\n", i+1, f.Instance, f.Address(), f.Version, f.Interface)
	}
	if !ask {
		return "", fmt.Errorf("%d orchestrators with an open code were found: name one of them with --address\n%s", len(found), strings.TrimRight(list.String(), "\n"))
	}
	fmt.Fprintf(out, "%d orchestrators with an open code were found:\n%sWhich one? [1 to %d] ", len(found), list.String(), len(found))
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("which orchestrator: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 1 || n > len(found) {
		return "", fmt.Errorf("which orchestrator: %q, expected 1 to %d", strings.TrimSpace(line), len(found))
	}
	return found[n-1].Address(), nil
}

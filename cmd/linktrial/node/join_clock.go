package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	nodeidentity "linktrial/agents/identity"
	"linktrial/internal/identity"
	"linktrial/internal/unit"
)

// worst is the difference of clocks from which on a node cannot work: it takes no
// assignment that was signed so long ago, and its certificate may seem to have expired.
const worst = 24 * time.Hour

// setTime sets this machine's clock.
var setTime = func(t time.Time) error {
	v := unix.NsecToTimeval(t.UnixNano())
	return unix.Settimeofday(&v)
}

// checkClock compares this machine's clock with the orchestrator's, and sets it where a
// person wants that.
func (j *joinCommand) checkClock(got *nodeidentity.Joined) error {
	now := time.Now()
	c := clock{here: now, there: now.Add(-got.Ahead), set: j.setClock, ask: onTerminal(), root: os.Geteuid() == 0}
	c.useless = errors.As(got.CheckTime(now), new(*identity.TimeError)) || got.Ahead.Abs() >= worst
	return c.check(os.Stdin, os.Stdout)
}

// clock is two clocks, and what may be done about a difference.
type clock struct {
	here, there    time.Time
	useless        bool // this machine cannot be a node with its clock
	set, ask, root bool
}

func (c *clock) check(in io.Reader, out io.Writer) error {
	words := identity.ClockWords(c.here, c.there)
	if words == "" {
		return nil
	}
	words, _, _ = strings.Cut(words, "; ") // its advice: here is a better one
	command := fmt.Sprintf("sudo date --utc --set %q", c.there.UTC().Format(time.DateTime))
	set := c.set
	if !set && c.ask && c.root {
		fmt.Fprintf(out, "%s%s.\nSet this machine's clock to the orchestrator's? [yes/no] ", strings.ToUpper(words[:1]), words[1:])
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		set = strings.TrimSpace(line) == "yes"
	}
	switch {
	case set && !c.root:
		return fmt.Errorf("%s: setting the clock needs root; run this command with sudo, or first '%s'", words, command)
	case set:
		// What was waited for since: a person reads and types.
		to := c.there.Add(time.Since(c.here))
		if err := setTime(to); err != nil {
			return fmt.Errorf("%s: set the clock: %w; try '%s'", words, err, command)
		}
		fmt.Fprintf(out, "This machine's clock is set to %s.\n", unit.Moment(to))
		return nil
	case c.useless:
		return fmt.Errorf("%s: set the one that is wrong, here with --set-clock or '%s', and run 'linktrial join' again with --replace", words, command)
	}
	fmt.Fprintf(out, "Warning: %s. Times in results of this node will be wrong by that; '%s' sets it.\n", words, command)
	return nil
}

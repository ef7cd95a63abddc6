package shelf

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/rpc/reply"
)

// tellEvery is how often a caller hears how much is done.
const tellEvery = time.Second

// Call is work for one caller.
type Call struct {
	Progress *Progress
	Run      func(ctx context.Context) error
	Tell     func(State) error // its error ends the work
	// Busy is what is said where the shelf works for somebody else, and Name what the log says
	// of errors.
	Busy, Name string
	Logger     *slog.Logger
	Stopping   <-chan struct{} // closed when the orchestrator stops; nil: it does not
}

// Work does the work of one caller at a time, and tells of it until that has ended. It ends
// with the caller's context, and when the orchestrator stops; what was made is removed then,
// and where the work fails.
func (s *Shelf) Work(ctx context.Context, c Call) error {
	if s.folder == "" {
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("this orchestrator has no data folder, in which the "+s.what+" is made"))
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		return connect.NewError(connect.CodeFailedPrecondition, errors.New(c.Busy))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	err := s.Clear()
	go func() {
		defer close(ended)
		if err == nil {
			err = c.Run(ctx)
		}
	}()
	if stopped := c.follow(ended); stopped != nil {
		cancel()
		<-ended
		s.drop(c.Logger)
		return stopped
	}
	if err != nil {
		s.drop(c.Logger)
		return reply.Told(ctx, c.Logger, c.Name, err)
	}
	return nil
}

// follow tells of the progress until the work has ended. The error is why it should end.
func (c *Call) follow(ended <-chan struct{}) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-c.Stopping:
			return nodes.ErrStopping
		case <-tick.C:
			if err := c.Tell(c.Progress.Now()); err != nil {
				return err
			}
		}
	}
}

// drop removes what was made of an archive that is not finished.
func (s *Shelf) drop(log *slog.Logger) {
	if err := s.Clear(); err != nil {
		log.Warn("what was made of an archive could not be removed", "of", s.what, "error", err)
	}
}

// Package client speaks to the emulated radio network's control socket. Comes in:
// requests. Goes out: reports and status.
package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/signature"
)

// Client is one connection to the control socket. Its methods may be called
// from several goroutines; requests go one at a time.
type Client struct {
	mu     sync.Mutex
	conn   net.Conn
	lines  *bufio.Reader
	broken error // set once request and reply can no longer be matched
}

// Refused is the emulator's answer that it did not do what was requested. The
// connection stays usable.
type Refused struct{ Message string }

func (r *Refused) Error() string { return "emulator: " + r.Message }

const dialTimeout = 5 * time.Second

// Dial connects to the socket at path. It blocks for at most five seconds.
func Dial(path string) (*Client, error) {
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("connect to the emulator: %w", err)
	}
	return &Client{conn: conn, lines: bufio.NewReader(conn)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Configure replaces the network and drops packets in flight. A running trial is
// ended without a report.
func (c *Client) Configure(ctx context.Context, n *radio.Network) error {
	_, err := c.ask(ctx, &radiocontrol.Request{Configure: n})
	return err
}

// Begin starts a trial; the channel's clock starts just before it returns.
func (c *Client) Begin(ctx context.Context, b radiocontrol.Begin) error {
	_, err := c.ask(ctx, &radiocontrol.Request{Begin: &b})
	return err
}

// End closes the trial. The report may come with an error: a packet log that
// could not be completed.
func (c *Client) End(ctx context.Context, trial string) (*radiocontrol.Report, error) {
	rep, err := c.ask(ctx, &radiocontrol.Request{End: &radiocontrol.End{Trial: trial}})
	if rep == nil {
		return nil, err
	}
	if err == nil && rep.Report == nil {
		err = errors.New("emulator: reply to end without a report")
	}
	return rep.Report, err
}

// Status asks what the emulator does now.
func (c *Client) Status(ctx context.Context) (*radiocontrol.Status, error) {
	rep, err := c.ask(ctx, &radiocontrol.Request{Status: &struct{}{}})
	if err != nil {
		return nil, err
	}
	if rep.Status == nil {
		return nil, errors.New("emulator: reply to status without a status")
	}
	return rep.Status, nil
}

// Quiet waits for a second at most until the radios are quiet, and reports whether they
// are ([radiocontrol.Reply]).
func (c *Client) Quiet(ctx context.Context, q radiocontrol.Quiet) (bool, error) {
	rep, err := c.ask(ctx, &radiocontrol.Request{Quiet: &q})
	return rep != nil && rep.Quiet, err
}

// Vouch asks for the lab's proof that a node's radio is one of the emulator's.
func (c *Client) Vouch(ctx context.Context, v radiocontrol.Vouch) (signature.LabProof, error) {
	rep, err := c.ask(ctx, &radiocontrol.Request{Vouch: &v})
	if err != nil {
		return signature.LabProof{}, err
	}
	if rep.Proof == nil {
		return signature.LabProof{}, errors.New("emulator: reply to vouch without a proof")
	}
	return *rep.Proof, nil
}

// ask sends a request and waits for its reply, or for ctx. The end of ctx in
// the middle breaks the connection: the late reply would be taken for that of the
// next request.
func (c *Client) ask(ctx context.Context, req *radiocontrol.Request) (*radiocontrol.Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, fmt.Errorf("emulator: connection was broken earlier: %w", c.broken)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rep, err := c.exchange(ctx, req)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		c.broken = err
		c.conn.Close()
		return nil, fmt.Errorf("emulator: %w", err)
	}
	if rep.Error != "" {
		return rep, &Refused{Message: rep.Error}
	}
	return rep, nil
}

func (c *Client) exchange(ctx context.Context, req *radiocontrol.Request) (*radiocontrol.Reply, error) {
	line, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	past := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(past) })
	defer func() {
		if stop() && c.broken == nil {
			_ = c.conn.SetDeadline(time.Time{})
		}
	}()
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	answer, err := c.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return parseReply(answer)
}

func parseReply(line []byte) (*radiocontrol.Reply, error) {
	var rep radiocontrol.Reply
	if err := json.Unmarshal(line, &rep); err != nil {
		return nil, fmt.Errorf("reply: %w", err)
	}
	return &rep, nil
}

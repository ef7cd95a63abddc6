package netns

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"linktrial/emulator/tun"
	"linktrial/internal/process"
)

// emulatorStart is how long an emulator may take until packets can flow.
const emulatorStart = 20 * time.Second

// startEmulator starts the emulator, and again whenever it ends by itself: in the same
// namespaces, over the same devices, at the same control socket. What the leading agent
// had configured it configures again.
func (l *Lab) startEmulator(ctx context.Context, command []string, tc tun.Config) error {
	doc, err := json.Marshal(tc)
	if err != nil {
		return err
	}
	l.emulator, err = process.Supervision{
		Name: "the emulated radio network", Log: l.log,
		Start:     func(ctx context.Context) (*exec.Cmd, error) { return l.launchEmulator(ctx, command, doc) },
		LastWords: l.lastLog,
		Changed:   l.emulatorChanged,
		MaxEnds:   l.maxEnds,
	}.Run(ctx)
	if err == nil {
		l.emulatorChanged(l.emulator.State())
	}
	return err
}

// launchEmulator is [LaunchEmulator] for the lab's own, which becomes one of its
// processes.
func (l *Lab) launchEmulator(ctx context.Context, command []string, doc []byte) (*exec.Cmd, error) {
	cmd, err := LaunchEmulator(ctx, command, doc, l.emulatorLog())
	if err != nil {
		return nil, err
	}
	if err := l.adopt(cmd.Process.Pid); err != nil {
		return nil, end(cmd, err)
	}
	return cmd, nil
}

// LaunchEmulator starts one emulator process with its configuration, appends what it
// says to a log, and returns when packets can flow.
func LaunchEmulator(ctx context.Context, command []string, doc []byte, log string) (*exec.Cmd, error) {
	logFile, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer logFile.Close() // the child has its own
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(doc)
	cmd.Stderr = logFile
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout = in
	err = process.Start(cmd)
	in.Close()
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		ready <- sc.Scan() && sc.Text() == "ready"
	}()
	select {
	case ok := <-ready:
		if !ok {
			return nil, end(cmd, fmt.Errorf("the emulator did not start: %s", cmp.Or(process.LastLine(log), "no log")))
		}
		return cmd, nil
	case <-time.After(emulatorStart):
		err = fmt.Errorf("the emulator did not start within %s", emulatorStart)
	case <-ctx.Done():
		err = ctx.Err()
	}
	err = end(cmd, err)
	<-ready
	return nil, err
}

// end ends a child that is of no use, and returns why.
func end(cmd *exec.Cmd, why error) error {
	_ = cmd.Process.Kill() // an error means that it has gone already
	_ = cmd.Wait()         // why it is ended is known
	return why
}

// emulatorChanged writes down whether the emulator runs.
func (l *Lab) emulatorChanged(st process.State) {
	var down *Down
	if !st.Since.IsZero() {
		down = &Down{Since: st.Since, Reason: st.Reason, Final: st.Failed}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.State.Emulator, l.State.EmulatorDown = st.PID, down
	if err := l.State.save(l.dir); err != nil {
		l.log.Error("the state of the emulator could not be noted", "error", err)
	}
}

func (l *Lab) emulatorLog() string { return filepath.Join(l.dir, l.State.Name, "emulator.log") }

// lastLog is the last line of the emulator's log.
func (l *Lab) lastLog() string { return cmp.Or(process.LastLine(l.emulatorLog()), "no log") }

// Ended returns a channel that is closed when the emulator has ended so often that it
// is not started again; Failure then returns why. Plain radios do not end.
func (l *Lab) Ended() <-chan struct{} {
	if l.emulator == nil {
		return nil
	}
	return l.emulator.Failed()
}

// Failure says why the emulator is not started again; nil while it is.
func (l *Lab) Failure() error { return l.emulator.Failure() }

// EmulatorDown returns since when and why the emulator does not run; nil: it runs.
func (l *Lab) EmulatorDown() *Down {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.State.EmulatorDown
}

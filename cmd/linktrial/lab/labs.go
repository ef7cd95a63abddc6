package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"linktrial/cmd/linktrial/terminal"
	"linktrial/lab/netns"
)

// sweepLabs removes the labs of a folder whose holders have died, before one of the
// name own is brought up, and returns their names. A lab whose state cannot be read is
// named on w; it is an error where it is the lab to be brought up.
func sweepLabs(ctx context.Context, w io.Writer, dir, own string) ([]string, error) {
	removed, damaged, err := netns.Sweep(ctx, dir)
	for _, d := range damaged {
		if d.Name == own {
			err = errors.Join(err, d)
			continue
		}
		fmt.Fprintln(w, "linktrial:", d)
	}
	return removed, err
}

// removeLab removes a lab, also one that a killed process has left behind, and says on
// w what it did.
func removeLab(ctx context.Context, w io.Writer, dir, name string) error {
	st, err := netns.Load(dir, name)
	var damaged *netns.Damaged
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no lab %q is up", name)
	case errors.As(err, &damaged):
		if err := damaged.Remove(ctx); err != nil {
			return err
		}
		fmt.Fprintf(w, "Lab %s has been removed. Its state could not be read (%v): a process that still holds it was not ended.\n", name, errors.Unwrap(damaged))
		return nil
	case err != nil:
		return err
	}
	if err := st.Owner.End(ctx, 20*time.Second); err != nil {
		return err
	}
	// What the ended process did not remove.
	if _, err := sweepLabs(ctx, w, dir, name); err != nil {
		return err
	}
	fmt.Fprintf(w, "Lab %s has been removed.\n", name)
	return nil
}

// listLabs prints the labs of a folder, and below them those whose state cannot be read.
func listLabs(dir string) error {
	all, damaged, err := netns.List(dir)
	if err != nil {
		return err
	}
	var down []string
	if len(all) > 0 {
		if err := terminal.Columns("LAB\tSTATE\tRADIO\tTOPOLOGY\tHELD BY\tEMULATOR", func(w io.Writer) {
			for _, st := range all {
				state := "up"
				if !st.Running() {
					state = "left behind (the next start removes it)"
				}
				if st.Running() && st.EmulatorDown != nil {
					state = "radios down"
					down = append(down, fmt.Sprintf("Lab %s: %s.", st.Name, st.EmulatorDown))
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\n", st.Name, state, st.Radio, st.Topology, st.Owner.PID, st.Emulator)
			}
		}); err != nil {
			return err
		}
	} else if len(damaged) == 0 {
		fmt.Println("No lab is up. Start one: linktrial lab up")
	}
	for _, text := range down {
		fmt.Println(text)
	}
	for _, d := range damaged {
		fmt.Println(d)
	}
	return nil
}

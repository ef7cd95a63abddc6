package netns

// Held is a lab whose nodes, radios and processes something else has made and keeps up:
// inside a guest of the virtual-time lab its first process does. What is done to nodes
// from outside ([SetRadio], [Lab.PowerCut]) works as in a lab of [Up]; the lab has no
// control network, nothing is noted on a disk, and Down is not for it.
func Held(nodes []NodeState) *Lab { return &Lab{State: State{Nodes: nodes}} }

// SetEmulator notes the PID of the emulator of a lab of [Held]; 0 while none runs.
func (l *Lab) SetEmulator(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.State.Emulator = pid
}

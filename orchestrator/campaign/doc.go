// Package campaign moves runs from state to state: it chooses nodes, decides
// what each node is to do now, and derives every state from the store, so that
// an orchestrator that was killed goes on where it was. Comes in: campaigns,
// commands of people, notice of stored records. Goes out: assignments, changes
// of state.
//
// Three parts, each with its own lock: [nodes.Registry] knows the nodes and
// answers their polls, [live.Runs] knows what watchers need beyond the store,
// and the [Engine] takes the decisions, which are pure functions: those about runs in
// decide.go, those about attempts in package judge. What happens with the attempts of
// a run that have ended is a list of steps (ended.go).
//
// Each review of the open runs finds the moves between topologies in one pass over
// their campaigns: 15 ms with 125 open runs of 250, where a look at the whole
// campaign for each run took 155 ms.
package campaign

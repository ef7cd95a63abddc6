// Package joining lets laptops join by a short code: an admin opens one, and a laptop that
// knows it gets a one-time token for its enrolment. Comes in: what admins ask for, and the
// messages of exchanges, from anybody. Goes out: tokens of the authority, sealed for who
// has the code, and who joined.
//
// A code is in memory alone. At most one is open; it ends after its time, after
// [MaxWrong] wrong tries, when a person closes it and when the orchestrator ends. An
// exchange without an open code goes as any other, with a code that is made for it: who
// does not know the code cannot tell a wrong one from an old one or none.
//
// code.go has the code and its state, exchange.go the messages, name.go which names
// laptops may get.
package joining

// Package notification tells people who are elsewhere what has happened: a run that ends, fails,
// or waits for them. Comes in: the tables of runs, schedules and losses of contact, what nodes
// report, and the channels that an admin has set (webhooks, e-mail). Goes out: notifications in
// the store, each once, and their deliveries.
//
// The files: kind.go has the table of kinds; settings.go what a channel is
// and what is refused of it; redact.go what may be shown of an error; webhook.go and mail.go
// deliver one message; worker.go is a channel's queue; channels.go saves channels; events.go
// and conditions.go derive what there is to tell; watch.go looks for it; notifier.go ties them
// together. The engine knows nothing of this room, which only reads.
package notification

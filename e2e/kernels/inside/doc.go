// Package inside has the tests that run inside an emulated machine, as the only
// program beside drivers. Each reports what it tried as a [machine.Record]; a
// failed one also fails the test, whose log is on the console.
package inside

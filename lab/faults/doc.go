// Package faults is the fault campaign: it decides which faults are injected into a
// lab, and when, and injects them.
//
// Comes in: a schedule that a person writes, or a seed; and the processes and
// namespaces of a lab. Goes out: faults in the lab, and the list of them
// (internal/faultlog).
//
// Reading a schedule and drawing faults from a seed touch nothing of the machine;
// [Lab] does.
//
// Campaigns (docs/faults.md) have found these errors of Linktrial, each by the seed
// named (v: in virtual time) and held by the test since:
//
//	20261124    an agent that started while its radio's interface had another address
//	            did not expect the right one: TestInterfaceWithoutAddress
//	20261126 v  the server's agent was stopped and then killed while its listener
//	            received, and nobody recorded it: TestOutages
//	20261131    a killed database was not back within two minutes:
//	            TestLifeOfADataFolder
//	20261130 v  the list of faults was lost with an interruption: TestInterruptVirtual
//	7 v         a new emulator undid what had been done to interfaces:
//	            TestChangesOutlastTheEmulator
//	20261203 v  a power cut that ended undid another fault of its node's interfaces:
//	            lab/netns TestFaults
//	20261201 v  a fault of another treatment's listener was held against an attempt:
//	            TestWhoseDriver
//	20261210 v  (and 20261211) a fault of the client was held against an attempt that
//	            began after it: TestOverBeforeTheAttempt
//	20261220 v  a listener that started while its interface had another MTU kept packets
//	            of that size in later attempts, which counted:
//	            TestListenerAwaitsInterface, TestFaultsLeaveValuesAlone
//	20261220 v  an interface that was in order again before an attempt's first flow
//	            connected was held against the attempt: TestInterfaceFaultBeforeTheTransfer
//	20261223    a second agent of a node's name registered while the database was down
//	            and began the run's journal anew, and the run was stopped:
//	            TestSecondAgentTakesNoPlace, TestJournalInAnotherStateFolder
//	20261226 v  (and 20261228, 20261231) an end whose client had been killed sent into
//	            the trials that followed: TestQuietBeforeATrial, TestQuiet,
//	            TestTrialsLeaveNothingOnTheAir
package faults

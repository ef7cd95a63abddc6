// Package bench measures haul in real time beside other transports: a bulk
// transfer over a fast clean link, and what a short message costs on the wire.
// It has tests and benchmarks alone. Comes in: nothing. Goes out: tables.
// Imports haul; the other transports are libraries that only these tests use.
//
// Where haul's processor time goes on the fast link, in samples of both ends' profiles
// (LINKTRIAL_BENCH_PROFILE=FOLDER writes them):
//
//	sender                                    receiver
//	sendmmsg                        25 %      recvmmsg, sendmmsg of acknowledgements  14 %
//	memmove                         10 %      AES-GCM                                 10 to 13 %
//	AES-GCM                         9 to 10 % memmove                                 8 %
//	allocation                      9 %       allocation (decoder's, stream's copies) 19 %
//	outbox.head (the next message)  7 %       loss.observe                            6 %
package bench

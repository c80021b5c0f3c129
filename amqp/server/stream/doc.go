// Package stream makes TCP sockets cheap to use for a process that most messages wake.
//
// The runtime has a watchdog, a thread that takes the processor away from system calls that take long and from
// goroutines that run long. While the whole process rests the watchdog sleeps; the first system call that the scheduler
// is told of wakes it, and it then looks around every 20 µs until the process rests again. At some thousand messages a
// second, each of which comes to a process at rest, that takes more context switches than the messages do; and with one
// processor it takes that away from the write that is under way, and gives it to another thread.
//
// The calls of a stream aren't told to the scheduler: the sockets don't block, so there is nothing to take away. Every
// so often one is, so that the watchdog is awake while the process works: without it a goroutine that never waits would
// keep others from running.
package stream

// Package queue is one message queue as a pure machine: commands and the time go in, effects come out.
package queue

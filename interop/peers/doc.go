// Package peers puts the same load on leto and on other brokers, one beside the
// other on this machine, and writes what came of it into docs/benchmarks.md.
// `make bench-peers` runs it: one process for each round of a scenario, in which
// every broker is started on an empty folder, warmed up, measured and stopped in
// turn. docs/benchmarks.md says how to read the outcome.
package peers

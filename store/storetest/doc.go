// Package storetest is the contract of engine.Store as a suite of tests, which every store has to pass.
package storetest

// Package store is where what must survive a restart is kept.
//
// The engine declares what it asks of a store: engine.Store. The packages below are the stores, and storetest is the
// suite that each of them has to pass. This package itself has nothing yet.
package store

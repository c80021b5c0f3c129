// Package engine routes messages from producers to queues and from queues to consumers.
package engine

package server

import (
	"strings"
	"sync"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// Node is an address that isn't a queue: management, token exchange, links
// between brokers. Its methods are called on behalf of many connections at
// once; they must not block.
type Node interface {
	// Attach decides over a link to the node; an error refuses it.
	Attach(l *NodeLink) *amqp.Error
	// Message takes a whole message from a peer that sends to the node and
	// returns its outcome. message is valid during the call only.
	Message(l *NodeLink, message []byte) codec.Outcome
	// Detached says that the link is gone.
	Detached(l *NodeLink)
}

// nodes are the registered nodes by address prefix.
type nodes struct {
	mu       sync.RWMutex
	byPrefix map[string]Node
}

// Register serves all addresses that start with prefix, which should start
// with "$", by n rather than by queues. Links that are attached stay as they are.
func (s *Server) Register(prefix string, n Node) {
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	if s.nodes.byPrefix == nil {
		s.nodes.byPrefix = make(map[string]Node)
	}
	s.nodes.byPrefix[prefix] = n
}

// find returns the node with the longest prefix of address; nil for none.
func (n *nodes) find(address string) Node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var found Node
	length := 0
	for prefix, node := range n.byPrefix {
		if len(prefix) > length && strings.HasPrefix(address, prefix) {
			found, length = node, len(prefix)
		}
	}
	return found
}

// NodeLink is one link attached to a node. Send may be called from any goroutine.
type NodeLink struct {
	// Address is what the link is attached to, Name the link's own.
	Address, Name string
	// Container and Identity are the peer's.
	Container, Identity string
	// Sender says that the node sends on this link.
	Sender bool
	// Properties are those of the peer's attach, ReplyTo its own terminus's address.
	Properties codec.Map
	ReplyTo    string

	node    Node
	at      *attachment
	partial []byte

	mu      sync.Mutex
	waiting [][]byte
	ended   bool
}

// maxNodeWaiting is how many messages a node may have waiting for a peer's credit.
const maxNodeWaiting = 256

func (a *attachment) bindNode(n Node, at *codec.Attach, address string) *amqp.Error {
	l := &NodeLink{
		Address: address, Name: a.link.Name, Container: a.key.container, Identity: a.key.identity,
		Sender: a.link.Sender(), Properties: at.Properties, node: n, at: a,
	}
	if l.Sender && at.Target != nil {
		l.ReplyTo = at.Target.Address.Value
	} else if !l.Sender && at.Source != nil {
		l.ReplyTo = at.Source.Address.Value
	}
	if err := n.Attach(l); err != nil {
		l.mu.Lock()
		l.ended, l.waiting = true, nil
		l.mu.Unlock()
		return err
	}
	a.node = l
	return nil
}

// Send queues an encoded message for the peer, settled; it goes when the peer
// gives credit. False: too many wait, or the link is gone.
func (l *NodeLink) Send(message []byte) bool {
	l.mu.Lock()
	ok := !l.ended && len(l.waiting) < maxNodeWaiting
	if ok {
		l.waiting = append(l.waiting, message)
	}
	l.mu.Unlock()
	if ok {
		l.at.conn.mail.notify(notice{kind: noticeNode, link: l.at})
	}
	return ok
}

// opened gives a peer that sends to the node its first credit.
func (l *NodeLink) opened() {
	if !l.Sender {
		l.at.link.Grant(nodeCredit)
	}
}

// nodeCredit is how many requests a peer may have under way.
const nodeCredit = 64

// flowed sends what waits, as far as credit goes.
func (l *NodeLink) flowed() {
	if !l.Sender {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 && l.at.link.Credit() > 0 {
		l.at.link.Send(amqp.Sending{Body: l.waiting[0], Settled: true})
		l.waiting = l.waiting[1:]
	}
	l.at.link.SetAvailable(uint32(len(l.waiting)))
	l.at.link.Drained()
}

// receive takes a fragment of a message to the node.
func (l *NodeLink) receive(ev *amqp.Event) {
	if ev.Kind == amqp.EventAborted {
		l.partial = nil
		return
	}
	if ev.State.Transactional {
		l.at.link.Fail(amqp.Errorf(amqp.ConditionNotImplemented, "messages to %s can't be part of a transaction", l.Address))
		return
	}
	message := ev.Payload
	if !ev.First || !ev.Last {
		if len(l.partial)+len(ev.Payload) > maxNodeMessage {
			l.at.link.Fail(amqp.Errorf(amqp.ConditionMessageSizeExceeded, "message to %s exceeds %d bytes", l.Address, maxNodeMessage))
			return
		}
		l.partial = append(l.partial, ev.Payload...)
		message = l.partial
	}
	if !ev.Last {
		return
	}
	outcome := l.node.Message(l, message)
	l.partial = nil
	if !ev.Settled {
		ev.Session.Dispose(ev.DeliveryID, outcome)
	}
	if l.at.link.Credit() <= nodeCredit/2 {
		l.at.link.Grant(nodeCredit)
	}
}

// maxNodeMessage limits requests to nodes, in bytes.
const maxNodeMessage = 1 << 20

func (l *NodeLink) closed() {
	l.mu.Lock()
	l.ended, l.waiting = true, nil
	l.mu.Unlock()
	l.node.Detached(l)
}

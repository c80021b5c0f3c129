package queue

// Home is where entries wait that there is no memory for.
type Home uint8

const (
	InStore Home = iota // durable ones are in the store whatever happens
	InSpill             // the others are written when there is no memory for them
	homes
)

// home returns that of a message. What the store doesn't hold of this queue can only be spilled.
func (r *ready) home(m *Message) Home {
	if m.Durable && r.budget(InStore) != nil {
		return InStore
	}
	return InSpill
}

// side is the part of a level that has one home.
type side struct {
	kept  int64 // what its entries in memory take, blanks not counted; 0 without a budget
	lease int64 // taken from the budget for them, and for a load on its way
}

// away is what a level has that ever had a frontier.
type away struct {
	frontiers [homes]*frontier // nil: all of that home are in memory
	passed    [homes]uint64    // a frontier has been there, and doesn't come back below it
}

// budget returns that of a home, nil when all of that home is kept in memory.
func (r *ready) budget(h Home) *Budget {
	if r.budgets == nil {
		return nil
	}
	return r.budgets.of[h]
}

// frontier returns that of a home, or nil.
func (l *level) frontier(h Home) *frontier {
	if l.away == nil {
		return nil
	}
	return l.away.frontiers[h]
}

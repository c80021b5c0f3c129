package store

import "github.com/letomq/leto/store/index"

// editMap has what edits come to for each entry.
type editMap map[uint64]index.Edit

func (m *editMap) put(e index.Edit) {
	if *m == nil {
		*m = editMap{}
	}
	(*m)[e.Number] = e
}

// add takes an edit in behind those that are there.
func (m *editMap) add(e index.Edit) {
	before := (*m)[e.Number]
	switch {
	case before.Kind == index.EditRemove:
		return
	case before.Kind == index.EditCount && e.Kind == index.EditDue:
		both := *before.Entry
		e.On(&both)
		e.Kind, e.Entry = index.EditCount, &both
	}
	m.put(e)
}

// editSums has what the edits of a level come to, so that who asks about many entries again and again doesn't go through
// all that is pending each time. It is made when it is asked for, and thrown away when edits go.
type editSums struct {
	of    editMap
	taken int // so many of the edits
}

// How many entries somebody has to ask about, and how many edits there have to be.
const (
	sumNumbers = 64
	sumEdits   = 4096
)

func (s *editSums) take(edits []pendingEdit) {
	for ; s.taken < len(edits); s.taken++ {
		if e := &edits[s.taken]; e.Kind != index.EditPut {
			s.of.add(e.Edit)
		}
	}
}

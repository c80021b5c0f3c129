package server

import (
	"math/rand/v2"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// TestLinksOfASession: links that come and go are found by their session, whatever else the connection has.
func TestLinksOfASession(t *testing.T) {
	r := start(t, nil)
	p := r.opened("many")
	rng := rand.New(rand.NewPCG(4, 2))
	const sessions, handles = 3, 6
	for p.channel = 1; p.channel < sessions; p.channel++ {
		p.begin()
	}
	var attached [sessions][handles]bool
	for range 200 {
		p.channel = uint16(rng.IntN(sessions))
		handle := uint32(rng.IntN(handles))
		is := &attached[p.channel][handle]
		if *is {
			p.send(&codec.Detach{Handle: handle, Closed: true})
			p.detached("")
		} else {
			attach := senderAttach("", handle, "q")
			attach.Name = string([]byte{byte('a' + p.channel), byte('a' + handle)})
			p.attach(attach)
		}
		*is = !*is
		r.server.each(func(c *connection) {
			c.guard.Lock()
			defer c.guard.Unlock()
			want := map[*amqp.Session]map[*attachment]bool{}
			for a := range c.links {
				s := a.link.Session()
				if want[s] == nil {
					want[s] = map[*attachment]bool{}
				}
				want[s][a] = true
			}
			for s, all := range want {
				found := linksOf(s)
				for _, a := range found {
					if !all[a] {
						t.Fatal("a link that isn't the session's")
					}
				}
				if len(found) != len(all) {
					t.Fatalf("%d links, want %d", len(found), len(all))
				}
			}
		})
	}
	for p.channel = range uint16(sessions) {
		p.send(&codec.End{})
		await[codec.End](p)
	}
	r.server.each(func(c *connection) {
		c.guard.Lock()
		defer c.guard.Unlock()
		if len(c.links) > 0 {
			t.Errorf("%d links after the end of all sessions", len(c.links))
		}
	})
}

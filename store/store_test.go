package store_test

import (
	"testing"
	"time"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/storetest"
)

// small makes everything happen often.
func small(t testing.TB, dir string) store.Options {
	return store.Options{
		Dir: dir, SegmentSize: 1 << 20, ApplyMax: 1 << 20, ApplyAge: 2 * time.Millisecond, Checkpoint: 5 * time.Millisecond,
		MemTable: 512 << 10, Alarm: func(what string) { t.Logf("alarm: %s", what) },
	}
}

func open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	for name, age := range map[string]time.Duration{"applied at once": time.Microsecond, "applied late": time.Hour} {
		t.Run(name+", closed", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Store {
				o := small(t, t.TempDir())
				o.ApplyAge = age
				s := open(t, o)
				t.Cleanup(func() { s.Close() })
				return storetest.Store{Store: s, Reopen: func(t *testing.T) engine.Store {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(t, o)
					return s
				}}
			})
		})
		t.Run(name+", dropped", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Store {
				o := small(t, t.TempDir())
				o.ApplyAge = age
				s := open(t, o)
				t.Cleanup(func() { s.Close() })
				return storetest.Store{Store: s, Reopen: func(t *testing.T) engine.Store {
					o.Dir = copyStore(t, o.Dir)
					s.Close()
					s = open(t, o)
					return s
				}}
			})
		})
	}
}

package memory_test

import (
	"testing"

	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
	"github.com/letomq/leto/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store {
		s := memory.New()
		return storetest.Store{Store: s, Reopen: func(*testing.T) engine.Store { return s }}
	})
}

package index

import (
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// alarm is Badger's logger. Badger tells of some faults nowhere else: a memtable that can't be written, a value that
// can't be read.
type alarm struct{ raise func(string) }

var _ badger.Logger = alarm{}

func (a alarm) Errorf(format string, args ...any) {
	if a.raise != nil {
		a.raise("index: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

func (alarm) Warningf(string, ...any) {}
func (alarm) Infof(string, ...any)    {}
func (alarm) Debugf(string, ...any)   {}

// Package rhea runs scenarios written with rhea, the AMQP client of Node, against the
// leto binary. Each scenario shows as a subtest.
package rhea

import (
	"testing"

	"github.com/letomq/leto/interop/foreign"
)

func TestScenarios(t *testing.T) { foreign.Rhea.Scenarios(t) }

func TestRestarts(t *testing.T) { foreign.Rhea.Restarts(t) }

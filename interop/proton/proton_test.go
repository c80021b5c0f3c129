// Package proton runs scenarios written with Apache Qpid Proton's Python bindings
// against the leto binary. Each scenario shows as a subtest.
package proton

import (
	"testing"

	"github.com/letomq/leto/interop/foreign"
)

func TestScenarios(t *testing.T) { foreign.Proton.Scenarios(t) }

func TestRestarts(t *testing.T) { foreign.Proton.Restarts(t) }

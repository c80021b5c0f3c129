// Package protoncpp runs scenarios written with Apache Qpid Proton's C++ binding against
// the leto binary. Each scenario shows as a subtest.
package protoncpp

import (
	"testing"

	"github.com/letomq/leto/interop/foreign"
)

func TestScenarios(t *testing.T) { foreign.ProtonCPP.Scenarios(t) }

func TestRestarts(t *testing.T) { foreign.ProtonCPP.Restarts(t) }

// Package fe2o3 runs scenarios written with fe2o3-amqp, a client in Rust, against the leto
// binary. Each scenario shows as a subtest.
package fe2o3

import (
	"testing"

	"github.com/letomq/leto/interop/foreign"
)

func TestScenarios(t *testing.T) { foreign.Fe2o3.Scenarios(t) }

func TestRestarts(t *testing.T) { foreign.Fe2o3.Restarts(t) }

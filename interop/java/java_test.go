// Package java runs scenarios written with Java's AMQP clients against the leto binary.
// Each scenario shows as a subtest.
package java

import (
	"testing"

	"github.com/letomq/leto/interop/foreign"
)

func TestJMS(t *testing.T) { foreign.JMS.Scenarios(t) }

func TestJMSRestarts(t *testing.T) { foreign.JMS.Restarts(t) }

func TestProtonJ2(t *testing.T) { foreign.ProtonJ2.Scenarios(t) }

func TestProtonJ2Restarts(t *testing.T) { foreign.ProtonJ2.Restarts(t) }

package cpu

import (
	"errors"

	"github.com/stokehq/stoke/runtime/engine"
)

// New returns the engine. Its replicas ignore Options.Device.
func New() engine.Engine { return maker{} }

type maker struct{}

func (maker) Build(m *engine.Model, o engine.Options) (engine.Replica, error) {
	return nil, errors.New("not written yet")
}

package main

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/redact"
)

// configuredProvider is the provider of a stored object as the configuration in
// the working folder has it: with it goes whatever only a provider block knows
// of the way to an object. address is the provider's, as the state names it, and
// about the object's. Variables without a value are unknown. The function that
// is returned ends the provider; what is wrong is said.
func (s *session) configuredProvider(ctx context.Context, file *stateFile, address, about string, f *planFlags) (*redact.Provider, func(), error) {
	o := newOperation(s, f)
	config, err := s.configureLoosely(f)
	if err != nil {
		return nil, nil, err
	}
	o.config, o.state = config, file
	r := o.request()
	r.State = file.State()
	explorer, diags := plan.Explore(ctx, r, false)
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, nil, failed
	}
	p, diags := explorer.Provider(address, about)
	s.complain(diags...)
	switch {
	case diags.HasErrors():
	case p == nil:
		s.complain(problem("No such provider", "%s", fmt.Sprintf("%s, which %s needs, cannot be configured.", address, about)))
	default:
		return p, explorer.Close, nil
	}
	explorer.Close()
	return nil, nil, failed
}
